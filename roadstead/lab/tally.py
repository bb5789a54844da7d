"""Tally: counts of the jobs of one type, and the metrics of the Omega paper computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadstead.lab.arrays import Flags
from roadstead.lab.statistics import share

P90 = 90.0


@dataclass(slots=True)
class Tally:
    """Counts of one type of jobs over all its schedulers; times in seconds.

    complete: jobs whose tasks all have a machine. abandoned: jobs given up after too many attempts.
    no_room: attempts without a transaction, as no task fits in the scheduler's copy of the state.
    clean, conflicted: transactions without and with a conflict. retries: transactions after a job's
    first attempt. busy_s: decision time of all transactions; wasted_s: of those with a conflict.
    regrets: of sampled transactions, how far the chosen machines score below the best, of 100.
    """

    jobs: int = 0
    tasks: int = 0
    complete: int = 0
    abandoned: int = 0
    no_room: int = 0
    clean: int = 0
    conflicted: int = 0
    retries: int = 0
    tasks_committed: int = 0
    tasks_refused: int = 0
    busy_s: float = 0.0
    wasted_s: float = 0.0
    regrets: list[float] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)

    def arrived(self, tasks: int) -> None:
        """Count the first arrival of a job."""
        self.jobs += 1
        self.tasks += tasks

    def waited(self, wait_s: float) -> None:
        """Record the wait until a job's first decision began."""
        self.waits_s.append(wait_s)

    @property
    def transactions(self) -> int:
        """The number of transactions so far."""
        return self.clean + self.conflicted

    def transaction(self, accepted: Flags, decision_s: float, *, is_retry: bool) -> None:
        """Count a transaction. accepted: which of its tasks were committed."""
        committed = int(accepted.sum())
        self.tasks_committed += committed
        self.tasks_refused += len(accepted) - committed
        self.busy_s += decision_s
        self.retries += is_retry
        if committed == len(accepted):
            self.clean += 1
        else:
            self.conflicted += 1
            self.wasted_s += decision_s

    def metrics(self, job_type: str, capacity_s: float, horizon_s: float) -> dict[str, float]:
        """The metrics by name, with the type of job as a prefix.

        conflict_fraction: conflicted transactions divided by others (Omega, section 5; may be > 1).
        busyness: the share of `capacity_s` (schedulers times horizon) spent on decisions.
        """
        tried = self.tasks_committed + self.tasks_refused
        metrics = {
            "jobs": self.jobs,
            "conflict_fraction": share(self.conflicted, self.clean),
            "task_conflict_share": share(self.tasks_refused, tried),
            "busyness": share(self.busy_s, capacity_s),
            "wasted_share": share(self.wasted_s, self.busy_s),
            "wait_s": float(np.mean(self.waits_s)) if self.waits_s else 0.0,
            "wait_p90_s": float(np.percentile(self.waits_s, P90)) if self.waits_s else 0.0,
            "retries": share(self.retries, self.jobs),
            "no_room": share(self.no_room, self.jobs),
            "abandoned": self.abandoned,
            "scheduled_share": share(self.complete, self.jobs),
            "tasks_per_s": share(self.tasks_committed, horizon_s),
            "score_regret": float(np.mean(self.regrets)) if self.regrets else 0.0,
        }
        return {f"{job_type}_{name}": float(metric) for name, metric in metrics.items()}

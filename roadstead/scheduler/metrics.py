"""Metrics of one scheduler's decisions and binds, for its status and the summary of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.attempts.pods import Attempt
from roadstead.cycle.jobs import job_of


@dataclass(slots=True)
class SchedulerMetrics:
    """Sums since the scheduler started.

    busy_s: time from reading the nodes' state to the decision, simulated latency included. reads:
    number of times that the state was read. asked: binds that the binder answered. transactions:
    the jobs of these binds, counted per answer; conflicted: the jobs with a refused bind. retries:
    pods that were leased again. passed_on: pods without a feasible node in the scheduler's own
    partitions. refused: binds by the binder's cause of refusal.
    """

    busy_s: float = 0.0
    reads: int = 0
    decided: int = 0
    asked: int = 0
    bound: int = 0
    transactions: int = 0
    conflicted: int = 0
    retries: int = 0
    passed_on: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def answered(self, attempts: Sequence[Attempt], causes: Mapping[str, str]) -> None:
        """Count the binder's answers. causes: by token, "" for a bound attempt."""
        answered = [each for each in attempts if each.token in causes]
        jobs = [job_of(each.facts) or each.uid for each in answered]
        lost = {job for job, each in zip(jobs, answered, strict=True) if causes[each.token]}
        self.asked += len(answered)
        self.transactions += len(set(jobs))
        self.conflicted += len(lost)
        refused = [cause for each in answered if (cause := causes[each.token])]
        self.bound += len(answered) - len(refused)
        self.refused.update(refused)

    def by_name(self) -> tuple[tuple[str, float], ...]:
        """Return all metrics by name, as messages contain them."""
        sums = ("busy_s", "reads", "decided", "asked", "bound", "transactions", "conflicted")
        other_metrics = ("retries", "passed_on")
        named = ((name, float(getattr(self, name))) for name in (*sums, *other_metrics))
        causes = ((f"refused {cause}", float(n)) for cause, n in sorted(self.refused.items()))
        return (*named, *causes)

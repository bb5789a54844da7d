"""Runs of the product in the lab: their settings and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from roadstead.lab.statistics import share

Recheck: TypeAlias = Literal["all", "node", "none"]
"""Checks of the binder at the commit: all, as usual; only those of the node alone; none."""


@dataclass(frozen=True, slots=True)
class LabSetup:
    """Settings of the lab alone. recheck: with values other than `all`, binds may violate rules.

    is_virtual: run on virtual time and a simulated network, seeded by the settings' seed.
    """

    recheck: Recheck = "all"
    is_virtual: bool = False


@dataclass(frozen=True, slots=True)
class LabRun:
    """The measurements of one run.

    placements: (uid, node) in commit order. pending: pods that were not placed. spent_s: from the
    first submitted pod to the last bind; waits_s: (pods, their wait from then until the bind).
    bind_requests: their number; refused: that of refused ones, by cause. transactions: requests to
    bind a job, repeats included; conflicted: those of which a pod was refused. busy_s: time of all
    schedulers spent on reads, simulated latency and decisions, by the clock of the event loop;
    ran_s: of the whole run.
    """

    placements: tuple[tuple[str, str], ...]
    pending: int
    spent_s: float
    waits_s: tuple[tuple[int, float], ...] = ()
    bind_requests: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    transactions: int = 0
    conflicted: int = 0
    busy_s: float = 0.0
    ran_s: float = 0.0

    def metrics(self, schedulers: int) -> dict[str, float]:
        """The metrics that need no replay of the placements, as the score regret does."""
        bound = len(self.placements)
        conflicts = sum(self.refused.values())
        waits_s = np.repeat([wait for _, wait in self.waits_s], [many for many, _ in self.waits_s])
        return {
            "placed": float(bound),
            "pending": float(self.pending),
            "pods_per_s": share(bound, self.spent_s),
            "conflict_fraction": share(conflicts, bound),
            "transaction_conflict_fraction": share(
                self.conflicted, self.transactions - self.conflicted
            ),
            "retries": share(self.bind_requests - bound, bound),
            "busyness": share(self.busy_s, self.ran_s * schedulers),
            "wait_s": float(waits_s.mean()) if len(waits_s) else 0.0,
            "wait_p90_s": float(np.percentile(waits_s, 90)) if len(waits_s) else 0.0,
        }

"""A trial: one run of the product in the lab, and what is measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from roadstead.lab.statistics import share

Recheck: TypeAlias = Literal["all", "node", "none"]
"""What the binder of a trial checks at the commit: as ever, rules of one node alone, nothing."""


@dataclass(frozen=True, slots=True)
class LabSetup:
    """What only the lab sets. recheck: anything but `all` commits what may violate constraints.

    is_virtual: on virtual time and a simulated network, whose seed is that of the settings.
    """

    recheck: Recheck = "all"
    is_virtual: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a run.

    placements: (uid, node) in the order of the commits. pending: pods that were not placed.
    spent_s: from the first pod submitted to the last bind; waits_s: (pods, how long they waited for
    their bind since then). asked, refused: bind requests. transactions: jobs that were asked to be
    bound, each time; conflicted: those of which some pod was refused. busy_s: of all schedulers,
    reading, waiting for simulated latency and deciding, in the time the loop's clock shows; ran_s:
    of the whole run.
    """

    placements: tuple[tuple[str, str], ...]
    pending: int
    spent_s: float
    waits_s: tuple[tuple[int, float], ...] = ()
    asked: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    transactions: int = 0
    conflicted: int = 0
    busy_s: float = 0.0
    ran_s: float = 0.0

    def figures(self, schedulers: int) -> dict[str, float]:
        """The figures of the lab that follow from this alone."""
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
            "retries": share(self.asked - bound, bound),
            "busyness": share(self.busy_s, self.ran_s * schedulers),
            "wait_s": float(waits_s.mean()) if len(waits_s) else 0.0,
            "wait_p90_s": float(np.percentile(waits_s, 90)) if len(waits_s) else 0.0,
        }

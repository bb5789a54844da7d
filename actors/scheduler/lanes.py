"""Lanes of a scheduler: ways to decide, over all nodes or over its own, and what was read on each.

What was read serves one batch. Where staleness is allowed it serves later ones, too, as long as it
is young enough, knows the classes (a table of its own knows all), and nothing that was decided on
it has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.cycle.batch import BatchRun, PodInCycle
from roadstead.cycle.sharded import ShardedCycle


@dataclass(slots=True)
class Lane:
    """One way. has_read: what was read at `read_s` may be of use; batch: what
    workers said then, None on a table of its own.
    """

    cycle: ShardedCycle
    is_own: bool = False
    has_read: bool = False
    batch: BatchRun | None = None
    read_s: float = 0.0

    def read(self, batch: BatchRun | None, now_s: float) -> None:
        """The state was read."""
        self.has_read, self.batch, self.read_s = True, batch, now_s

    def is_older(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether what was read is too old to decide on; never where there is no bound."""
        return staleness_s is not None and now_s - self.read_s > staleness_s

    def serves(self, pods: Sequence[PodInCycle], now_s: float, staleness_s: float | None) -> bool:
        """Whether these pods may be decided on what was read for earlier ones, too."""
        if not self.has_read or staleness_s is None or self.is_older(now_s, staleness_s):
            return False
        return self.batch is None or all(self.batch.knows(pod.signature) for pod in pods)

    def drop(self) -> None:
        """What was read is of no use any more."""
        self.has_read, self.batch = False, None

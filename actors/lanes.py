"""Lanes of a scheduler: ways to decide, over all shards or over its own, and what was read on each.

What was read serves one batch. Where staleness is allowed it serves later ones, too, as long as it
is young enough, knows the classes, and nothing that was decided on it has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.cycle.batch import BatchRun, PodInCycle
from roadstead.cycle.sharded import ShardedCycle


@dataclass(slots=True)
class Lane:
    """One way. shards: who is asked. batch: what was read at `read_s`, None for nothing to use."""

    cycle: ShardedCycle
    shards: tuple[int, ...]
    is_own: bool = False
    batch: BatchRun | None = None
    read_s: float = 0.0

    def read(self, batch: BatchRun, now_s: float) -> BatchRun:
        """The state was read."""
        self.batch, self.read_s = batch, now_s
        return batch

    def is_older(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether what was read is too old to decide on; never where there is no bound."""
        return staleness_s is not None and now_s - self.read_s > staleness_s

    def kept(
        self, pods: Sequence[PodInCycle], now_s: float, staleness_s: float | None
    ) -> BatchRun | None:
        """What was read for earlier pods, if these may be decided on it, too."""
        batch = self.batch
        if batch is None or staleness_s is None or self.is_older(now_s, staleness_s):
            return None
        return batch if all(batch.knows(pod.signature) for pod in pods) else None

    def drop(self) -> None:
        """What was read is of no use any more."""
        self.batch = None

"""Scope: the nodes on which a scheduler decides (its own or all), and when it read their state.

One reading serves one batch. Where staleness is allowed it also serves later batches, until it is
too old or a decision that was based on it has failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.cycle.batch_builder import BatchBuilder


@dataclass(slots=True)
class Scope:
    """Own nodes (is_own) or all nodes. has_read: the state that was read at `read_s` may be reused.

    builder: builds the batches that are decided on these nodes.
    """

    builder: BatchBuilder
    is_own: bool = False
    has_read: bool = False
    read_s: float = 0.0

    def read(self, now_s: float) -> None:
        """Record that the state was read. now_s: when that began; its age counts from then."""
        self.has_read, self.read_s = True, now_s

    def is_older(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether the reading is too old for a decision; never without a bound."""
        return staleness_s is not None and now_s - self.read_s > staleness_s

    def is_reusable(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether the reading of an earlier batch may be reused by another one."""
        return self.has_read and staleness_s is not None and not self.is_older(now_s, staleness_s)

    def drop(self) -> None:
        """Discard the reading."""
        self.has_read = False

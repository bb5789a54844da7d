"""Lanes of a scheduler: ways to decide, over all nodes or over its own, and when each was read.

What was read serves one batch. Where staleness is allowed it serves later ones, too, as long as it
is young enough and nothing that was decided on it has failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.cycle.table_cycle import TableCycle


@dataclass(slots=True)
class Lane:
    """One way. has_read: what was read at `read_s` may be of use."""

    cycle: TableCycle
    is_own: bool = False
    has_read: bool = False
    read_s: float = 0.0

    def read(self, now_s: float) -> None:
        """The state was read."""
        self.has_read, self.read_s = True, now_s

    def is_older(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether what was read is too old to decide on; never where there is no bound."""
        return staleness_s is not None and now_s - self.read_s > staleness_s

    def serves(self, now_s: float, staleness_s: float | None) -> bool:
        """Whether pods may be decided on what was read for earlier ones, too."""
        return self.has_read and staleness_s is not None and not self.is_older(now_s, staleness_s)

    def drop(self) -> None:
        """What was read is of no use any more."""
        self.has_read = False

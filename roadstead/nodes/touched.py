"""Touched: which nodes the last changes of a stream concerned, so that tables can be compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

MOST_NAMES = 65_536
"""Names that are kept, in whole messages; what came before is not known any more."""


class Touched:
    """Nodes by the number of the change that concerned them. floor: what came up to it is unknown.

    Of a node that is there more than once, a later change says nothing of an earlier one.
    """

    def __init__(self, floor: int = 0) -> None:
        self._floor = floor
        self._parts: deque[tuple[int, Sequence[str] | None]] = deque()
        self._names = 0

    def note(self, last: int, names: Sequence[str] | None) -> None:
        """Changes up to number `last` concerned these nodes; None: perhaps all."""
        if last <= self._floor:
            return
        assert not self._parts or last > self._parts[-1][0], f"change {last} is noted out of order"
        self._parts.append((last, names))
        self._names += len(names or ())
        while self._names > MOST_NAMES and len(self._parts) > 1:
            self._floor, gone = self._parts.popleft()
            self._names -= len(gone or ())

    def since(self, number: int) -> set[str] | None:
        """Nodes that changes after `number` concerned, perhaps some more; None where unknown."""
        if number < self._floor:
            return None
        found: set[str] = set()
        for last, names in reversed(self._parts):
            if last <= number:
                break
            if names is None:
                return None
            found.update(names)
        return found

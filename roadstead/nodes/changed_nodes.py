"""ChangedNodes: the nodes that the last changes of a change stream affected.

Two tables at different positions of one stream can differ at these nodes only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

MAX_NAMES = 65_536
"""Maximum number of names; above it the oldest records are dropped, but never the last one."""


class ChangedNodes:
    """Nodes by the number of the change that affected them.

    unknown_up_to: changes up to this number are unknown. _records: (number of the last change,
    nodes that it and the changes since the previous record affected).
    """

    def __init__(self, unknown_up_to: int = 0) -> None:
        self._unknown_up_to = unknown_up_to
        self._records: deque[tuple[int, Sequence[str]]] = deque()
        self._names = 0

    def note(self, last: int, names: Sequence[str] | None) -> None:
        """Record which nodes the changes up to number `last` affected; None: perhaps all."""
        if last <= self._unknown_up_to:
            return
        in_order = not self._records or last > self._records[-1][0]
        assert in_order, f"change {last} is noted out of order"
        if names is None:
            # Earlier records are of no use: `since` would return None from here on.
            self._unknown_up_to, self._names = last, 0
            self._records.clear()
            return
        self._records.append((last, names))
        self._names += len(names)
        while self._names > MAX_NAMES and len(self._records) > 1:
            self._unknown_up_to, dropped = self._records.popleft()
            self._names -= len(dropped)

    def since(self, number: int) -> set[str] | None:
        """Return all nodes that changes after `number` affected, perhaps with others.

        None if unknown.
        """
        if number < self._unknown_up_to:
            return None
        found: set[str] = set()
        for last, names in reversed(self._records):
            if last <= number:
                break
            found.update(names)
        return found

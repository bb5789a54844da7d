"""ChangedNodes: the nodes that the last changes of a stream affected, to compare tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

MAX_NAMES = 65_536
"""Maximum number of names; beyond it the oldest records are dropped, the last one never."""


class ChangedNodes:
    """Nodes by the number of the change that affected them.

    unknown_up_to: changes up to this number are unknown. A node may be listed for several changes.
    """

    def __init__(self, unknown_up_to: int = 0) -> None:
        self._unknown_up_to = unknown_up_to
        self._parts: deque[tuple[int, Sequence[str] | None]] = deque()
        self._names = 0

    def note(self, last: int, names: Sequence[str] | None) -> None:
        """Record that the changes up to number `last` affected these nodes; None: perhaps all."""
        if last <= self._unknown_up_to:
            return
        assert not self._parts or last > self._parts[-1][0], f"change {last} is noted out of order"
        self._parts.append((last, names))
        self._names += len(names or ())
        while self._names > MAX_NAMES and len(self._parts) > 1:
            self._unknown_up_to, gone = self._parts.popleft()
            self._names -= len(gone or ())

    def since(self, number: int) -> set[str] | None:
        """Return the nodes that changes after `number` affected, or more; None if unknown."""
        if number < self._unknown_up_to:
            return None
        found: set[str] = set()
        for last, names in reversed(self._parts):
            if last <= number:
                break
            if names is None:
                return None
            found.update(names)
        return found

"""ChangeLog: what changed lately, for readers that follow it one by one."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

ItemT = TypeVar("ItemT")

KEPT_MAX: Final = 4096
"""Maximum number of changed items in a log."""


class ChangeLog(Generic[ItemT]):
    """The last changed items. end: the position behind the last change, from which to read on.

    A reader keeps the `end` up to which it has read.
    """

    __slots__ = ("_items", "_start", "end")

    def __init__(self) -> None:
        self._items: list[ItemT] = []
        self._start = 0
        self.end = 0

    def add(self, item: ItemT) -> None:
        """Add a changed item; if there are too many, the older half is dropped."""
        self._items.append(item)
        self.end += 1
        if len(self._items) > KEPT_MAX:
            dropped = KEPT_MAX // 2
            del self._items[:dropped]
            self._start += dropped

    def add_all(self) -> None:
        """Record that any item may have changed."""
        self._items.clear()
        self.end += 1
        self._start = self.end

    def since(self, position: int) -> list[ItemT] | None:
        """Return the items that changed from a position on; None if it may be any."""
        if position < self._start:
            return None
        return self._items[position - self._start :]

"""A heap of named items from which any item can be taken out cheaply.

Taking an item out only forgets its ticket; its dead entry is dropped when it comes up, or all at
once when the dead outnumber the living. Order: by key, then by arrival number, then by ticket, so
that equal keys never compare items and every run pops in the same order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

SortKey = tuple[float | int | str, ...]
"""Smaller comes first."""

COMPACT_MIN_ENTRIES = 64


class LazyHeap(Generic[Item]):
    """Items by name; `first` is the one with the smallest (key, seq)."""

    def __init__(self) -> None:
        self._entries: list[tuple[SortKey, int, int, str]] = []
        self._living: dict[str, tuple[int, Item]] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._living)

    def __contains__(self, name: str) -> bool:
        return name in self._living

    def __iter__(self) -> Iterator[Item]:
        """The items in the order in which they were put in (not by key)."""
        return (item for _, item in self._living.values())

    def put(self, name: str, key: SortKey, seq: int, item: Item) -> None:
        """Put in an item that is not there yet."""
        assert name not in self._living, f"{name} is in the heap already"
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._living[name] = (ticket, item)
        heapq.heappush(self._entries, (key, seq, ticket, name))

    def take(self, name: str) -> None:
        """Take out an item that is there."""
        del self._living[name]
        dead = len(self._entries) - len(self._living)
        if dead > COMPACT_MIN_ENTRIES and dead > len(self._living):
            self._compact()

    def first(self) -> Item | None:
        """The item with the smallest key, left in place; None when empty."""
        top = self._top()
        return None if top is None else self._living[top[3]][1]

    def first_key(self) -> SortKey | None:
        """The smallest key; None when empty."""
        top = self._top()
        return None if top is None else top[0]

    def ordered(self) -> list[Item]:
        """All items by key (sorted anew: for people and tests)."""
        return [self._living[entry[3]][1] for entry in sorted(self._entries) if self._lives(entry)]

    def _top(self) -> tuple[SortKey, int, int, str] | None:
        entries = self._entries
        while entries and not self._lives(entries[0]):
            heapq.heappop(entries)
        return entries[0] if entries else None

    def _lives(self, entry: tuple[SortKey, int, int, str]) -> bool:
        living = self._living.get(entry[3])
        return living is not None and living[0] == entry[2]

    def _compact(self) -> None:
        self._entries = [entry for entry in self._entries if self._lives(entry)]
        heapq.heapify(self._entries)

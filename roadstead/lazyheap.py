"""A priority queue of named items with lazy deletion.

    a heap of the keys in use  ──►  for each key a deque of entries, by arrival number

Entries of one key are mostly added and removed in order, which a deque does in constant time.
Removing an item only deletes its ticket; its dead entry is dropped when it is first, or with all
other dead entries when these outnumber the items. Order: by key, then by arrival number, then by
ticket, so that equal keys never compare items and every run pops in the same order.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

SortKey = tuple[float | int | str, ...]
"""Sort key; smaller ones are first."""

_Entry = tuple[int, int, str]
"""(arrival, ticket, name)."""

COMPACT_MIN_ENTRIES = 64

FEW_ITEMS = 4
"""Fewer items are added one by one."""


class LazyHeap(Generic[Item]):
    """Named items; `first` returns the one with the smallest (key, seq)."""

    def __init__(self) -> None:
        self._lines: dict[SortKey, deque[_Entry]] = {}
        self._keys: list[SortKey] = []
        self._entries = 0
        self._living: dict[str, tuple[int, Item]] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._living)

    def __contains__(self, name: str) -> bool:
        return name in self._living

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the items in the order in which they were added (not by key)."""
        return (item for _, item in self._living.values())

    def put(self, name: str, key: SortKey, seq: int, item: Item) -> None:
        """Add an item; its name must be new."""
        assert name not in self._living, f"{name} is in the heap already"
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._living[name] = (ticket, item)
        self._entries += 1
        entry = (seq, ticket, name)
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque((entry,))
            heapq.heappush(self._keys, key)
        elif not line or line[-1] < entry:
            line.append(entry)
        elif entry < line[0]:
            line.appendleft(entry)
        else:
            insort(line, entry)

    def put_line(self, key: SortKey, items: Sequence[tuple[str, int, Item]]) -> None:
        """Add items (name, seq, item) of one key; their names must be new."""
        if len(items) < FEW_ITEMS:
            for name, seq, item in items:
                self.put(name, key, seq, item)
            return
        length, first = len(self._living), self._next_ticket
        self._living |= {
            name: (ticket, item) for ticket, (name, _, item) in enumerate(items, first)
        }
        assert len(self._living) == length + len(items), "some are in the heap already"
        self._next_ticket += len(items)
        self._entries += len(items)
        entries = sorted((seq, ticket, name) for ticket, (name, seq, _) in enumerate(items, first))
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque(entries)
            heapq.heappush(self._keys, key)
        elif not line or line[-1] < entries[0]:
            line.extend(entries)
        else:
            self._lines[key] = deque(heapq.merge(line, entries))

    def take(self, name: str) -> None:
        """Remove an item. KeyError if it is missing."""
        self.take_all((name,))

    def take_all(self, names: Iterable[str]) -> None:
        """Remove items. KeyError if one is missing."""
        for name in names:
            del self._living[name]
        dead = self._entries - len(self._living)
        if dead > COMPACT_MIN_ENTRIES and dead > len(self._living):
            self._compact()

    def first(self) -> Item | None:
        """Return the item with the smallest (key, seq) without removing it; None when empty."""
        line = self._top()
        return None if line is None else self._living[line[0][2]][1]

    def firsts(self) -> Iterator[Item]:
        """Iterate over the items with the smallest key, in order; the heap must not change."""
        return (self._living[e[2]][1] for e in self._top() or () if self._lives(e))

    def ordered(self) -> list[Item]:
        """Return all items in order. It sorts all keys, so it is for reports and tests."""
        lines = (self._lines[key] for key in sorted(self._lines))
        return [self._living[e[2]][1] for line in lines for e in line if self._lives(e)]

    def _top(self) -> deque[_Entry] | None:
        """Return the deque of the smallest key, after dropping dead entries at its head."""
        living = self._living
        while self._keys:
            line = self._lines[self._keys[0]]
            while line:
                _, ticket, name = line[0]
                found = living.get(name)
                if found is not None and found[0] == ticket:
                    return line
                line.popleft()
                self._entries -= 1
            del self._lines[heapq.heappop(self._keys)]
        return None

    def _lives(self, entry: _Entry) -> bool:
        living = self._living.get(entry[2])
        return living is not None and living[0] == entry[1]

    def _compact(self) -> None:
        lines = {key: deque(filter(self._lives, line)) for key, line in self._lines.items()}
        self._lines = {key: line for key, line in lines.items() if line}
        self._keys = list(self._lines)
        heapq.heapify(self._keys)
        self._entries = len(self._living)

"""A heap of named items from which any item can be taken out cheaply.

    keys: a heap of those that are in use  ──►  per key a line of items, by number of arrival

Items of one key stand in line: they come in order, mostly, and go in order, which costs nothing.
Taking an item out only forgets its ticket; its dead entry is dropped when it comes up, or all at
once when the dead outnumber the living. Order: by key, then by arrival number, then by ticket, so
that equal keys never compare items and every run pops in the same order.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

SortKey = tuple[float | int | str, ...]
"""Smaller comes first."""

_Entry = tuple[int, int, str]
"""(arrival, ticket, name)."""

COMPACT_MIN_ENTRIES = 64

FEW_ITEMS = 4
"""Fewer are put in one by one."""


class LazyHeap(Generic[Item]):
    """Items by name; `first` is the one with the smallest (key, seq)."""

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
        """The items in the order in which they were put in (not by key)."""
        return (item for _, item in self._living.values())

    def put(self, name: str, key: SortKey, seq: int, item: Item) -> None:
        """Put in an item that is not there yet."""
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
        """Put in items (name, seq, item) of one key, none of which is there yet."""
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
        """Take out an item that is there."""
        self.take_all((name,))

    def take_all(self, names: Iterable[str]) -> None:
        """Take out items that are there."""
        for name in names:
            del self._living[name]
        dead = self._entries - len(self._living)
        if dead > COMPACT_MIN_ENTRIES and dead > len(self._living):
            self._compact()

    def first(self) -> Item | None:
        """The item with the smallest key, left in place; None when empty."""
        line = self._top()
        return None if line is None else self._living[line[0][2]][1]

    def firsts(self) -> Iterator[Item]:
        """Those that have the smallest key, in their order; not to be changed meanwhile."""
        return (self._living[e[2]][1] for e in self._top() or () if self._lives(e))

    def ordered(self) -> list[Item]:
        """All items by key (sorted anew: for people and tests)."""
        lines = (self._lines[key] for key in sorted(self._lines))
        return [self._living[e[2]][1] for line in lines for e in line if self._lives(e)]

    def _top(self) -> deque[_Entry] | None:
        """The line of the smallest key, with a living item at its head."""
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

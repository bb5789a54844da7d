"""A priority queue of named items with lazy deletion.

    a heap of the keys in use  ──►  for each key a bucket: a deque of entries, by arrival number

Entries of one key are mostly added and removed in order, which a deque does in constant time. Each
item gets a ticket, a number of its own. A removed item leaves a dead entry, whose ticket no item
has. The entry is dropped when it is first, or with all other dead entries when these outnumber the
items. Order: by key, then by arrival number, then by ticket, so that equal keys never compare items
and every run pops in the same order.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
"""What is queued, such as a pod."""

SortKey = tuple[float | int | str, ...]
"""Sort key; smaller ones are first."""

_Entry = tuple[int, int, str]
"""(arrival number, ticket, name)."""

DEAD_ENTRIES_MAX = 64
"""Up to this many dead entries are left where they are: a pass over all entries costs more."""

FEW_ITEMS = 4
"""Fewer items are added one by one: preparing a bulk operation would take longer."""


class LazyHeap(Generic[Item]):
    """Named items; `first` returns the one with the smallest (key, seq). seq: arrival number."""

    def __init__(self) -> None:
        self._buckets: dict[SortKey, deque[_Entry]] = {}
        # The keys of the buckets, as a heap.
        self._keys: list[SortKey] = []
        self._entry_count = 0
        # Name → (ticket, item).
        self._items: dict[str, tuple[int, Item]] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[Item]:
        """Iterate over the items in the order in which they were added (not by key)."""
        return (item for _, item in self._items.values())

    def put(self, name: str, key: SortKey, seq: int, item: Item) -> None:
        """Add an item; its name must be new."""
        assert name not in self._items, f"{name} is in the heap already"
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._items[name] = (ticket, item)
        self._entry_count += 1
        entry = (seq, ticket, name)
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = deque((entry,))
            heapq.heappush(self._keys, key)
        elif not bucket or bucket[-1] < entry:
            bucket.append(entry)
        elif entry < bucket[0]:
            bucket.appendleft(entry)
        else:
            insort(bucket, entry)

    def put_all(self, key: SortKey, items: Sequence[tuple[str, int, Item]]) -> None:
        """Add items (name, seq, item) of one key; their names must be new."""
        if len(items) < FEW_ITEMS:
            for name, seq, item in items:
                self.put(name, key, seq, item)
            return
        count_before, first_ticket = len(self._items), self._next_ticket
        self._items |= {
            name: (ticket, item) for ticket, (name, _, item) in enumerate(items, first_ticket)
        }
        assert len(self._items) == count_before + len(items), "some are in the heap already"
        self._next_ticket += len(items)
        self._entry_count += len(items)
        entries = sorted(
            (seq, ticket, name) for ticket, (name, seq, _) in enumerate(items, first_ticket)
        )
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = deque(entries)
            heapq.heappush(self._keys, key)
        elif not bucket or bucket[-1] < entries[0]:
            bucket.extend(entries)
        else:
            self._buckets[key] = deque(heapq.merge(bucket, entries))

    def remove(self, name: str) -> None:
        """Remove an item. KeyError if it is missing."""
        self.remove_all((name,))

    def remove_all(self, names: Iterable[str]) -> None:
        """Remove items. KeyError if one is missing."""
        for name in names:
            del self._items[name]
        dead = self._entry_count - len(self._items)
        if dead > DEAD_ENTRIES_MAX and dead > len(self._items):
            self._compact()

    def first(self) -> Item | None:
        """Return the item with the smallest (key, seq) without removing it; None when empty."""
        bucket = self._first_bucket()
        if bucket is None:
            return None
        _, _, name = bucket[0]
        return self._items[name][1]

    def items_with_first_key(self) -> Iterator[Item]:
        """Iterate over the items with the smallest key, in order; the heap must not change."""
        return (self._items[e[2]][1] for e in self._first_bucket() or () if self._is_alive(e))

    def ordered(self) -> list[Item]:
        """Return all items in order. This sorts all keys, so it is for reports and tests."""
        buckets = (self._buckets[key] for key in sorted(self._buckets))
        return [self._items[e[2]][1] for bucket in buckets for e in bucket if self._is_alive(e)]

    def _first_bucket(self) -> deque[_Entry] | None:
        """Drop the dead entries that are first; return the bucket of the smallest key, or None."""
        items = self._items
        while self._keys:
            bucket = self._buckets[self._keys[0]]
            while bucket:
                _, ticket, name = bucket[0]
                current = items.get(name)
                if current is not None and current[0] == ticket:
                    return bucket
                bucket.popleft()
                self._entry_count -= 1
            del self._buckets[heapq.heappop(self._keys)]
        return None

    def _is_alive(self, entry: _Entry) -> bool:
        _, ticket, name = entry
        current = self._items.get(name)
        return current is not None and current[0] == ticket

    def _compact(self) -> None:
        """Drop all dead entries."""
        buckets = {
            key: deque(filter(self._is_alive, bucket)) for key, bucket in self._buckets.items()
        }
        self._buckets = {key: bucket for key, bucket in buckets.items() if bucket}
        self._keys = list(self._buckets)
        heapq.heapify(self._keys)
        self._entry_count = len(self._items)

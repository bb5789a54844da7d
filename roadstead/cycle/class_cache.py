"""ClassCache: caches results of pod classes across batches, with bounds on number and memory.

Results of a class of its own take some ninety bytes per row, so few are cached for a large table;
results that it shares with other classes of its shape take hardly any memory (decision 26).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_CLASSES = 4096
"""Maximum number of cached classes; the least recently used is dropped."""

MIN_CLASSES = 16
"""Minimum number of cached classes for a table of any size, divided among the memory_sharers."""

MAX_RESULTS = 12_000_000
"""Rows times classes: about a gigabyte. With more shapes than are cached, all results would be
computed again in every batch."""


MAX_TOTALS = 250_000_000
"""Rows times classes of one batch, whose totals the kernel stores: a gigabyte."""


def max_batch_classes(rows: int, memory_sharers: int = 1) -> int:
    """Return the maximum number of classes in one batch over so many rows, shared results or not.

    memory_sharers: number of cycles, over so many rows each, that share the memory.
    """
    return max(MIN_CLASSES // memory_sharers, MAX_TOTALS // (memory_sharers * max(1, rows)), 1)


def max_cached_classes(rows: int, memory_sharers: int = 1) -> int:
    """Return how many classes with results of their own are cached over so many rows, as above."""
    fits = MAX_RESULTS // (memory_sharers * max(1, rows))
    return max(MIN_CLASSES // memory_sharers, min(MAX_CLASSES, fits), 1)


class ClassCache(Generic[T]):
    """A cache by class, with a bound for own results and another one for shared ones.

    memory_sharers: number of caches that share the memory for own results.
    """

    def __init__(self, memory_sharers: int = 1) -> None:
        self._memory_sharers = memory_sharers
        self._own: OrderedDict[Hashable, T] = OrderedDict()
        self._sharing: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """Return the cached value of a class, or None; marks it as used."""
        for kept in (self._own, self._sharing):
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
                return found
        return None

    def put(self, key: Hashable, value: T, rows: int, *, shares: bool = False) -> None:
        """Cache the value of a class over so many rows, in place of the former one."""
        self._own.pop(key, None)
        self._sharing.pop(key, None)
        kept, most = (
            (self._sharing, MAX_CLASSES)
            if shares
            else (self._own, max_cached_classes(rows, self._memory_sharers))
        )
        kept[key] = value
        while len(kept) > most:
            kept.popitem(last=False)


def prefix_length(keys: Iterable[Hashable], most: int) -> int:
    """Return how many of the first keys have at most `most` distinct values."""
    seen: set[Hashable] = set()
    index = 0
    for index, key in enumerate(keys):
        if key not in seen:
            if len(seen) == most:
                return index
            seen.add(key)
    return index + 1 if seen else 0

"""ClassCache: caches results of pod classes across batches, with bounds on number and memory.

Own results, computed for the class itself, take some ninety bytes per row, so few are cached for a
large table. Results that the class shares with others of its shape (the class without its resource
amounts) take hardly any memory (decision 26).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

ResultsT = TypeVar("ResultsT")
"""The results of a class, as one cache holds them."""

MAX_CLASSES = 4096
"""Maximum number of cached classes; the least recently used is dropped."""

MIN_CLASSES = 16
"""Classes with own results that are cached even for the largest table, divided among the caches
that share the memory."""

MAX_RESULTS = 12_000_000
"""Rows times classes with own results: about a gigabyte. If a workload has more shapes than are
cached, all results are computed again in every batch."""


MAX_TOTALS = 250_000_000
"""Rows times classes of one batch, whose totals the kernel stores: a gigabyte."""


def max_batch_classes(rows: int, memory_sharers: int = 1) -> int:
    """Return the maximum number of classes in one batch over so many rows, shared results or not.

    memory_sharers: number of cycles, over so many rows each, that share the memory.
    """
    return max(MIN_CLASSES // memory_sharers, MAX_TOTALS // (memory_sharers * max(1, rows)), 1)


def max_cached_classes(rows: int, memory_sharers: int = 1) -> int:
    """Return the maximum number of classes with own results in a cache over so many rows.

    memory_sharers: number of caches, over so many rows each, that share the memory.
    """
    within_memory = MAX_RESULTS // (memory_sharers * max(1, rows))
    return max(MIN_CLASSES // memory_sharers, min(MAX_CLASSES, within_memory), 1)


class ClassCache(Generic[ResultsT]):
    """A cache by class, with a bound for own results and another one for shared results.

    memory_sharers: number of caches that share the memory for own results.
    """

    def __init__(self, memory_sharers: int = 1) -> None:
        self._memory_sharers = memory_sharers
        self._own: OrderedDict[Hashable, ResultsT] = OrderedDict()
        self._shared: OrderedDict[Hashable, ResultsT] = OrderedDict()

    def get(self, key: Hashable) -> ResultsT | None:
        """Return the cached results of a class, or None; marks them as used."""
        for cache in (self._own, self._shared):
            found = cache.get(key)
            if found is not None:
                cache.move_to_end(key)
                return found
        return None

    def put(self, key: Hashable, results: ResultsT, rows: int, *, shares: bool = False) -> None:
        """Cache the results of a class over so many rows, in place of its former results."""
        self._own.pop(key, None)
        self._shared.pop(key, None)
        cache, max_classes = (
            (self._shared, MAX_CLASSES)
            if shares
            else (self._own, max_cached_classes(rows, self._memory_sharers))
        )
        cache[key] = results
        while len(cache) > max_classes:
            cache.popitem(last=False)


def prefix_length(keys: Iterable[Hashable], max_keys: int) -> int:
    """Return the length of the longest prefix with at most `max_keys` distinct keys."""
    distinct: set[Hashable] = set()
    index = 0
    for index, key in enumerate(keys):
        if key not in distinct:
            if len(distinct) == max_keys:
                return index
            distinct.add(key)
    return index + 1 if distinct else 0

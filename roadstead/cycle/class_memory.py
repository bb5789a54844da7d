"""What is kept of classes from batch to batch, within bounds of number and memory.

What is found of a class by itself takes some ninety bytes for each row of the table, so that of a
large table few are kept; what it shares with others of its kind takes next to nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_CLASSES = 4096
"""Classes of which something is kept; the one unused for longest is dropped."""

MIN_CLASSES = 16
"""So many are kept whatever the table."""

MAX_CELLS = 12_000_000
"""Rows times classes: about a gigabyte. Fleets with so many shapes that fewer were kept would have
each found anew in every batch."""


MAX_TOTALS = 250_000_000
"""Rows times classes of one batch, whose totals the kernel keeps: a gigabyte."""


def most_together(rows: int, sharers: int = 1) -> int:
    """How many classes to decide together over so many rows, whatever they share.

    sharers: cycles over so many rows each, which have so much memory together.
    """
    return max(MIN_CLASSES // sharers, MAX_TOTALS // (sharers * max(1, rows)), 1)


def most_classes(rows: int, sharers: int = 1) -> int:
    """Of how many classes to keep what is found by itself over so many rows, as above."""
    fits = MAX_CELLS // (sharers * max(1, rows))
    return max(MIN_CLASSES // sharers, min(MAX_CLASSES, fits), 1)


class ClassMemory(Generic[T]):
    """Things by class: those that hold an evaluation of their own, and those that share one."""

    def __init__(self, sharers: int = 1) -> None:
        self._sharers = sharers
        self._own: OrderedDict[Hashable, T] = OrderedDict()
        self._sharing: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """What is kept of a class, which is used now."""
        for kept in (self._own, self._sharing):
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
                return found
        return None

    def put(self, key: Hashable, thing: T, rows: int, *, shares: bool = False) -> None:
        """Keeps what was found of a class over so many rows, in place of what was kept of it."""
        self._own.pop(key, None)
        self._sharing.pop(key, None)
        kept, most = (
            (self._sharing, MAX_CLASSES)
            if shares
            else (self._own, most_classes(rows, self._sharers))
        )
        kept[key] = thing
        while len(kept) > most:
            kept.popitem(last=False)


def within(keys: Iterable[Hashable], most: int) -> int:
    """How many of the first keys there are until more than `most` of them are different."""
    seen: set[Hashable] = set()
    place = 0
    for place, key in enumerate(keys):
        if key not in seen:
            if len(seen) == most:
                return place
            seen.add(key)
    return place + 1 if seen else 0

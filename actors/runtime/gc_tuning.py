"""Thresholds of Python's garbage collector for processes with many small, long-lived objects.

Every new container counts towards a collection of all young objects, and about every hundredth
collection covers all objects. Pods and nodes stay and form no cycles; with Python's own thresholds
a third of the time from submit to bind was spent on them (docs/performance.md).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

Thresholds = tuple[int, int, int]

THRESHOLDS: Final[Thresholds] = (50_000, 100, 100)

SHORT_THRESHOLDS: Final[Thresholds] = (2_500, 1, 120_000)
"""For short pauses: up to 2 ms for the young objects, in place of 12 to 28 ms, and up to 3 ms each
other time, for the next older ones, too. So objects are searched twice: AllDistinct took 6% more
processor time.
"""

SHORT_BATCH_PODS: Final = 16
"""Size of batches up to which pauses are short. Larger ones are decided in longer steps anyway."""


def thresholds_of(batch: int) -> Thresholds:
    """Return the thresholds for a run whose schedulers decide batches of at most so many pods."""
    return SHORT_THRESHOLDS if batch <= SHORT_BATCH_PODS else THRESHOLDS


def raise_gc_thresholds() -> None:
    """Set the thresholds for the rest of the process."""
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def raised_gc_thresholds(thresholds: Thresholds = THRESHOLDS) -> Iterator[None]:
    """Set thresholds inside the block, and restore those before it after it."""
    before = gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        yield
    finally:
        gc.set_threshold(*before)

"""Thresholds of Python's garbage collector for processes with many small, long-lived objects.

Every new container counts towards a collection of all young objects, and about every hundredth
collection covers all objects. Pods and nodes stay and form no cycles; with Python's own thresholds
a third of the time from submit to bind was spent on them (docs/performance.md).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 100, 100)


def raise_gc_thresholds() -> None:
    """Set the thresholds for the rest of the process."""
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def raised_gc_thresholds() -> Iterator[None]:
    """Set the thresholds inside the block, and restore the process's own ones after it."""
    before = gc.get_threshold()
    raise_gc_thresholds()
    try:
        yield
    finally:
        gc.set_threshold(*before)

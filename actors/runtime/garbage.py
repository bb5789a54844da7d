"""Python's collector of cycles, set for processes that hold many small objects for long.

Every new container counts towards a collection that looks at all young objects, and each hundredth
or so at all there are. Pods and nodes stay, and make no cycles; with Python's own thresholds a
third of the time from submit to bind went into looking at them (docs/performance.md).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 100, 100)


def collect_seldom() -> None:
    """For the rest of the process."""
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """While it lasts; a process that runs more than this gets its own thresholds back."""
    before = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)

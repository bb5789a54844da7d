"""Durations of the phases of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Measure the seconds since its creation, and the seconds of each phase."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.timings_s: dict[str, float] = {}

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time inside the block to a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.timings_s[name] = self.timings_s.get(name, 0.0) + spent

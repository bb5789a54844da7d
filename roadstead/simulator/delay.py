"""Delay: the time that a scheduler takes for its decisions, in a simulated run.

One scheduler decides one batch after another. A batch that it begins at a time reads the cluster of
that time, and its pods are bound when it is done; until then the scheduler begins no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Delay:
    """When the scheduler is free again.

    durations: time of one decision after the other, in microseconds. measure: in place of them,
    returns the microseconds that the last decision really took; then runs differ from each other.
    """

    def __init__(self, durations: Iterator[int], measure: Callable[[], int] | None = None) -> None:
        self._durations, self._measure = durations, measure
        self.free_us = 0

    def is_busy(self, now_us: int) -> bool:
        """Whether a batch is under way."""
        return now_us < self.free_us

    def begin(self, now_us: int, pods: int) -> None:
        """Begin a batch of some pods."""
        if self._measure is not None:
            self.free_us = now_us + self._measure()
        else:
            self.free_us = now_us + sum(next(self._durations) for _ in range(pods))

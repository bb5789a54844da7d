"""Delay: the time that a scheduler takes for its decisions, in a simulated run.

One scheduler decides one batch after another. A batch that it begins at a time reads the cluster of
that time, and its pods are bound when it is done; until then the scheduler begins no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Delay:
    """The time that the batch under way takes.

    is_busy: whether a batch is under way. free_us: when the last one is over. durations: yields the
    time of each decision in microseconds. read_us: a clock, by which the time that a batch really
    took is measured in place of them; then runs differ from each other.
    """

    def __init__(self, durations: Iterator[int], read_us: Callable[[], int] | None = None) -> None:
        self._durations, self._read_us = durations, read_us
        # When the last batch began: in virtual time, and by the clock.
        self._began_us = self._began_by_clock_us = 0
        self.is_busy = False
        self.free_us = 0

    def begin(self, now_us: int) -> None:
        """Begin to decide a batch. The caller decides it, and then calls `decided`."""
        assert not self.is_busy, "a batch is under way"
        self._began_us = now_us
        self._began_by_clock_us = self._read_us() if self._read_us is not None else 0

    def decided(self, pods: int) -> None:
        """Begin the virtual time that the batch takes, of which `free_us` is the end.

        pods: how many it has.
        """
        if self._read_us is not None:
            took_us = self._read_us() - self._began_by_clock_us
        else:
            took_us = sum(next(self._durations) for _ in range(pods))
        self.is_busy = True
        self.free_us = self._began_us + took_us

    def end(self) -> None:
        """End the batch under way, whose pods are bound now."""
        self.is_busy = False

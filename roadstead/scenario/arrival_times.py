"""Times of arrivals, drawn in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from roadstead.scenario.random_stream import BLOCK, RandomStream, rounded
from roadstead.simulator.times import HOUR_US, NEVER_US

END_US: Final = 4_000_000_000_000_000
"""Later than any horizon."""

Block = NDArray[np.int64]
"""int64[arrivals]: times in order, microseconds."""


class ArrivalTimes(Protocol):
    """A random or regular process of arrivals."""

    def expected(self, span_us: int) -> float:
        """Return the expected number of arrivals from time 0 until before `span_us`."""
        ...

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        """Yield the times in blocks, in order, from time 0; it may never end.

        seed: of the run. index: of the source of arrivals, so that each source draws other numbers.
        """
        ...


def _poisson_times(stream: RandomStream, mean_us: float) -> Iterator[Block]:
    """Yield the times of a Poisson process with this mean gap, up to END_US."""
    now_us = 0
    while now_us < END_US:
        # Cut so that the sum of a block of gaps does not overflow.
        drawn = np.minimum(rounded(stream.exponential(BLOCK) * mean_us), END_US)
        times = now_us + np.cumsum(drawn)
        now_us = int(times[-1])
        yield times


@dataclass(frozen=True, slots=True)
class PoissonTimes:
    """Independent arrivals at a constant rate."""

    per_hour: float

    def expected(self, span_us: int) -> float:
        return self.per_hour * span_us / HOUR_US

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        return _poisson_times(RandomStream(seed, index, "arrivals"), HOUR_US / self.per_hour)


@dataclass(frozen=True, slots=True)
class RegularTimes:
    """Arrivals at equal intervals, the first at 0."""

    every_us: int

    def expected(self, span_us: int) -> float:
        return float(-(-span_us // self.every_us))

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        first = 0
        while first * self.every_us < END_US:
            # Times from END_US on are left out: int64 might not hold them.
            left = (END_US - 1) // self.every_us + 1 - first
            numbers = np.arange(first, first + min(BLOCK, left), dtype=np.int64)
            yield numbers * self.every_us
            first += BLOCK


@dataclass(frozen=True, slots=True)
class BurstTimes:
    """Bursts of arrivals.

    size: arrivals of a burst. every_us: from the start of a burst to that of the next one, 0 for
    one burst. over_us: the time over which the arrivals of a burst are spread evenly.
    """

    size: int
    every_us: int
    over_us: int

    def expected(self, span_us: int) -> float:
        if not self.every_us or span_us <= 0:
            bursts, last_us = 0, span_us
        else:
            bursts, last_us = (span_us - 1) // self.every_us, (span_us - 1) % self.every_us + 1
        # The last burst may not be over at the end of the span.
        fraction = min(1.0, last_us / self.over_us) if self.over_us else float(last_us > 0)
        return self.size * (bursts + max(0.0, fraction))

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        start_us = 0
        while start_us < END_US:
            for first in range(0, self.size, BLOCK):
                numbers = range(first, min(first + BLOCK, self.size))
                # In Python's integers: the product may exceed int64.
                offsets = [number * self.over_us // self.size for number in numbers]
                yield start_us + np.array(offsets, dtype=np.int64)
            if not self.every_us:
                return
            start_us += self.every_us


@dataclass(frozen=True, slots=True)
class DiurnalTimes:
    """Independent arrivals at a rate that follows a sine: a Poisson process, thinned.

    Thinned: drawn at the highest rate, then kept with a probability proportional to the rate at
    that time. per_hour: mean rate. swing: amplitude of the sine, as a fraction of the mean rate.
    peak_us: a time of the highest rate.
    """

    per_hour: float
    swing: float
    period_us: int
    peak_us: int

    def expected(self, span_us: int) -> float:
        # The integral of the rate, 1 + swing * cos(frequency * (time - peak)), over the span.
        frequency = 2 * math.pi / self.period_us
        sines = math.sin((span_us - self.peak_us) * frequency) + math.sin(self.peak_us * frequency)
        return self.per_hour * (span_us + self.swing * sines / frequency) / HOUR_US

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        highest = self.per_hour * (1 + self.swing)
        thinning = RandomStream(seed, index, "thinning")
        for times in _poisson_times(RandomStream(seed, index, "arrivals"), HOUR_US / highest):
            # Whole periods are subtracted as integers: a float of a late time lacks digits.
            phase = ((times - self.peak_us) % self.period_us) * (2 * math.pi / self.period_us)
            rate = (1 + self.swing * np.cos(phase)) / (1 + self.swing)
            yield times[thinning.uniform(len(times)) < rate]


@dataclass(frozen=True, slots=True, eq=False)
class ListedTimes:
    """Arrivals at the times of a file. times_us: int64[arrivals], in order."""

    times_us: NDArray[np.int64]

    def expected(self, span_us: int) -> float:
        return float(np.searchsorted(self.times_us, span_us))

    def blocks(self, seed: int, index: int) -> Iterator[Block]:
        for first in range(0, len(self.times_us), BLOCK):
            yield self.times_us[first : first + BLOCK]


@dataclass(frozen=True, slots=True)
class ActiveWindow:
    """Active time of a source. until_us: NEVER_US for no end. count: maximum number of arrivals."""

    start_us: int = 0
    until_us: int = NEVER_US
    count: int | None = None

    def expected(self, times: ArrivalTimes, horizon_us: int) -> float:
        """Return the expected number of arrivals within the window and before the horizon."""
        end_us = horizon_us if self.until_us == NEVER_US else min(self.until_us, horizon_us)
        expected = times.expected(max(0, end_us - self.start_us))
        return expected if self.count is None else min(expected, float(self.count))

    def cut(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the blocks, shifted to begin at `start_us`, up to the end of the window."""
        left = self.count
        for block in blocks:
            times = block + self.start_us
            is_last = False
            if self.until_us != NEVER_US:
                inside = times[: np.searchsorted(times, self.until_us)]
                is_last, times = len(inside) < len(times), inside
            if left is not None:
                is_last, times = is_last or left <= len(times), times[:left]
                left -= len(times)
            yield times
            if is_last:
                return

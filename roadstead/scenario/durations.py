"""Distributions of running times."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roadstead.scenario.random_stream import BLOCK, MILLI_US, RandomStream, rounded
from roadstead.simulator.times import NEVER_US

P99_DEVIATIONS: Final = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""


class DurationsBase(ABC):
    """A distribution of the times that pods run, drawn in blocks."""

    __slots__ = ()

    @abstractmethod
    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        """Draw the next `count` times: int64[count], microseconds."""

    def draws(self, seed: int, stream: int) -> Iterator[int]:
        """Yield microseconds without end. stream: a different number for each user."""
        source = RandomStream(seed, stream, "durations of a controller")
        while True:
            yield from self.block(source, BLOCK).tolist()


@dataclass(frozen=True, slots=True)
class FixedTimes(DurationsBase):
    """The same time for all; NEVER_US for pods that do not end."""

    fixed_us: int = NEVER_US

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        return np.full(count, self.fixed_us, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ExponentialTimes(DurationsBase):
    mean_us: int

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        return rounded(stream.exponential(count) * self.mean_us, MILLI_US)


@dataclass(frozen=True, slots=True)
class LognormalTimes(DurationsBase):
    median_us: int
    p99_us: int

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        sigma = math.log(self.p99_us / self.median_us) / P99_DEVIATIONS
        # Far more than a hundred years is possible, but not more than a float holds.
        exponents = np.minimum(stream.normal(count) * sigma, 300.0)
        return rounded(self.median_us * np.exp(exponents), MILLI_US)


@dataclass(frozen=True, slots=True)
class WeibullTimes(DurationsBase):
    scale_us: int
    shape: float

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        return rounded(self.scale_us * stream.exponential(count) ** (1 / self.shape), MILLI_US)


@dataclass(frozen=True, slots=True)
class UniformTimes(DurationsBase):
    min_us: int
    max_us: int

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        width_us = self.max_us - self.min_us
        drawn = self.min_us + rounded(stream.uniform(count) * width_us, MILLI_US)
        return np.minimum(drawn, self.max_us)


@dataclass(frozen=True, slots=True, eq=False)
class EmpiricalTimes(DurationsBase):
    """Times of a file, each with the same probability. times_us: int64[times]."""

    times_us: NDArray[np.int64]

    def block(self, stream: RandomStream, count: int) -> NDArray[np.int64]:
        chosen = (stream.uniform(count) * len(self.times_us)).astype(np.int64)
        drawn: NDArray[np.int64] = self.times_us[chosen]
        return drawn

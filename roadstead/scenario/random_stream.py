"""Random draws of a scenario that are the same on every machine and version of NumPy.

Only the raw stream of PCG64 is used, which NumPy promises never to change, and inverse transforms;
times are rounded, so that the last bits of a logarithm do not matter. Every purpose has a stream of
its own: another distribution of durations leaves the arrivals the same, and so do longer blocks.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MILLI_US: Final = 1_000
"""The step to which running times are rounded: one millisecond."""

LONGEST_US: Final = 1_000_000_000_000_000_000
"""No drawn time is longer: sums with other times fit into int64."""

BELOW_ONE: Final = 1 - 2.0**-53

BLOCK: Final = 2_048
"""Number of times that are drawn together."""


class RandomStream:
    """One stream of random numbers, read in blocks of any size.

    seed: of the run. index: of the source of arrivals or the controller that draws. purpose: a
    text. Streams that differ in one of the three are independent.
    """

    def __init__(self, seed: int, index: int, purpose: str) -> None:
        sequence = np.random.SeedSequence([seed, index, *purpose.encode()])
        self._bits = np.random.PCG64(sequence)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Return float64[count] between 0 and 1, both excluded."""
        raw: NDArray[np.uint64] = self._bits.random_raw(count)
        halves = (raw >> np.uint64(11)).astype(np.float64) + 0.5
        # The half of the largest number is rounded up, which would be 1.
        return np.minimum(halves * 2.0**-53, BELOW_ONE)

    def exponential(self, count: int) -> NDArray[np.float64]:
        """Return float64[count] with mean 1."""
        return -np.log(self.uniform(count))

    def normal(self, count: int) -> NDArray[np.float64]:
        """Return float64[count] with mean 0 and deviation 1 (Box-Muller, two numbers each)."""
        pairs = self.uniform(2 * count).reshape(count, 2)
        normal: NDArray[np.float64] = np.sqrt(-2 * np.log(pairs[:, 0])) * np.cos(
            2 * np.pi * pairs[:, 1]
        )
        return normal


def rounded(times_us: NDArray[np.float64], step_us: int = 1) -> NDArray[np.int64]:
    """Round to whole steps of microseconds, at most LONGEST_US: int64 of the same length."""
    steps = np.rint(np.minimum(times_us, float(LONGEST_US)) / step_us)
    whole: NDArray[np.int64] = steps.astype(np.int64) * step_us
    return whole

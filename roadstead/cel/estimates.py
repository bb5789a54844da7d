"""Ranges of sizes and costs, with upstream's arithmetic: uint64 that stops at its maximum.

Upstream: cel-go 0.26 checker/cost.go (SizeEstimate, CostEstimate).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

UINT64_MAX: Final = 2**64 - 1
_UINT64_END = float(2**64)


class Estimate(NamedTuple):
    """A size or a cost that lies between two numbers."""

    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum."""
        return Estimate(
            min(self.low + other.low, UINT64_MAX), min(self.high + other.high, UINT64_MAX)
        )

    def times(self, other: Estimate) -> Estimate:
        """Return the product."""
        return Estimate(
            min(self.low * other.low, UINT64_MAX), min(self.high * other.high, UINT64_MAX)
        )

    def scaled(self, factor: float) -> Estimate:
        """Return the product with a factor, rounded up."""
        return Estimate(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Estimate) -> Estimate:
        """Return the smallest range around both."""
        return Estimate(min(self.low, other.low), max(self.high, other.high))


def _scaled(number: int, factor: float) -> int:
    double = float(number)
    if double > 0 and factor > 0 and double > _UINT64_END / factor:
        return UINT64_MAX
    product = double * factor
    if product >= _UINT64_END:
        return UINT64_MAX
    return math.ceil(product)


def fixed(number: int) -> Estimate:
    """Return the range of one number."""
    return Estimate(number, number)


ZERO: Final = fixed(0)
ONE: Final = fixed(1)
UNKNOWN: Final = Estimate(0, UINT64_MAX)
EMPTY_RANGE: Final = Estimate(UINT64_MAX, 0)
"""The range without numbers: its union with another one is the other one."""


class EntrySize(NamedTuple):
    """Sizes of the entries of a list or map; the key of a list is its index."""

    is_list: bool
    key: Estimate
    value: Estimate

    def union(self, other: EntrySize | None) -> EntrySize | None:
        """Return the sizes of entries of either."""
        if other is None:
            return None
        return EntrySize(self.is_list, self.key.union(other.key), self.value.union(other.value))


class CallEstimate(NamedTuple):
    """Cost of a call, without its arguments, and the size of its result if it is known."""

    cost: Estimate
    result: Estimate | None = None

"""Axes of plots: scales that map values to pixels, and the choice of ticks.

Ticks are 1, 2 or 5 times a power of ten, or the measured values if these are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

from roadstead.report.plot_text import is_exact, text_width, tick_texts

MANTISSAS: Final = (1, 2, 5)
MOST_X_TICKS: Final = 10
MOST_Y_TICKS: Final = 6
LOG_FROM: Final = 20.0
"""Minimum ratio between the ends of a logarithmic axis."""

TICK_GAP: Final = 10.0
"""Minimum number of pixels between the texts of two ticks."""

ZERO_GAP: Final = 48.0
"""Pixels between zero and the smallest positive value on a logarithmic axis."""

ROUNDING: Final = 1e-9
"""The part of a step by which a tick may exceed the axis because of rounding."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A value of an axis, its pixel, and its text."""

    value: float
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Map the values low to high to `length` pixels from `start` on (negative: upwards).

    zero_gap: on a logarithmic axis with a zero, the pixels between zero (at `start`) and `low`;
    otherwise 0.
    """

    low: float
    high: float
    start: float
    length: float
    is_log: bool = False
    zero_gap: float = 0.0

    def at(self, value: float) -> float:
        """The pixel of a value; a single value is in the middle."""
        if self.zero_gap and value <= 0.0:
            return self.start
        start, length = self.start + self.zero_gap, self.length - self.zero_gap
        if self.low == self.high:
            return start + length / 2
        if self.is_log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return start + length * share


def x_scale(values: Sequence[float], start: float, length: float) -> Scale:
    """The scale of an x axis: logarithmic if that spreads the values more evenly.

    values: distinct, ascending. A zero is separated on a logarithmic axis.
    """
    positive = [value for value in values if value > 0.0]
    has_zero = values[0] == 0.0
    if values[0] < 0.0 or len(positive) < 2 or not _is_log(values, positive):
        return Scale(values[0], values[-1], start, length)
    gap = ZERO_GAP if has_zero else 0.0
    return Scale(positive[0], positive[-1], start, length, is_log=True, zero_gap=gap)


def _is_log(values: Sequence[float], positive: Sequence[float]) -> bool:
    if positive[-1] / positive[0] < LOG_FROM:
        return False
    logs = [log10(value) for value in positive]
    return _least_gap(logs) >= _least_gap(values)


def _least_gap(values: Sequence[float]) -> float:
    """The smallest distance between neighbours, as a fraction of the range."""
    return min(high - low for low, high in pairwise(values)) / (values[-1] - values[0])


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` multiples of 1, 2 or 5 times a power of ten from low to high."""
    power = floor(log10((high - low) / most))
    while True:
        for mantissa in MANTISSAS:
            multiples = _multiples(low, high, mantissa, power)
            if len(multiples) <= most:
                return multiples
        power += 1


def _multiples(low: float, high: float, mantissa: int, power: int) -> list[float]:
    step = mantissa * 10.0**power
    first, last = ceil(low / step - ROUNDING), floor(high / step + ROUNDING)
    # Dividing by a power of ten is exact where multiplying by its inverse is not: 3 / 10.
    unit, divisor = (10**power, 1) if power >= 0 else (1, 10**-power)
    return [index * mantissa * unit / divisor for index in range(first, last + 1)]


def log_ticks(low: float, high: float) -> Iterator[list[float]]:
    """Candidates, most ticks first: 1, 2, 5 of each decade, each decade, every second decade, …"""
    first, last = floor(log10(low)), ceil(log10(high))
    for mantissas, every in (
        (MANTISSAS, 1),
        *(((1,), each) for each in range(1, last - first + 1)),
    ):
        ticks = [
            mantissa * 10.0**power
            for power in range(first, last + 1)
            if power % every == 0
            for mantissa in mantissas
        ]
        yield [tick for tick in ticks if low * (1 - ROUNDING) <= tick <= high * (1 + ROUNDING)]


def y_axis(low: float, high: float, start: float, length: float) -> tuple[Scale, list[Tick]]:
    """A linear axis that includes zero and ends at ticks. length: negative for upwards."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0
    inner = round_ticks(low, high, MOST_Y_TICKS)
    step = inner[1] - inner[0] if len(inner) > 1 else high - low
    values = [
        *([inner[0] - step] if inner[0] - low > ROUNDING * step else []),
        *inner,
        *([inner[-1] + step] if high - inner[-1] > ROUNDING * step else []),
    ]
    scale = Scale(values[0], values[-1], start, length)
    return scale, _ticks(values, scale)


def x_ticks(values: Sequence[float], scale: Scale, left: float, right: float) -> list[Tick]:
    """The ticks of an x axis; texts do not touch, and stay between left and right.

    The measured values if these are few and short, otherwise round numbers.
    """
    if len(values) == 1 or (len(values) <= MOST_X_TICKS and all(map(is_exact, values))):
        ticks = _ticks(values, scale)
        if _do_not_overlap(ticks) and all(_is_within(each, left, right) for each in ticks):
            return ticks
    most = list[Tick]()
    are_integers = all(value % 1 == 0 for value in values)
    for candidate in _round_candidates(scale):
        if are_integers and not all(each % 1 == 0 for each in candidate):
            continue
        ticks = [each for each in _ticks(candidate, scale) if _is_within(each, left, right)]
        if _do_not_overlap(ticks) and len(ticks) > len(most):
            most = ticks
    return most


def _round_candidates(scale: Scale) -> Iterator[list[float]]:
    zero = [0.0] if scale.zero_gap else []
    if scale.is_log:
        for ticks in log_ticks(scale.low, scale.high):
            yield zero + ticks
    elif scale.low < scale.high:
        for most in range(MOST_X_TICKS, 0, -1):
            yield round_ticks(scale.low, scale.high, most)


def _ticks(values: Sequence[float], scale: Scale) -> list[Tick]:
    texts = tick_texts(values)
    return [Tick(value, scale.at(value), text) for value, text in zip(values, texts, strict=True)]


def _is_within(tick: Tick, left: float, right: float) -> bool:
    half = text_width(tick.text) / 2
    return left <= tick.at - half and tick.at + half <= right


def _do_not_overlap(ticks: Sequence[Tick]) -> bool:
    # (middle, half of the width) of each text.
    spans = [(each.at, text_width(each.text) / 2) for each in ticks]
    return all(
        right - right_half - left - left_half >= TICK_GAP
        for (left, left_half), (right, right_half) in pairwise(spans)
    )

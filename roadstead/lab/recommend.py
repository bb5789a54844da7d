"""Recommendation: mode, number of schedulers and batch for a fleet and load, from a sweep.

A combination is worse than another one only if their 95% intervals are apart by more than a margin.
The rule, in this order: keep the combinations that do not place fewer pods than any other (margin
1%), and of these those that are not slower than the fastest (10%); then those without more score
regret than the least (half a point of 100), then those without more conflicts (0.05); then choose
the fewest schedulers, then the smallest batch. So a simpler combination is preferred to a gain
within the noise. One seed has no interval: then the first combination is named, not recommended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.lab.statistics import Band
from roadstead.lab.studies import Value
from roadstead.lab.sweep import Point

# The margins of the rule: fractions of the best value, points of 100, conflicts per bind.
PLACED_SLACK: Final = 0.01
RATE_SLACK: Final = 0.10
REGRET_SLACK: Final = 0.5
CONFLICT_SLACK: Final = 0.05

PARTITIONED: Final = "partitioned"
"""The mode that has partitions."""

COMPARED_METRICS: Final = ("placed", "pods_per_s", "score_regret", "conflict_fraction")
"""The metrics from which a recommendation is made."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """values: of the axes; reasons: the numbers that led to it, one sentence each.

    is_supported: whether there are intervals that support it.
    """

    text: str
    values: Mapping[str, Value]
    reasons: tuple[str, ...]
    is_supported: bool = True

    @property
    def headline(self) -> str:
        """The first printed line."""
        if self.is_supported:
            return f"Recommended: {self.text}"
        return f"Nothing is recommended from one seed (try --seeds 3). First by it: {self.text}"


def recommend(points: Sequence[Point]) -> Recommendation:
    """Choose a combination; `points` have the metrics of `COMPARED_METRICS` and are not empty."""
    most_placed = _not_less(points, "placed", PLACED_SLACK)
    not_slower = _not_less(most_placed, "pods_per_s", RATE_SLACK)
    least_regret = _not_more(not_slower, "score_regret", REGRET_SLACK)
    best = min(
        _not_more(least_regret, "conflict_fraction", CONFLICT_SLACK), key=_schedulers_and_batch
    )
    rates = [each.bands["pods_per_s"] for each in points]
    return Recommendation(
        _described(best),
        best.values,
        tuple(_reasons(best, points, most_placed, not_slower)),
        is_supported=any(each.low < each.high for each in rates),
    )


def _not_less(points: Sequence[Point], metric: str, slack: float) -> list[Point]:
    """Points whose metric is not lower than the highest one by more than the fraction `slack`."""
    most = max((point.bands[metric] for point in points), key=lambda each: each.mean)
    return [each for each in points if each.bands[metric].high >= most.low * (1 - slack)]


def _not_more(points: Sequence[Point], metric: str, slack: float) -> list[Point]:
    """Points whose metric is not higher than the lowest one by more than `slack`."""
    least = min((point.bands[metric] for point in points), key=lambda each: each.mean)
    return [each for each in points if each.bands[metric].low <= least.high + slack]


def _mean(point: Point, metric: str) -> float:
    return point.bands[metric].mean


def _schedulers_and_batch(point: Point) -> tuple[float, float]:
    return (
        float(str(point.values.get("schedulers", 1))),
        float(str(point.values.get("batch", 1))),
    )


def _described(point: Point) -> str:
    """The values of the axes; partitions only if the mode has them."""
    has_partitions = point.values.get("mode", PARTITIONED) == PARTITIONED
    return ", ".join(
        f"{name} {value}"
        for name, value in point.values.items()
        if has_partitions or not name.startswith("partition")
    )


def _interval(rate: Band) -> str:
    if rate.low == rate.high:
        return "one seed, so that nothing is known of its spread"
    # Rates are never negative, even if the interval of a few seeds is.
    return f"95%: {max(0.0, rate.low):,.0f} to {rate.high:,.0f}"


def _compared(best: Point, fastest: Point) -> str:
    if best is fastest:
        return "none is faster"
    return f"the fastest, {_described(fastest)}, has {_mean(fastest, 'pods_per_s'):,.0f}"


def _reasons(
    best: Point, points: Sequence[Point], most_placed: Sequence[Point], not_slower: Sequence[Point]
) -> list[str]:
    rate = best.bands["pods_per_s"]
    fastest = max(most_placed, key=lambda point: _mean(point, "pods_per_s"))
    least = min(points, key=lambda point: _mean(point, "score_regret"))
    return [
        f"It places {_mean(best, 'placed'):,.0f} pods; {len(most_placed)} of {len(points)} "
        "combinations place as many.",
        f"{rate.mean:,.0f} pods/s ({_interval(rate)}); {_compared(best, fastest)}. "
        f"Not shown to be slower by more than {RATE_SLACK:.0%}: {len(not_slower)}.",
        f"Score regret {_mean(best, 'score_regret'):.2f} points of 100; the least of all is "
        f"{_mean(least, 'score_regret'):.2f} ({_described(least)}).",
        f"{_mean(best, 'conflict_fraction'):.3f} conflicts for each pod bound.",
    ]

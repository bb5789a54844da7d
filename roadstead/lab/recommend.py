"""Recommendation: mode, number of schedulers and batch for a fleet and load, from a sweep.

The rule, in this order: of the combinations that are not shown to place fewer pods than any (by
1%), those that are not shown to be slower than the fastest (by 10%); of these those that are not
shown to have more score regret than the least (by half a point of 100), then more conflicts (by
0.05); then the fewest schedulers, then the smallest batch. "Shown" is what 95% intervals show: two
combinations are apart where their intervals are, by more than that. What is simplest is preferred
to a gain in the noise. Of one seed there is no interval, and nothing is recommended: the first is
only named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.lab.statistics import Band
from roadstead.lab.studies import Value
from roadstead.lab.sweep import Point

PLACED_SLACK: Final = 0.01
RATE_SLACK: Final = 0.10
REGRET_SLACK: Final = 0.5
CONFLICT_SLACK: Final = 0.05

PARTITIONED: Final = "partitioned"
"""The mode that has partitions."""

FIGURES: Final = ("placed", "pods_per_s", "score_regret", "conflict_fraction")
"""What it is made from."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """values: of the axes; reasons: the numbers that led to it, a sentence each.

    is_supported: whether there are intervals for it to rest on.
    """

    text: str
    values: Mapping[str, Value]
    reasons: tuple[str, ...]
    is_supported: bool = True

    @property
    def headline(self) -> str:
        """What is printed first."""
        if self.is_supported:
            return f"Recommended: {self.text}"
        return f"Nothing is recommended from one seed (try --seeds 3). First by it: {self.text}"


def recommend(points: Sequence[Point]) -> Recommendation:
    """The combination to take; `points` have the figures of `FIGURES` and may not be empty."""
    whole = _not_less(points, "placed", PLACED_SLACK)
    quick = _not_less(whole, "pods_per_s", RATE_SLACK)
    exact = _not_more(quick, "score_regret", REGRET_SLACK)
    best = min(_not_more(exact, "conflict_fraction", CONFLICT_SLACK), key=_size)
    rates = [each.bands["pods_per_s"] for each in points]
    return Recommendation(
        _described(best),
        best.values,
        tuple(_reasons(best, points, whole, quick)),
        is_supported=any(each.low < each.high for each in rates),
    )


def _not_less(points: Sequence[Point], figure: str, slack: float) -> list[Point]:
    """Those that are not shown to have less of a figure than the most, by a share of it."""
    most = max((point.bands[figure] for point in points), key=lambda each: each.mean)
    return [each for each in points if each.bands[figure].high >= most.low * (1 - slack)]


def _not_more(points: Sequence[Point], figure: str, slack: float) -> list[Point]:
    """Those that are not shown to have more of a figure than the least, by so much."""
    least = min((point.bands[figure] for point in points), key=lambda each: each.mean)
    return [each for each in points if each.bands[figure].low <= least.high + slack]


def _mean(point: Point, figure: str) -> float:
    return point.bands[figure].mean


def _size(point: Point) -> tuple[float, float]:
    return (
        float(str(point.values.get("schedulers", 1))),
        float(str(point.values.get("batch", 1))),
    )


def _described(point: Point) -> str:
    """What was swept; of partitions only where the mode has some."""
    has_partitions = point.values.get("mode", PARTITIONED) == PARTITIONED
    return ", ".join(
        f"{name} {value}"
        for name, value in point.values.items()
        if has_partitions or not name.startswith("partition")
    )


def _interval(rate: Band) -> str:
    if rate.low == rate.high:
        return "one seed, so that nothing is known of its spread"
    # A rate is never below zero, whatever an interval of few seeds says.
    return f"95%: {max(0.0, rate.low):,.0f} to {rate.high:,.0f}"


def _compared(best: Point, fastest: Point) -> str:
    if best is fastest:
        return "none is faster"
    return f"the fastest, {_described(fastest)}, has {_mean(fastest, 'pods_per_s'):,.0f}"


def _reasons(
    best: Point, points: Sequence[Point], whole: Sequence[Point], quick: Sequence[Point]
) -> list[str]:
    rate = best.bands["pods_per_s"]
    fastest = max(whole, key=lambda point: _mean(point, "pods_per_s"))
    least = min(points, key=lambda point: _mean(point, "score_regret"))
    return [
        f"It places {_mean(best, 'placed'):,.0f} pods; {len(whole)} of {len(points)} combinations "
        "place as many.",
        f"{rate.mean:,.0f} pods/s ({_interval(rate)}); {_compared(best, fastest)}. "
        f"Not shown to be slower by more than {RATE_SLACK:.0%}: {len(quick)}.",
        f"Score regret {_mean(best, 'score_regret'):.2f} points of 100; the least of all is "
        f"{_mean(least, 'score_regret'):.2f} ({_described(least)}).",
        f"{_mean(best, 'conflict_fraction'):.3f} conflicts for each pod bound.",
    ]

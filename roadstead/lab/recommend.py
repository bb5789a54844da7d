"""Recommendation: mode, number of schedulers and batch for a fleet and load, from a sweep.

The rule, in this order: of the combinations that place as many pods as any (within 1%), those
whose throughput is within 10% of the best; of these the one with the least score regret (in steps
of half a point of 100), then the fewest conflicts (in steps of 0.05), then the fewest schedulers,
then the smallest batch. What is simplest and decides best is preferred to a gain in the noise.
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
REGRET_STEP: Final = 0.5
CONFLICT_STEP: Final = 0.05

FIGURES: Final = ("placed", "pods_per_s", "score_regret", "conflict_fraction")
"""What it is made from."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """values: of the axes; reasons: the numbers that led to it, a sentence each."""

    text: str
    values: Mapping[str, Value]
    reasons: tuple[str, ...]


def recommend(points: Sequence[Point]) -> Recommendation:
    """The combination to take; `points` have the figures of `FIGURES` and may not be empty."""
    most = max(_mean(point, "placed") for point in points)
    whole = [each for each in points if _mean(each, "placed") >= most * (1 - PLACED_SLACK)]
    fastest = max(_mean(point, "pods_per_s") for point in whole)
    quick = [each for each in whole if _mean(each, "pods_per_s") >= fastest * (1 - RATE_SLACK)]
    best = min(quick, key=_cost)
    return Recommendation(_told(best), best.values, tuple(_reasons(best, points, whole, quick)))


def _mean(point: Point, figure: str) -> float:
    return point.bands[figure].mean


def _cost(point: Point) -> tuple[float, ...]:
    return (
        round(_mean(point, "score_regret") / REGRET_STEP),
        round(_mean(point, "conflict_fraction") / CONFLICT_STEP),
        float(str(point.values.get("schedulers", 1))),
        float(str(point.values.get("batch", 1))),
    )


def _told(point: Point) -> str:
    return ", ".join(f"{name} {value}" for name, value in point.values.items())


def _interval(rate: Band) -> str:
    if rate.low == rate.high:
        return "one seed, so that nothing is known of its spread"
    return f"95%: {rate.low:,.0f} to {rate.high:,.0f}"


def _compared(best: Point, fastest: Point) -> str:
    if best is fastest:
        return "none is faster"
    return f"the fastest, {_told(fastest)}, has {_mean(fastest, 'pods_per_s'):,.0f}"


def _reasons(
    best: Point, points: Sequence[Point], whole: Sequence[Point], quick: Sequence[Point]
) -> list[str]:
    rate = best.bands["pods_per_s"]
    fastest = max(whole, key=lambda point: _mean(point, "pods_per_s"))
    least = min(points, key=lambda point: _mean(point, "score_regret"))
    reasons = [
        f"It places {_mean(best, 'placed'):,.0f} pods; {len(whole)} of {len(points)} combinations "
        "place as many.",
        f"{rate.mean:,.0f} pods/s ({_interval(rate)}); {_compared(best, fastest)}. "
        f"Within {RATE_SLACK:.0%} of the fastest: {len(quick)}.",
        f"Score regret {_mean(best, 'score_regret'):.2f} points of 100; the least of all is "
        f"{_mean(least, 'score_regret'):.2f} ({_told(least)}).",
        f"{_mean(best, 'conflict_fraction'):.3f} conflicts for each pod bound.",
    ]
    return reasons

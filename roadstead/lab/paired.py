"""Paired differences of two variants that were played with the same seeds, with 95% intervals.

The t interval assumes that the differences are normally distributed; the bootstrap does not, but is
too narrow for few pairs. So a difference is shown only if both intervals leave out 0
(docs/decisions/0056).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from roadstead.lab.statistics import Band, band

RESAMPLES: Final = 10_000
RESAMPLES_SEED: Final = 0
DRAWN_AT_A_TIME: Final = 1 << 20
"""Number of random indices in memory, which bounds it for any number of pairs."""

QUANTILES: Final = (0.025, 0.975)

NO_INTERVAL: Final = "no interval: one pair"
NO_DIFFERENCE: Final = "no difference shown"
LOWER: Final = "B lower"
HIGHER: Final = "B higher"


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of a metric in two runs that were played with the same seed. run: their name."""

    run: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Difference:
    """B minus A of one metric. a, b: means. student, bootstrap: 95% intervals; None for one pair.

    is_different: whether some pair has different values. values: of each pair.
    """

    metric: str
    pairs: int
    a: float
    b: float
    student: Band | None
    bootstrap: Band | None
    is_different: bool
    values: tuple[Pair, ...] = ()

    @property
    def difference(self) -> float:
        return self.b - self.a

    @property
    def interval(self) -> tuple[float, float] | None:
        """From the lower to the higher end of both intervals: without 0 in a shown difference."""
        if self.student is None or self.bootstrap is None:
            return None
        both = self.student, self.bootstrap
        return min(each.low for each in both), max(each.high for each in both)

    @property
    def verdict(self) -> str:
        """Conclusion from the intervals."""
        if self.student is None or self.bootstrap is None:
            return NO_INTERVAL
        both = self.student, self.bootstrap
        if all(each.high < 0 for each in both):
            return LOWER
        return HIGHER if all(each.low > 0 for each in both) else NO_DIFFERENCE


def difference(
    metric: str, a: Sequence[float], b: Sequence[float], runs: Sequence[str] = ()
) -> Difference:
    """Compare a metric of two variants; values at one index are a pair. ValueError without any.

    runs: names of the pairs, by default their numbers.
    """
    names = runs or [str(number) for number in range(len(a))]
    pairs = tuple(Pair(*each) for each in zip(names, a, b, strict=True))
    differences = [each.difference for each in pairs]
    student = resampled = None
    if len(differences) > 1:
        student, resampled = band(differences), bootstrap(differences)
    return Difference(
        metric, len(pairs), fmean(a), fmean(b), student, resampled, any(differences), pairs
    )


def bootstrap(values: Sequence[float]) -> Band:
    """Return the mean, and its interval by the percentiles of resampled means."""
    array = np.array(values, dtype=np.float64)
    random = np.random.default_rng(RESAMPLES_SEED)
    rows = max(1, DRAWN_AT_A_TIME // len(array))
    means = []
    for start in range(0, RESAMPLES, rows):
        shape = min(rows, RESAMPLES - start), len(array)
        means.append(array[random.integers(0, len(array), shape)].mean(axis=1))
    low, high = np.quantile(np.concatenate(means), QUANTILES).tolist()
    return Band(fmean(values), low, high)


Metrics = Mapping[str, float]


def compare(a: Mapping[Hashable, Metrics], b: Mapping[Hashable, Metrics]) -> list[Difference]:
    """Compare all metrics that both variants have. a, b: key of a run, as its seed, → metrics.

    Runs without a partner are left out, and pairs without the metric. Empty without any pair.
    """
    keys = [key for key in a if key in b]
    names = dict.fromkeys(name for key in keys for name in (*a[key], *b[key]))
    found = []
    for name in names:
        shared = [key for key in keys if name in a[key] and name in b[key]]
        if shared:
            before, after = ([runs[key][name] for key in shared] for runs in (a, b))
            found.append(difference(name, before, after, [*map(_run_name, shared)]))
    return found


def _run_name(key: Hashable) -> str:
    """Name a pair of runs: by its seed, and before it by its variant if there are several."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)

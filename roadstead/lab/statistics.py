"""Confidence bands: the mean of repeats, and the interval of the true mean with 95% confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Final

STUDENT_95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for 1, 2, … degrees of freedom, two-sided 95%."""

NORMAL_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Band:
    """mean, and its 95% confidence interval from low to high (a point for one repeat)."""

    mean: float
    low: float
    high: float


def band(metrics: Sequence[float]) -> Band:
    """The band of independent repeats of one metric. Raises ValueError if there are none."""
    mean = fmean(metrics)
    freedom = len(metrics) - 1
    if not freedom:
        return Band(mean, mean, mean)
    quantile = STUDENT_95[freedom - 1] if freedom <= len(STUDENT_95) else NORMAL_95
    half = quantile * stdev(metrics) / sqrt(len(metrics))
    return Band(mean, mean - half, mean + half)


def share(part: float, total: float) -> float:
    """part / total; 0 if total is 0."""
    return part / total if total else 0.0

"""Smallest and largest raw scores, with rows that a plugin leaves unscored."""

from __future__ import annotations

import numpy as np

from roadstead.framework.plugin import IGNORED, Extremes


def of(*raw: int) -> Extremes:
    return Extremes.of(np.array(raw, dtype=np.int64))


def test_ignored_rows_do_not_lower_the_minimum() -> None:
    assert of(3, IGNORED, 7) == Extremes(3, 7)


def test_without_scored_rows_there_are_no_extremes() -> None:
    assert of(IGNORED, IGNORED) == Extremes(IGNORED, IGNORED)

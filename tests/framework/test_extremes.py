"""Smallest and largest raw scores, with rows that a plugin leaves unscored."""

from __future__ import annotations

import numpy as np

from roadstead.framework.plugin import IGNORED, Extremes


def of(*raw: int) -> Extremes:
    return Extremes.of(np.array(raw, dtype=np.int64))


def test_ignored_rows_do_not_lower_the_minimum() -> None:
    assert of(3, IGNORED, 7) == Extremes(3, 7)


def test_where_every_row_is_ignored_there_are_no_extremes() -> None:
    assert of(IGNORED, IGNORED) == Extremes(IGNORED, IGNORED)


def test_a_shard_of_ignored_rows_adds_nothing_on_either_side() -> None:
    assert of(IGNORED).merge(of(2, 5)) == Extremes(2, 5)
    assert of(2, 5).merge(of(IGNORED)) == Extremes(2, 5)
    assert of(IGNORED).merge(of(IGNORED)) == Extremes(IGNORED, IGNORED)


def test_shards_merge_to_the_outermost_scores() -> None:
    assert of(2, 5).merge(of(4, 9)) == Extremes(2, 9)

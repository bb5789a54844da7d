"""Paired differences: what is shown, and what is not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.lab.paired import (
    HIGHER,
    LOWER,
    NO_DIFFERENCE,
    NO_INTERVAL,
    bootstrap,
    compare,
    difference,
)

VALUES = st.lists(st.integers(-1000, 1000).map(float), min_size=2, max_size=30)


@settings(deadline=None, max_examples=30)
@given(VALUES)
def test_the_same_runs_show_no_difference(values):
    found = difference("wait", values, values)

    assert found.verdict == NO_DIFFERENCE
    assert not found.is_different
    assert found.difference == 0


@settings(deadline=None, max_examples=30)
@given(VALUES, st.integers(1, 1000))
def test_a_shift_of_every_pair_is_shown_however_the_pairs_differ(values, shift):
    higher = [each + shift for each in values]

    assert difference("wait", values, higher).verdict == HIGHER
    assert difference("wait", higher, values).verdict == LOWER


@settings(deadline=None, max_examples=30)
@given(VALUES)
def test_exchanged_variants_have_the_opposite_difference(values):
    other = values[::-1]
    there, back = difference("wait", values, other), difference("wait", other, values)

    assert there.difference == -back.difference
    assert there.student.low == pytest.approx(-back.student.high)


@settings(deadline=None, max_examples=30)
@given(VALUES, st.randoms())
def test_the_shown_interval_leaves_out_zero_just_if_a_difference_is_shown(values, random):
    found = difference("wait", values, random.sample(values, len(values)))
    low, high = found.interval

    assert (low > 0 or high < 0) == (found.verdict in (LOWER, HIGHER))
    assert low <= min(found.student.low, found.bootstrap.low)


def test_a_pair_has_the_name_of_its_runs():
    values = {"metric": 1.0}

    (by_seed,) = compare({3: values}, {3: values})
    (by_variant,) = compare({("binpack", 3): values}, {("binpack", 3): values})

    assert [each.run for each in by_seed.values] == ["3"]
    assert [each.run for each in by_variant.values] == ["binpack, 3"]


def test_one_pair_has_no_interval():
    found = difference("wait", [1.0], [5.0])

    assert (found.student, found.bootstrap, found.verdict) == (None, None, NO_INTERVAL)


def test_noise_around_zero_is_no_difference_in_most_trials():
    random = np.random.default_rng(1)
    verdicts = []
    for _ in range(200):
        a, b = random.normal(size=(2, 10))
        verdicts.append(difference("wait", a.tolist(), b.tolist()).verdict)

    assert verdicts.count(NO_DIFFERENCE) >= 180, "95% intervals miss at most a few"


def test_the_bootstrap_is_close_to_the_known_interval_of_a_mean():
    values = np.random.default_rng(2).normal(10.0, 2.0, 400).tolist()
    found = bootstrap(values)

    assert found.mean - found.low == pytest.approx(1.96 * 2.0 / 20, rel=0.15)
    assert bootstrap(values) == found, "the same values give the same interval"


def test_only_runs_with_a_partner_and_metrics_of_both_are_compared():
    a = {1: {"wait": 1.0, "only a": 1.0}, 2: {"wait": 2.0}, 3: {"wait": 9.0}}
    b = {1: {"wait": 2.0}, 2: {"wait": 4.0, "only b": 1.0}}

    (found,) = compare(a, b)

    assert (found.metric, found.pairs, found.a, found.b) == ("wait", 2, 1.5, 3.0)
    assert compare(a, {7: {"wait": 1.0}}) == []

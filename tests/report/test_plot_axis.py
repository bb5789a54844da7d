"""Proves the axes of plots: round ticks, texts that do not touch, scales that fit the values."""

from itertools import pairwise
from math import floor, isclose, log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.report.plot_axis import (
    MOST_X_TICKS,
    MOST_Y_TICKS,
    TICK_GAP,
    Scale,
    log_ticks,
    round_ticks,
    x_scale,
    x_ticks,
    y_axis,
)
from roadstead.report.plot_text import text_width

LEFT, RIGHT, MARGIN = 50.0, 550.0, 40.0
AMOUNTS = st.floats(1e-9, 1e12) | st.floats(-1e12, -1e-9) | st.just(0.0)
VALUES = st.lists(
    st.floats(1e-6, 1e9) | st.integers(0, 1_000_000).map(float),
    min_size=1,
    max_size=30,
    unique=True,
).map(sorted)


def is_round(step):
    """Whether a number is 1, 2 or 5 times a power of ten."""
    mantissa = step / 10 ** floor(log10(step) + 1e-9)
    return any(isclose(mantissa, each, rel_tol=1e-6) for each in (1, 2, 5, 10))


def ticks_of(values):
    return x_ticks(values, x_scale(values, LEFT, RIGHT - LEFT), LEFT - MARGIN, RIGHT + MARGIN)


def texts_of(values):
    return [tick.text for tick in ticks_of([float(value) for value in values])]


@given(st.tuples(AMOUNTS, AMOUNTS).map(sorted), st.integers(1, 12))
def test_round_ticks_are_multiples_of_a_round_step_within_the_ends(ends, most):
    low, high = ends
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return

    ticks = round_ticks(low, high, most)

    steps = [after - before for before, after in pairwise(ticks)]
    slack = 1e-6 * (high - low)
    assert len(ticks) <= most
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert all(isclose(step, steps[0], rel_tol=1e-3) for step in steps)
    if max(abs(low), abs(high)) < 1e6 * (high - low):
        assert all(is_round(step) for step in steps)


@given(AMOUNTS, AMOUNTS)
def test_an_axis_of_amounts_includes_zero_and_ends_at_round_ticks(one, other):
    low, high = sorted((one, other))

    scale, ticks = y_axis(low, high, 300.0, -250.0)

    slack = 1e-6 * (scale.high - scale.low)
    assert scale.low - slack <= low <= high <= scale.high + slack
    assert any(tick.value == 0.0 for tick in ticks)
    assert (ticks[0].value, ticks[-1].value) == (scale.low, scale.high)
    assert 2 <= len(ticks) <= MOST_Y_TICKS + 2, "at most one round tick beyond each end"
    assert is_round(ticks[1].value - ticks[0].value)
    assert len({tick.text for tick in ticks}) == len(ticks)


@given(VALUES)
def test_texts_of_ticks_do_not_touch_and_stay_within_the_picture(values):
    ticks = ticks_of(values)

    spans = [
        (tick.at - text_width(tick.text) / 2, tick.at + text_width(tick.text) / 2) for tick in ticks
    ]
    assert ticks
    assert all(start >= LEFT - MARGIN and end <= RIGHT + MARGIN for start, end in spans)
    assert all(after[0] - before[1] >= TICK_GAP for before, after in pairwise(spans))
    assert len({tick.text for tick in ticks}) == len(ticks)


@given(VALUES)
def test_pixels_are_in_the_order_of_the_values_and_within_the_axis(values):
    scale = x_scale(values, LEFT, RIGHT - LEFT)

    pixels = [scale.at(value) for value in values]

    assert pixels == sorted(pixels)
    assert all(LEFT - 1e-6 <= pixel <= RIGHT + 1e-6 for pixel in pixels)


@given(st.floats(1e-6, 1e3), st.floats(20.0, 1e9))
def test_logarithmic_ticks_are_1_2_or_5_times_a_power_of_ten(low, ratio):
    for ticks in log_ticks(low, low * ratio):
        assert all(is_round(tick) for tick in ticks)
        assert all(low * 0.999 <= tick <= low * ratio * 1.001 for tick in ticks)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((1, 2, 4, 8), ["1", "2", "4", "8"]),
        ((1, 5, 10, 20, 40, 80), ["1", "5", "10", "20", "40", "80"]),
        ((100, 1_000, 100_000), ["100", "1,000", "100,000"]),
        ((1_000, 1_000_000), ["1,000", "1M"]),
        ((7,), ["7"]),
        ((100, 100.1, 200), ["100", "120", "140", "160", "180", "200"]),
        (range(30), ["0", "5", "10", "15", "20", "25"]),
        ([1.4**power for power in range(15)], ["1", "2", "5", "10", "20", "50", "100"]),
        (range(1, 12), ["2", "4", "6", "8", "10"]),
        ((1_000_000, 1_000_001, 1_000_003), ["1,000,000", "1,000,001", "1,000,002", "1,000,003"]),
    ],
)
def test_ticks_are_the_values_if_few_and_round_numbers_otherwise(values, texts):
    assert texts_of(values) == texts


def test_values_that_are_integers_have_no_ticks_between_integers():
    assert texts_of([0, *(1 + each / 100 for each in range(10))]) == [
        *("0", "0.2", "0.4", "0.6", "0.8", "1"),
    ]
    assert all("." not in text for text in texts_of([100_000 + each for each in range(3)]))
    assert [tick.text for tick in ticks_of(list(range(1, 12)))] == ["2", "4", "6", "8", "10"]


def test_a_logarithmic_axis_of_many_decades_omits_some():
    texts = texts_of([10.0**power for power in range(-6, 7)])

    assert len(texts) <= MOST_X_TICKS
    assert {"0.000001", "1", "1M"} <= set(texts)


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        ((1, 2, 4, 8), False),
        ((1, 2, 4, 8, 16, 32), True),
        ((10, 50, 100, 150, 200), False),
        (tuple(range(1, 31)), False),
        ((100, 1_000, 5_000, 20_000, 100_000), True),
        ((0, 0.1, 1, 10, 100), True),
        ((0, 10), False),
        ((-1, 1, 100), False),
        ((5,), False),
    ],
)
def test_an_axis_is_logarithmic_if_that_spreads_the_values_more_evenly(values, is_log):
    assert x_scale([float(value) for value in values], 0.0, 100.0).is_log == is_log


def test_equal_ratios_have_equal_distances_on_a_logarithmic_axis():
    scale = x_scale([0.1, 1.0, 10.0], 0.0, 100.0)

    assert [scale.at(value) for value in (0.1, 1.0, 10.0)] == pytest.approx([0.0, 50.0, 100.0])


def test_zero_is_apart_on_a_logarithmic_axis():
    scale = x_scale([0.0, 1.0, 10.0, 100.0], 10.0, 500.0)

    assert scale.at(0.0) == 10.0
    assert scale.at(1.0) == 10.0 + scale.zero_gap
    assert scale.at(100.0) == 510.0


def test_a_single_value_is_in_the_middle():
    assert Scale(7.0, 7.0, 10.0, 100.0).at(7.0) == 60.0

"""Distributions of durations: their parameters hold, and times are whole milliseconds."""

from __future__ import annotations

import math
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.scenario.durations import (
    DurationsBase,
    EmpiricalTimes,
    ExponentialTimes,
    FixedTimes,
    LognormalTimes,
    UniformTimes,
    WeibullTimes,
)
from roadstead.scenario.random_stream import LONGEST_US, RandomStream
from roadstead.simulator.times import NEVER_US

MINUTE_US = 60_000_000
COUNT = 200_000
CENTURY_US = 36_500 * 24 * 60 * MINUTE_US


def drawn(times: DurationsBase, seed: int = 0) -> np.ndarray:
    return times.block(RandomStream(seed, 0, "test"), COUNT)


def test_fixed_times_are_all_the_same() -> None:
    assert set(drawn(FixedTimes(7)).tolist()) == {7}
    assert set(drawn(FixedTimes()).tolist()) == {NEVER_US}


@pytest.mark.parametrize(("median", "p99"), [(20, 360), (5, 5), (1, 10_000)])
def test_lognormal_times_have_their_median_and_p99(median: int, p99: int) -> None:
    times = drawn(LognormalTimes(median * MINUTE_US, p99 * MINUTE_US)) / MINUTE_US

    assert np.quantile(times, 0.5) == pytest.approx(median, rel=0.03)
    assert np.quantile(times, 0.99) == pytest.approx(p99, rel=0.06)


def test_the_largest_number_of_a_stream_is_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = SimpleNamespace(random_raw=lambda count: np.full(count, 2**64 - 1, np.uint64))
    monkeypatch.setattr(np.random, "PCG64", lambda _: bits)
    stream = RandomStream(0, 0, "test")
    assert stream.uniform(1) < 1
    assert EmpiricalTimes(np.array([3, 5])).block(stream, 1).tolist() == [5]


def test_exponential_times_have_their_mean() -> None:
    times = drawn(ExponentialTimes(30 * MINUTE_US)) / MINUTE_US

    assert times.mean() == pytest.approx(30, rel=0.02)
    assert np.quantile(times, 0.5) == pytest.approx(30 * math.log(2), rel=0.02)


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0])
def test_a_part_of_weibull_times_exceeds_the_scale(shape: float) -> None:
    times = drawn(WeibullTimes(30 * MINUTE_US, shape)) / MINUTE_US

    assert (times > 30).mean() == pytest.approx(math.exp(-1), abs=0.01)
    assert times.mean() == pytest.approx(30 * math.gamma(1 + 1 / shape), rel=0.03)


def test_uniform_times_are_within_their_bounds() -> None:
    times = drawn(UniformTimes(5 * MINUTE_US, 15 * MINUTE_US)) / MINUTE_US

    assert times.min() >= 5
    assert times.max() <= 15
    assert times.mean() == pytest.approx(10, rel=0.01)


def test_empirical_times_are_those_of_the_file_with_equal_probability() -> None:
    times = drawn(EmpiricalTimes(np.array([1, 5, 5, 9], dtype=np.int64)))

    values, counts = np.unique(times, return_counts=True)
    assert values.tolist() == [1, 5, 9]
    assert (counts / COUNT).tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.01)


TIMES = st.integers(1, CENTURY_US)


@given(
    st.one_of(
        st.builds(ExponentialTimes, TIMES),
        st.builds(WeibullTimes, TIMES, st.floats(0.1, 100)),
        st.builds(lambda a, b: LognormalTimes(min(a, b), max(a, b)), TIMES, TIMES),
        st.builds(lambda a, b: UniformTimes(min(a, b), max(a, b)), TIMES, TIMES),
    ),
    st.integers(0, 2**63 - 1),
)
def test_times_of_all_parameters_are_whole_and_within_int64(
    times: DurationsBase, seed: int
) -> None:
    found = times.block(RandomStream(seed, 0, "test"), 500)

    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert (found <= LONGEST_US).all()
    assert found.tolist() == times.block(RandomStream(seed, 0, "test"), 500).tolist()


def test_each_reader_of_a_distribution_has_its_own_draws() -> None:
    times = ExponentialTimes(MINUTE_US)

    first = list(islice(times.draws(0, 0), 5_000))

    assert first == list(islice(times.draws(0, 0), 5_000))
    assert first != list(islice(times.draws(0, 1), 5_000))
    assert first != list(islice(times.draws(1, 0), 5_000))
    assert all(each % 1_000 == 0 for each in first), "milliseconds"

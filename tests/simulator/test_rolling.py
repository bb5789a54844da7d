"""The arithmetic of rollouts: what upstream states, and what must hold for any sizes."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.simulator.controllers.rolling import (
    new_set_size,
    proportional_sizes,
    resolve_bounds,
)
from roadstead.simulator.share import Share


@dataclass
class Sized:
    replicas: int
    max_replicas: int
    order: int


def percent(number: int) -> Share:
    return Share(basis_points=number * 100)


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "bounds"),
    [
        (percent(0), percent(0), 10, (0, 1)),
        (percent(39), percent(39), 10, (4, 3)),
        (percent(25), percent(25), 3, (1, 0)),
        (percent(25), percent(25), 1, (1, 0)),
        (percent(10), percent(10), 5, (1, 0)),
        (percent(0), percent(10), 5, (0, 1)),
        (Share(2), Share(20), 10, (2, 10)),
        (Share(0), Share(0), 0, (0, 0)),
    ],
)
def test_percentages_of_surge_are_rounded_up_and_of_missing_pods_down(
    surge, unavailable, replicas, bounds
):
    assert resolve_bounds(surge, unavailable, replicas) == bounds


@pytest.mark.parametrize(
    ("size", "old", "replicas", "surge", "expected"),
    [
        (0, 10, 10, 0, 0),
        (0, 10, 10, 2, 2),
        (0, 5, 10, 2, 7),
        (2, 10, 10, 2, 2),
        (2, 0, 6, 10, 6),
        (5, 0, 1, 1, 5),
    ],
)
def test_the_new_set_grows_as_far_as_surge_and_replicas_allow(size, old, replicas, surge, expected):
    assert new_set_size(size, size + old, replicas, surge) == expected


@pytest.mark.parametrize(
    ("before", "after", "sizes", "expected"),
    [
        # Newest set first. All without surge.
        (5, 10, [2, 3], [4, 6]),
        (5, 3, [2, 3], [1, 2]),
        (9, 4, [8, 1], [4, 0]),
        (7, 10, [2, 3, 2], [3, 4, 3]),
        (13, 8, [2, 8, 3], [1, 5, 2]),
        (3, 4, [1, 1, 1], [2, 1, 1]),
        (3, 2, [1, 1, 1], [1, 1, 0]),
        (4, 5, [2, 2], [3, 2]),
        (6, 0, [3, 3], [0, 0]),
    ],
)
def test_sets_are_scaled_in_proportion(before, after, sizes, expected):
    sets = [Sized(size, before, -index) for index, size in enumerate(sizes)]

    assert proportional_sizes(sets, after, 0) == expected


@given(
    st.lists(st.integers(1, 200), min_size=2, max_size=6), st.integers(0, 900), st.integers(0, 50)
)
def test_scaled_sets_have_together_all_pods_that_are_allowed(sizes, replicas, surge):
    before = sum(sizes)
    sets = [Sized(size, before, index) for index, size in enumerate(sizes)]

    scaled = proportional_sizes(sets, replicas, surge)

    most = replicas + surge if replicas else 0
    assert sum(scaled) == most
    assert min(scaled) >= 0
    if most >= before:
        assert all(new >= old for new, old in zip(scaled, sizes, strict=True)), "one was shrunk"
    else:
        assert all(new <= old for new, old in zip(scaled, sizes, strict=True)), "one has grown"

"""Proves the placement of tasks by the model's schedulers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.lab.placement import PLACEMENTS, least_allocated, most_allocated, sampled

CAPACITY = np.array([4, 8])
ONE = np.array([1, 2])


def placed(name, free, count, seed=0):
    random = np.random.default_rng(seed)
    return PLACEMENTS[name](np.array(free), CAPACITY, ONE, count, random).tolist()


@pytest.mark.parametrize("name", PLACEMENTS)
def test_tasks_are_placed_only_on_machines_with_enough_free_resources(name):
    free = [[2, 8], [0, 8], [4, 2], [1, 1]]

    machines = placed(name, free, 9)

    assert sorted(machines) == [0, 0, 2]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_no_task_is_placed_if_none_fits(name):
    assert placed(name, [[0, 0], [0, 8]], 3) == []


def test_first_fit_chooses_every_machine_with_free_resources_equally_often():
    free = [[4, 8]] * 4 + [[0, 0]] * 4

    counts = np.bincount(
        [placed("first-fit", free, 1, seed)[0] for seed in range(2000)], minlength=8
    )

    assert counts[4:].sum() == 0
    assert (abs(counts[:4] - 500) < 80).all()


def test_spread_chooses_the_emptiest_machine_for_each_task():
    assert placed("spread", [[4, 8], [2, 4], [1, 2]], 4) in ([0, 0, 0, 1], [0, 0, 1, 0])


def test_pack_fills_the_fullest_machine_before_the_next():
    assert placed("pack", [[4, 8], [2, 4], [1, 2]], 4) == [2, 1, 1, 0]


def test_scores_are_integers_as_in_the_scheduler():
    free = np.array([[3, 8], [0, 0], [1, 3]])

    assert least_allocated(free, CAPACITY).tolist() == [87, 0, 31]
    assert most_allocated(free, CAPACITY).tolist() == [12, 100, 68]


@pytest.mark.parametrize("name", ["spread", "pack"])
def test_machines_of_several_shapes_are_scored_by_their_own_capacity(name):
    free, capacity = np.array([[4, 8], [4, 8]]), np.array([[4, 8], [40, 80]])
    random = np.random.default_rng(0)

    machines = PLACEMENTS[name](free, capacity, ONE, 1, random)

    assert machines.tolist() == [0 if name == "spread" else 1]


def test_a_sample_of_all_machines_equals_scoring_all():
    free = [[4, 8], [2, 4], [1, 2]]
    random = np.random.default_rng(0)

    machines = sampled(99, most_allocated)(np.array(free), CAPACITY, ONE, 9, random)

    assert machines.tolist() == [2, 1, 1, 0, 0, 0, 0]


def test_a_sample_of_one_chooses_any_machine_with_free_resources():
    place, free = sampled(1, most_allocated), np.array([[4, 8], [2, 4], [0, 0]])

    found = [
        place(free, CAPACITY, ONE, 1, np.random.default_rng(seed)).tolist() for seed in range(50)
    ]

    assert sorted(set(map(tuple, found))) == [(0,), (1,)]


def test_an_empty_sample_places_nothing():
    random = np.random.default_rng(0)

    machines = sampled(5, least_allocated)(np.array([[0, 0]]), CAPACITY, ONE, 3, random)

    assert machines.tolist() == []


cells = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=8)
sizes = st.tuples(st.integers(1, 3), st.integers(0, 4))
SCORES = {"spread": least_allocated, "pack": most_allocated}


@pytest.mark.parametrize("name", SCORES)
@given(free=cells, request=sizes, count=st.integers(1, 12), seed=st.integers(0, 99))
def test_every_task_is_placed_on_one_of_the_currently_best_machines(
    name, free, request, count, seed
):
    wanted, left = np.array(request), np.array(free)
    random = np.random.default_rng(seed)

    machines = PLACEMENTS[name](np.array(free), CAPACITY, wanted, count, random)

    for machine in machines.tolist():
        best = best_of(left, wanted, SCORES[name])
        left[machine] -= wanted
        assert SCORES[name](left[[machine]], CAPACITY).tolist() == [best]
    assert len(machines) == count or best_of(left, wanted, SCORES[name]) is None


def best_of(left, wanted, score):
    """Return the highest possible score of a task; None if it fits nowhere."""
    fits = left[(left >= wanted).all(axis=1)]
    return int(score(fits - wanted, CAPACITY).max()) if len(fits) else None


@given(free=cells, request=sizes, count=st.integers(1, 12), seed=st.integers(0, 99))
def test_first_fit_places_tasks_until_no_machine_has_free_resources(free, request, count, seed):
    wanted, random = np.array(request), np.random.default_rng(seed)

    machines = PLACEMENTS["first-fit"](np.array(free), CAPACITY, wanted, count, random)

    left = np.array(free)
    np.subtract.at(left, machines, wanted)
    assert (left >= 0).all()
    assert len(machines) == count or not (left >= wanted).all(axis=1).any()

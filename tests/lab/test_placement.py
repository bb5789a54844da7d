"""Proves where the model's schedulers put tasks."""

import numpy as np
import pytest

from roadstead.lab.placement import PLACEMENTS, least_allocated, most_allocated

CAPACITY = np.array([4, 8])
ONE = np.array([1, 2])


def placed(name, free, count, seed=0):
    random = np.random.default_rng(seed)
    return PLACEMENTS[name](np.array(free), CAPACITY, ONE, count, random).tolist()


@pytest.mark.parametrize("name", PLACEMENTS)
def test_tasks_are_put_only_where_there_is_room_and_never_too_many(name):
    free = [[2, 8], [0, 8], [4, 2], [1, 1]]

    machines = placed(name, free, 9)

    assert sorted(machines) == [0, 0, 2]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_nothing_is_placed_where_nothing_fits(name):
    assert placed(name, [[0, 0], [0, 8]], 3) == []


def test_first_fit_takes_every_machine_with_room_equally_often():
    free = [[4, 8]] * 4 + [[0, 0]] * 4

    counts = np.bincount(
        [placed("first-fit", free, 1, seed)[0] for seed in range(2000)], minlength=8
    )

    assert counts[4:].sum() == 0
    assert (abs(counts[:4] - 500) < 80).all()


def test_spread_goes_to_the_emptiest_machine_task_after_task():
    assert placed("spread", [[4, 8], [2, 4], [1, 2]], 4) in ([0, 0, 0, 1], [0, 0, 1, 0])


def test_pack_fills_the_fullest_machine_before_the_next():
    assert placed("pack", [[4, 8], [2, 4], [1, 2]], 4) == [2, 1, 1, 0]


def test_scores_are_whole_numbers_as_in_the_scheduler():
    free = np.array([[3, 8], [0, 0], [1, 3]])

    assert least_allocated(free, CAPACITY).tolist() == [87, 0, 31]
    assert most_allocated(free, CAPACITY).tolist() == [12, 100, 68]

"""How long what a lane read serves later batches, too."""

import pytest

from roadstead.cycle.lanes import Lane


def read_at(now_s):
    lane = Lane(cycle=None)
    lane.read(now_s)
    return lane


@pytest.mark.parametrize("staleness_s", [None, 0.0, 5.0])
def test_a_lane_that_read_nothing_serves_nobody(staleness_s):
    assert not Lane(cycle=None).serves(0.0, staleness_s)


@pytest.mark.parametrize(("now_s", "serves"), [(10.0, True), (15.0, True), (15.5, False)])
def test_what_was_read_serves_until_it_is_older_than_allowed(now_s, serves):
    lane = read_at(10.0)

    assert lane.serves(now_s, 5.0) is serves
    assert lane.is_older(now_s, 5.0) is not serves


def test_where_no_staleness_is_allowed_what_was_read_serves_one_batch_however_long():
    lane = read_at(10.0)

    assert not lane.serves(10.0, None)
    assert not lane.is_older(1e9, None)


def test_what_was_dropped_serves_nobody_until_it_is_read_again():
    lane = read_at(10.0)
    lane.drop()
    assert not lane.serves(10.0, 5.0)

    lane.read(12.0)
    assert lane.serves(17.0, 5.0)

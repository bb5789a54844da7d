"""The time for which the state that a scope read is used for later batches, too."""

import pytest

from roadstead.cycle.scopes import Scope


def read_at(now_s):
    scope = Scope(builder=None)
    scope.read(now_s)
    return scope


@pytest.mark.parametrize("staleness_s", [None, 0.0, 5.0])
def test_a_scope_that_read_nothing_has_no_state(staleness_s):
    assert not Scope(builder=None).is_reusable(0.0, staleness_s)


@pytest.mark.parametrize(("now_s", "serves"), [(10.0, True), (15.0, True), (15.5, False)])
def test_a_state_is_used_until_it_is_older_than_allowed(now_s, serves):
    scope = read_at(10.0)

    assert scope.is_reusable(now_s, 5.0) is serves
    assert scope.is_older(now_s, 5.0) is not serves


def test_without_staleness_a_state_is_used_for_one_batch():
    scope = read_at(10.0)

    assert not scope.is_reusable(10.0, None)
    assert not scope.is_older(1e9, None)


def test_a_dropped_state_is_not_used_until_it_is_read_again():
    scope = read_at(10.0)
    scope.drop()
    assert not scope.is_reusable(10.0, 5.0)

    scope.read(12.0)
    assert scope.is_reusable(17.0, 5.0)

"""Generations keep the last values, are bounded, and free what they drop one by one."""

import weakref

from roadstead.protocol.generations import Generations

MOST = 5


class Value:
    """A value whose end can be seen."""


def test_the_last_values_are_kept():
    known = Generations(MOST)
    for number in range(4 * MOST):
        known.put(number, f"v{number}")
        for kept in range(max(0, number - MOST + 1), number + 1):
            assert known.get(kept) == f"v{kept}"
    assert known.get(0) is None


def test_a_value_that_is_used_stays():
    known = Generations(MOST)
    known.put("used", 1)
    for number in range(6 * MOST):
        known.put(number, number)
        assert known.get("used") == 1


def test_no_step_frees_more_than_one_value_and_few_are_left():
    known, ended = Generations(MOST), []
    for number in range(10 * MOST):
        value, before = Value(), len(ended)
        weakref.finalize(value, ended.append, number)
        known.put(number, value)
        del value
        assert len(ended) - before <= 1
        assert number + 1 - len(ended) <= 3 * MOST

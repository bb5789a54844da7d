"""Deadlines expire in order, and removed ones never do."""

from collections import deque
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cache import deadlines as deadlines_module
from roadstead.cache.deadlines import ENDED_MAX, AssumeDeadlines
from roadstead.cache.pods import CacheRecord
from roadstead.facts.pod import PodFacts
from tests.inside import objects_in

FACTS = PodFacts()


def records(*uids):
    return [CacheRecord(uid, uid, FACTS, "n1") for uid in uids]


def test_equal_deadlines_expire_in_order_of_insertion():
    deadlines = AssumeDeadlines()
    first, second = records("a", "b")

    deadlines.put([first, second], 5.0)

    assert deadlines.first() is first
    deadlines.remove([first])
    assert deadlines.first() is second
    assert [first.deadline_s, second.deadline_s] == [5.0, 5.0]


def test_an_item_added_again_expires_at_its_new_deadline():
    deadlines = AssumeDeadlines()
    one, other = records("a", "b")
    deadlines.put([one], 1.0)
    deadlines.put([other], 2.0)

    deadlines.remove([one])
    deadlines.put([one], 3.0)

    assert deadlines.first() is other
    assert "a" in deadlines
    assert sorted(deadlines) == ["a", "b"]


def test_empty_groups_are_not_kept():
    deadlines = AssumeDeadlines()
    deadlines.put([], 1.0)
    for _ in range(50):
        group = records("a", "b")
        deadlines.put(group, 1.0)
        deadlines.remove(group)

    assert (len(deadlines), deadlines.first()) == (0, None)
    assert objects_in(deadlines, CacheRecord) == objects_in(deadlines, deque) == []


def test_ended_records_do_not_wait_for_the_first_deadline():
    deadlines = AssumeDeadlines()
    first, last = records("first", "last")
    deadlines.put([first], 1.0)
    for number in range(10 * ENDED_MAX):
        group = records(f"a{number}", f"b{number}")
        deadlines.put(group, 2.0)
        deadlines.remove(group)
    deadlines.put([last], 2.0)

    assert len(objects_in(deadlines, CacheRecord)) <= ENDED_MAX + 6
    assert deadlines.first() is first
    deadlines.remove([first])
    assert deadlines.first() is last


steps = st.lists(
    st.tuples(st.integers(0, 4), st.lists(st.integers(0, 5), unique=True, max_size=4)), max_size=30
)


@pytest.mark.parametrize("ended_max", [ENDED_MAX, 0])
@given(steps)
def test_deadlines_agree_with_a_sorted_list(ended_max, steps):
    with patch.object(deadlines_module, "ENDED_MAX", ended_max):
        check_against_sorted_list(steps)


def check_against_sorted_list(steps):
    deadlines, model = AssumeDeadlines(), {}
    known = records(*map(str, range(6)))
    for turn, (deadline_s, numbers) in enumerate(steps):
        here = [number for number in numbers if number in model]
        deadlines.remove([known[number] for number in here])
        for number in here:
            del model[number]
        news = [number for number in numbers if number not in here]
        deadlines.put([known[number] for number in news], float(deadline_s))
        model |= {number: (deadline_s, turn, place) for place, number in enumerate(news)}
        first = min(model, key=model.__getitem__, default=None)
        assert deadlines.first() is (None if first is None else known[first])
        assert len(deadlines) == len(model)

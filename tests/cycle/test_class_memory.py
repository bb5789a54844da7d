"""Few classes of a large table are cached, and few are decided in one batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cycle.class_cache import (
    MAX_CLASSES,
    MAX_RESULTS,
    MAX_TOTALS,
    MIN_CLASSES,
    ClassCache,
    max_batch_classes,
    max_cached_classes,
    prefix_length,
)


def test_the_number_of_cached_classes_depends_on_the_rows():
    assert max_cached_classes(0) == max_cached_classes(10) == MAX_CLASSES
    assert max_cached_classes(MAX_RESULTS // 100) == 100
    assert max_cached_classes(100 * MAX_RESULTS) == MIN_CLASSES


@pytest.mark.parametrize(("most", "at_most"), [(MAX_RESULTS, MAX_CLASSES), (MAX_TOTALS, None)])
def test_the_cache_is_divided_by_rows_and_sharers_down_to_a_few_classes(most, at_most):
    how_many = max_cached_classes if most == MAX_RESULTS else max_batch_classes

    assert how_many(0) == how_many(1) == (at_most or most)
    for memory_sharers in (1, 4):
        assert how_many(most // 100, memory_sharers) == 100 // memory_sharers
        assert how_many(100 * most, memory_sharers) == MIN_CLASSES // memory_sharers
    assert how_many(100 * most, 10 * MIN_CLASSES) == 1


def test_cycles_that_share_the_cache_each_have_a_part_of_the_classes():
    assert max_cached_classes(MAX_RESULTS // 100, memory_sharers=4) == 25
    assert max_cached_classes(100 * MAX_RESULTS, memory_sharers=4) == MIN_CLASSES // 4
    assert max_batch_classes(100 * MAX_TOTALS, memory_sharers=100) == 1
    memory = ClassCache(memory_sharers=4)

    for key in range(30):
        memory.put(key, key, MAX_RESULTS // 100)

    assert [key for key in range(30) if memory.get(key) is not None] == list(range(5, 30))


def test_the_least_recently_used_class_is_dropped_first():
    memory = ClassCache()
    for number in range(MIN_CLASSES):
        memory.put(number, f"class {number}", MAX_RESULTS)
    assert memory.get(0) == "class 0"

    memory.put("new", "one more", MAX_RESULTS)

    assert memory.get(1) is None
    assert memory.get(0) == "class 0"
    assert memory.get("new") == "one more"


def test_shared_classes_are_kept_in_addition_to_others():
    memory = ClassCache()
    for number in range(2 * MIN_CLASSES):
        memory.put(number, number, MAX_RESULTS, shares=True)
    memory.put("own", "own", MAX_RESULTS)

    assert all(memory.get(number) is not None for number in range(2 * MIN_CLASSES))

    memory.put(0, "its own now", MAX_RESULTS)

    assert memory.get(0) == "its own now"
    assert memory.get("own") == "own"


def test_only_the_last_value_of_a_class_is_kept():
    memory = ClassCache()
    memory.put("a", "its own", MAX_RESULTS)
    memory.put("a", "shared", MAX_RESULTS, shares=True)
    assert memory.get("a") == "shared"

    memory.put("a", "its own again", MAX_RESULTS)
    for number in range(MIN_CLASSES):
        memory.put(number, number, MAX_RESULTS)
    assert memory.get("a") is None


@given(st.lists(st.integers(0, 5)), st.integers(1, 7))
def test_a_batch_has_the_first_keys_up_to_a_number_of_distinct_ones(keys, most):
    length = prefix_length(keys, most)

    assert len(set(keys[:length])) <= most
    assert length == len(keys) or len(set(keys[: length + 1])) > most

"""The heap pops by key and arrival, and forgets what was taken out of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.lazyheap import COMPACT_MIN_ENTRIES, LazyHeap


def filled(*keys: float) -> LazyHeap[str]:
    heap: LazyHeap[str] = LazyHeap()
    for seq, key in enumerate(keys):
        heap.put(f"n{seq}", (key,), seq, f"item {seq}")
    return heap


def test_empty_heap_has_no_first():
    heap = filled()
    assert heap.first() is None
    assert heap.first_key() is None
    assert heap.ordered() == []


def test_first_is_the_smallest_key_and_stays():
    heap = filled(3, 1, 2)
    assert heap.first() == heap.first() == "item 1"
    assert heap.first_key() == (1,)
    assert len(heap) == 3


def test_equal_keys_come_in_order_of_arrival():
    assert filled(5, 5, 5).ordered() == ["item 0", "item 1", "item 2"]


def test_item_taken_out_never_comes_up():
    heap = filled(1, 2)
    heap.take("n0")
    assert "n0" not in heap
    assert heap.first() == "item 1"
    assert list(heap) == ["item 1"]


def test_item_put_in_again_comes_by_its_new_key():
    heap = filled(1, 2)
    heap.take("n0")
    heap.put("n0", (3,), 0, "again")
    assert heap.ordered() == ["item 1", "again"]


def test_item_that_is_there_cannot_be_put_in_again():
    with pytest.raises(AssertionError, match="n0 is in the heap already"):
        filled(1).put("n0", (2,), 1, "twice")


def test_dead_entries_do_not_pile_up():
    heap = filled(0)
    for turn in range(10 * COMPACT_MIN_ENTRIES):
        heap.put("n1", (1,), turn, "later")
        heap.take("n1")
    assert heap._entries <= COMPACT_MIN_ENTRIES + 2
    assert heap.first() == "item 0"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300), st.booleans()), max_size=200))
def test_heap_agrees_with_a_sorted_list(steps):
    heap: LazyHeap[str] = LazyHeap()
    model: dict[str, tuple[int, int, int]] = {}
    for number, (key, seq, takes) in enumerate(steps):
        if takes and model:
            name = min(model, key=lambda one: model[one])
            assert heap.first() == name
            heap.take(name)
            del model[name]
        else:
            heap.put(f"n{number}", (key,), seq, f"n{number}")
            model[f"n{number}"] = (key, seq, number)
    assert heap.ordered() == sorted(model, key=lambda one: model[one])

"""The heap pops by key and arrival, and forgets removed items."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.lazyheap import DEAD_ENTRIES_MAX, LazyHeap
from tests.inside import objects_in


def filled(*keys: float) -> LazyHeap[str]:
    heap: LazyHeap[str] = LazyHeap()
    for seq, key in enumerate(keys):
        heap.put(f"n{seq}", (key,), seq, f"item {seq}")
    return heap


def test_empty_heap_has_no_first():
    heap = filled()
    assert heap.first() is None
    assert heap.ordered() == []


def test_first_is_the_smallest_key_and_stays():
    heap = filled(3, 1, 2)
    assert heap.first() == heap.first() == "item 1"
    assert len(heap) == 3


def test_equal_keys_are_popped_in_order_of_arrival():
    assert filled(5, 5, 5).ordered() == ["item 0", "item 1", "item 2"]


def test_a_removed_item_is_never_popped():
    heap = filled(1, 2)
    heap.remove("n0")
    assert "n0" not in heap
    assert heap.first() == "item 1"
    assert list(heap) == ["item 1"]


def test_an_item_added_again_is_popped_by_its_new_key():
    heap = filled(1, 2)
    heap.remove("n0")
    heap.put("n0", (3,), 0, "again")
    assert heap.ordered() == ["item 1", "again"]


def test_a_present_item_cannot_be_added_again():
    with pytest.raises(AssertionError, match="n0 is in the heap already"):
        filled(1).put("n0", (2,), 1, "twice")


def test_dead_entries_do_not_accumulate():
    heap = filled(0)
    for turn in range(10 * DEAD_ENTRIES_MAX):
        heap.put("n1", (1,), turn, "later")
        heap.remove("n1")
    entries = [each for each in objects_in(heap, tuple) if len(each) == 3]
    assert len(heap) <= len(entries) <= DEAD_ENTRIES_MAX + 2
    assert heap.first() == "item 0"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300), st.booleans()), max_size=200))
def test_heap_agrees_with_a_sorted_list(steps):
    heap: LazyHeap[str] = LazyHeap()
    model: dict[str, tuple[int, int, int]] = {}
    for number, (key, seq, takes) in enumerate(steps):
        if takes and model:
            name = min(model, key=lambda one: model[one])
            assert heap.first() == name
            heap.remove(name)
            del model[name]
        else:
            heap.put(f"n{number}", (key,), seq, f"n{number}")
            model[f"n{number}"] = (key, seq, number)
    assert heap.ordered() == sorted(model, key=lambda one: model[one])


lines = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 50), max_size=8)), max_size=8)


@given(lines, st.sets(st.integers(0, 63)))
def test_items_added_and_removed_in_bulk_equal_those_one_by_one(puts, gone):
    together: LazyHeap[str] = LazyHeap()
    alone: LazyHeap[str] = LazyHeap()
    count = 0
    for key, seqs in puts:
        items = [(f"n{count + place}", seq, f"n{count + place}") for place, seq in enumerate(seqs)]
        count += len(items)
        together.put_all((key,), items)
        for name, seq, item in items:
            alone.put(name, (key,), seq, item)
    taken = [f"n{number}" for number in sorted(gone) if number < count]
    together.remove_all(taken)
    for name in taken:
        alone.remove(name)

    assert together.ordered() == alone.ordered()
    assert len(together) == len(alone) == count - len(taken)
    of_first_key = list(together.items_with_first_key())
    assert of_first_key == together.ordered()[: len(of_first_key)]
    assert bool(of_first_key) == bool(len(together))
    keys = {name: key for key, name in _keyed(puts)}
    rest = together.ordered()[len(of_first_key) :]
    assert all(keys[each] == keys[of_first_key[0]] for each in of_first_key)
    assert all(keys[each] > keys[of_first_key[0]] for each in rest)


def _keyed(puts):
    keys = [key for key, seqs in puts for _ in seqs]
    return [(key, f"n{number}") for number, key in enumerate(keys)]


def test_no_item_of_a_bulk_may_be_present_already():
    items = [(f"n{number}", number, "") for number in range(8)]
    with pytest.raises(AssertionError, match="in the heap already"):
        filled(1).put_all((1,), items)

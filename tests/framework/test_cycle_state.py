import pytest

from roadstead.framework.cycle_state import CycleState


def test_what_was_written_is_read_by_key_and_kind():
    state = CycleState(3)

    state.write("Fit", 7)

    assert state.read("Fit", int) == 7
    assert state.read("Fit", object) == 7
    assert state.has("Fit")
    assert not state.has("Other")


def test_what_nobody_wrote_is_a_key_error():
    with pytest.raises(KeyError):
        CycleState(3).read("Fit", int)


def test_another_kind_than_expected_is_a_type_error():
    state = CycleState(3)
    state.write("Fit", "seven")

    with pytest.raises(TypeError, match="state 'Fit' holds str, not int"):
        state.read("Fit", int)


def test_a_later_value_replaces_an_earlier_one():
    state = CycleState(3)
    state.write("Fit", 7)
    state.write("Fit", 8)

    assert state.read("Fit", int) == 8


def test_a_new_state_has_skipped_nothing_and_holds_nothing():
    state = CycleState(3)

    assert state.node_count == 3
    assert state.skipped == set()
    assert state.get("Fit") is None


def test_what_was_written_before_is_read_and_never_changed():
    before = CycleState(3)
    before.write("Fit", 7)
    before.skipped.add("A")
    state = CycleState(3, before)
    assert state.read("Fit", int) == state.get("Fit") == 7
    assert state.skipped == set()

    state.write("Fit", 8)

    assert (state.read("Fit", int), before.read("Fit", int)) == (8, 7)


def test_a_copy_with_another_value_leaves_the_state_as_it_is():
    state = CycleState(3)
    state.write("Fit", 7)
    state.write("Ports", 1)
    state.skipped.add("A")

    copy = state.with_value("Fit", 8)

    assert [copy.get("Fit"), copy.get("Ports"), copy.skipped] == [8, 1, {"A"}]
    assert state.get("Fit") == 7


@pytest.mark.parametrize("differs", ["count", "value", "skipped", "more"])
def test_states_are_the_same_by_their_values_and_by_who_was_skipped(differs):
    one, other = CycleState(3), CycleState(4 if differs == "count" else 3)
    one.write("Fit", (1, {"a": 2}))
    other.write("Fit", (1, {"a": 3 if differs == "value" else 2}))
    if differs == "skipped":
        other.skipped.add("A")
    if differs == "more":
        other.write("Ports", None)

    assert one.is_same(one)
    assert not one.is_same(other)

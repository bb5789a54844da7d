from dataclasses import dataclass

import numpy as np
import pytest

from roadstead.framework.cycle_state import CycleState
from roadstead.protocol.status import SUCCESS, Code


@dataclass(frozen=True)
class Held:
    value: object


def test_a_value_is_read_by_key_and_type():
    state = CycleState(3)

    state.write("Fit", 7)

    assert state.read("Fit", int) == 7
    assert state.read("Fit", object) == 7
    assert state.has("Fit")
    assert not state.has("Other")


def test_reading_an_unwritten_key_is_a_key_error():
    with pytest.raises(KeyError):
        CycleState(3).read("Fit", int)


def test_a_value_of_another_type_than_expected_is_a_type_error():
    state = CycleState(3)
    state.write("Fit", "seven")

    with pytest.raises(TypeError, match="state 'Fit' holds str, not int"):
        state.read("Fit", int)


def test_a_later_value_replaces_an_earlier_one():
    state = CycleState(3)
    state.write("Fit", 7)
    state.write("Fit", 8)

    assert state.read("Fit", int) == 8


def test_a_new_state_is_empty_and_has_skipped_nothing():
    state = CycleState(3)

    assert state.node_count == 3
    assert state.skipped == set()
    assert state.get("Fit") is None


def test_values_of_a_base_state_are_read_and_never_changed():
    before = CycleState(3)
    before.write("Fit", 7)
    before.skipped.add("A")
    state = CycleState(3, before)
    assert state.read("Fit", int) == state.get("Fit") == 7
    assert state.skipped == set()

    state.write("Fit", 8)

    assert (state.read("Fit", int), before.read("Fit", int)) == (8, 7)


def test_a_copy_with_another_value_leaves_the_state_unchanged():
    state = CycleState(3)
    state.write("Fit", 7)
    state.write("Ports", 1)
    state.skipped.add("A")

    copy = state.with_value("Fit", 8)

    assert [copy.get("Fit"), copy.get("Ports"), copy.skipped] == [8, 1, {"A"}]
    assert state.get("Fit") == 7


@pytest.mark.parametrize("differs", ["count", "value", "skipped", "more"])
def test_states_are_equal_by_their_values_and_skipped_plugins(differs):
    one, other = CycleState(3), CycleState(4 if differs == "count" else 3)
    one.write("Fit", (1, {"a": 2}))
    other.write("Fit", (1, {"a": 3 if differs == "value" else 2}))
    if differs == "skipped":
        other.skipped.add("A")
    if differs == "more":
        other.write("Ports", None)

    assert not one.is_same(other)


@pytest.mark.parametrize("value", [{"a": 1}, [1], {1}, np.zeros(2), object(), ({},), Held({})])
def test_a_mutable_value_counts_as_changed(value):
    """A plugin may write a mutable value and change it later, so its earlier value is unknown."""
    one, other = CycleState(3), CycleState(3)
    one.write("Fit", value)
    other.write("Fit", value)

    assert not one.is_same(other)


@pytest.mark.parametrize(
    "value", [1, "a", None, (1, ("b",)), frozenset("a"), Code.ERROR, SUCCESS, Held(1)]
)
def test_an_immutable_value_is_compared_by_identity(value):
    one, other = CycleState(3), CycleState(3)
    one.write("Fit", value)
    other.write("Fit", value)

    assert one.is_same(other)

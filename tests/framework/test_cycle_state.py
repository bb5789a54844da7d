import pytest

from roadstead.framework.cycle_state import CycleState, Summary
from roadstead.plugins.image_locality import ImageNodes


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


def test_a_new_state_has_skipped_nothing_and_holds_no_summaries():
    state = CycleState(3)

    assert state.node_count == 3
    assert state.skip_filter == state.skip_score == set()
    assert state.filter_summaries == state.score_summaries == {}


def test_a_summary_is_a_dataclass():
    assert isinstance(ImageNodes(()), Summary)
    assert not isinstance(7, Summary)

"""Readers of a log of changes miss none: they get what changed, or that all may have."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices.change_log import KEPT_MAX, ChangeLog

CHANGES = st.lists(st.one_of(st.integers(0, 9), st.just("all"), st.just("many")), max_size=20)


def test_a_reader_gets_the_items_from_its_position_on():
    log = ChangeLog()
    log.add("a")
    position = log.end
    assert log.since(position) == []
    log.add("b")
    log.add("b")
    assert log.since(position) == ["b", "b"]


def test_a_reader_from_before_all_changed_gets_none():
    log = ChangeLog()
    position = log.end
    log.add_all()
    assert log.since(position) is None
    assert log.since(log.end) == []


@given(CHANGES, CHANGES)
def test_no_change_after_a_position_is_missed(before, after):
    log = ChangeLog()
    _add(log, before)
    position = log.end
    _add(log, after)
    found = log.since(position)
    if found is None:
        assert {"all", "many"} & {*after}, "a few changes are all known"
    else:
        assert found == [item for item in after if item not in ("all", "many")]


def _add(log, changes):
    for change in changes:
        if change == "all":
            log.add_all()
        elif change == "many":
            for _ in range(2 * KEPT_MAX):
                log.add("other")
        else:
            log.add(change)

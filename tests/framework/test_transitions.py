"""The base of every state machine: arrows, histories, and subjects with equal histories."""

from dataclasses import dataclass
from enum import StrEnum

from hypothesis import given
from hypothesis import strategies as st

from roadstead import transitions
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.transitions import HISTORY_MAX_STEPS, TransitionTable
from tests.inside import objects_in


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


class Event(StrEnum):
    GO = "go"
    STOP = "stop"
    BREAK = "break"


TABLE = TransitionTable(
    "light",
    {
        (Light.RED, Event.GO): Light.GREEN,
        (Light.GREEN, Event.STOP): Light.RED,
        (Light.GREEN, Event.BREAK): Light.OFF,
    },
)


def stepped(state, history, *events):
    for event in events:
        arrow = TABLE.follow("it", state, event, history)
        state, history = arrow.target, arrow.extend(history)
    return state, history


def test_a_history_has_the_last_steps():
    _, history = stepped(Light.RED, (), *[Event.GO, Event.STOP] * HISTORY_MAX_STEPS)

    assert len(history) == HISTORY_MAX_STEPS
    assert history[-2:] == ("go→green", "stop→red")


def test_subjects_with_equal_histories_share_them():
    one, other = stepped(Light.RED, (), Event.GO), stepped(Light.RED, (), Event.GO)

    assert one[1] is other[1]


def test_shared_histories_do_not_accumulate(monkeypatch):
    monkeypatch.setattr(transitions, "HISTORIES_MAX", 3)
    arrow = TABLE.follow("it", Light.RED, Event.GO, ())

    for number in range(10):
        assert arrow.extend((f"n{number}",)) == (f"n{number}", "go→green")

    histories = [each for each in objects_in(arrow, tuple) if each[1:] == ("go→green",)]
    assert 1 <= len(histories) <= 3


def outcome(call, *args):
    """Return the answer of a call, or its error."""
    try:
        return call(*args)
    except IllegalTransitionError as refused:
        return str(refused)


ways = st.lists(
    st.tuples(st.sampled_from(list(Light)), st.lists(st.sampled_from(["a", "b"]), max_size=2)),
    max_size=8,
)


@given(ways, st.lists(st.sampled_from(list(Event)), min_size=1, max_size=3))
def test_a_walk_moves_each_subject_along_the_arrows(subjects, events):
    walk = TABLE.walk(*events)

    for state, story in subjects:
        history = tuple(story)
        assert outcome(walk.follow, "it", state, history) == outcome(
            stepped, state, history, *events
        )


@dataclass
class Lamp:
    uid: str
    state: Light
    history: tuple[str, ...]


@given(ways, st.lists(st.sampled_from(list(Event)), min_size=1, max_size=3))
def test_several_subjects_are_moved_like_single_ones_or_not_at_all(subjects, events):
    lamps = [Lamp("it", state, tuple(story)) for state, story in subjects]
    before = [(lamp.state, lamp.history) for lamp in lamps]
    alone = [outcome(stepped, *each, *events) for each in before]

    moved = outcome(TABLE.walk(*events).move, lamps)

    after = [(lamp.state, lamp.history) for lamp in lamps]
    refusals = [each for each in alone if isinstance(each, str)]
    if refusals:
        assert (moved, after) == (refusals[0], before)
    else:
        assert after == alone
        ways = [(way.was, way.to) for way in moved for _ in range(way.start, way.stop)]
        assert ways == [(was, to) for (was, _), (to, _) in zip(before, after, strict=True)]

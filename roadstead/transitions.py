"""Transition tables as data, for every state machine of the core.

A machine is a table `(state, event) -> state`. `follow` looks up a transition, or raises with
nothing changed. The error contains the recent history of its subject, so that one line of a
log explains the failure (an idea of dask's worker state machine).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from roadstead.protocol.errors import IllegalTransitionError, cut_short

HISTORY_MAX_STEPS = 10
"""Number of steps that an error shows of its subject."""

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)
Subject = TypeVar("Subject")
"""An object whose state a machine changes, such as the record of a pod."""

HISTORIES_MAX = 4096
"""Maximum number of histories that a transition caches, so a million subjects share a few
tuples."""

History = tuple[str, ...]
"""The last steps of one subject, oldest first; each is `event→state`."""


@dataclass(frozen=True, slots=True)
class Transition(Generic[State]):
    """One allowed transition: its target state, and the step that it adds to a history.

    _extended: cache of `extend`: history before → history after.
    """

    target: State
    step: str
    _extended: dict[History, History] = field(default_factory=dict, repr=False, compare=False)

    def extend(self, history: History) -> History:
        """Return the history with this step appended, at most `HISTORY_MAX_STEPS` long."""
        found = self._extended.get(history)
        if found is None:
            if len(self._extended) >= HISTORIES_MAX:
                self._extended.clear()
            found = self._extended[history] = (*history[-HISTORY_MAX_STEPS + 1 :], self.step)
        return found


class TransitionTable(Generic[State, Event]):
    """The transitions of one machine, keyed by (state, event); immutable."""

    def __init__(self, machine: str, transitions: Mapping[tuple[State, Event], State]) -> None:
        self.machine = machine
        self._transitions = {
            pair: Transition(target, f"{pair[1].value}→{target.value}")
            for pair, target in transitions.items()
        }

    def __iter__(self) -> Iterator[tuple[State, Event, State]]:
        return (
            (state, event, transition.target)
            for (state, event), transition in self._transitions.items()
        )

    def allows(self, state: State, event: Event) -> bool:
        return (state, event) in self._transitions

    def follow(self, name: str, state: State, event: Event, history: History) -> Transition[State]:
        """Return the transition of `event` in `state`. IllegalTransitionError if there is none."""
        transition = self._transitions.get((state, event))
        if transition is None:
            raise self.illegal(name, state, event, history)
        return transition

    def walk(self, *events: Event) -> Walk[State, Event]:
        """Return a walk, which applies the same events to many subjects."""
        return Walk(self, events)

    def illegal(
        self, name: str, state: State, event: Event, history: History, why: str = ""
    ) -> IllegalTransitionError:
        """Return the error for a refused event, with the subject's history."""
        steps = ", ".join(history) if history else "nothing"
        reason = f" ({why})" if why else ""
        return IllegalTransitionError(
            f"{self.machine}: {cut_short(name)}: {event.value} is not allowed in state "
            f"{state.value}{reason}; before it: {steps}"
        )


class Stateful(Protocol[State]):
    """An object with a state; `uid` names it in errors."""

    state: State
    history: History

    @property
    def uid(self) -> str: ...


class Moved(NamedTuple, Generic[State]):
    """The subjects `start` to `stop - 1` moved from the state `was` to the state `to`."""

    was: State
    to: State
    start: int
    stop: int

    def select(self, subjects: Sequence[Subject]) -> Sequence[Subject]:
        """Return the subjects of this move, given all subjects."""
        is_all = self.stop - self.start == len(subjects)
        return subjects if is_all else subjects[self.start : self.stop]


class Walk(Generic[State, Event]):
    """Apply the same events, in order, to many subjects.

    The result for the previous subject is used again if the next one has the same state and
    history. Unlike `TransitionTable.follow`, which returns one transition, `follow` returns the
    state and the history after all events.
    """

    __slots__ = ("_events", "_from", "_history", "_table", "_to")

    def __init__(self, table: TransitionTable[State, Event], events: tuple[Event, ...]) -> None:
        self._table = table
        self._events = events
        # The previous subject: its state and history before the events, and both after them.
        self._from: State | None = None
        self._history: History = ()
        self._to: tuple[State, History]

    def follow(self, name: str, state: State, history: History) -> tuple[State, History]:
        """Return a subject's state and history after the events; raises as the table does."""
        if state is self._from and history is self._history:
            return self._to
        target, extended = state, history
        for event in self._events:
            transition = self._table.follow(name, target, event, extended)
            target, extended = transition.target, transition.extend(extended)
        self._from, self._history, self._to = state, history, (target, extended)
        return self._to

    def move(self, subjects: Sequence[Stateful[State]]) -> list[Moved[State]]:
        """Apply the events to distinct subjects; consecutive equal moves are returned as one.

        Raises as the table does, with nothing changed.
        """
        if not subjects:
            return []
        was, before = subjects[0].state, subjects[0].history
        # Usually all are alike: one look-up then serves them all.
        if len(subjects) == 1 or all(s.state is was and s.history is before for s in subjects):
            to, history = self.follow(subjects[0].uid, was, before)
            for each in subjects:
                each.state, each.history = to, history
            return [Moved(was, to, 0, len(subjects))]
        # All look-ups come before the first change, since one may raise.
        ends = [self.follow(each.uid, each.state, each.history) for each in subjects]
        moved: list[Moved[State]] = []
        for index, (each, (to, history)) in enumerate(zip(subjects, ends, strict=True)):
            was, start = each.state, index
            if moved and (moved[-1].was, moved[-1].to) == (was, to):
                start = moved.pop().start
            moved.append(Moved(was, to, start, index + 1))
            each.state, each.history = to, history
        return moved

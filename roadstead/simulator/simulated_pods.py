"""SimulatedPods: the pods of a simulated run from their creation to their end.

States and events, as `scripts/diagrams.py` draws them from `simulator.simulated_pods.TABLE`:

    PENDING     ── bind ──► BOUND   ── vanish ──► ENDED
    BOUND       ── start ──► RUNNING   ── terminate ──► TERMINATING   ── vanish ──► ENDED
    RUNNING     ── terminate ──► TERMINATING   ── finish, vanish ──► ENDED
    TERMINATING ── finish, vanish ──► ENDED
    ENDED       (no event is allowed)

A bound pod runs after the start delay. `terminate` is a graceful deletion: the pod still uses its
node until its grace period or its own duration is over. `vanish` ends a pod immediately: preempted,
on a lost node, or deleted by force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.simulator.scenario import TimedToleration
from roadstead.simulator.times import NEVER_US
from roadstead.transitions import History, TransitionTable


class LifeState(StrEnum):
    """States of a pod."""

    PENDING = "pending"
    BOUND = "bound"
    RUNNING = "running"
    TERMINATING = "terminating"
    ENDED = "ended"


class LifeEvent(StrEnum):
    """Event that changes the state of a pod."""

    BIND = "bind"
    START = "start"
    TERMINATE = "terminate"
    FINISH = "finish"
    VANISH = "vanish"


class Ending(StrEnum):
    """End of a pod.

    DONE, FAILED: its containers ended after its duration. DELETED: by its owner or a scenario, or
    before it was bound. EVICTED: by a taint or a drain. PREEMPTED: for another pod. LOST: with its
    node.
    """

    DONE = "done"
    FAILED = "failed"
    DELETED = "deleted"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    LOST = "lost"


_S, _E = LifeState, LifeEvent

TABLE: Final[TransitionTable[LifeState, LifeEvent]] = TransitionTable(
    "pod life",
    {
        (_S.PENDING, _E.BIND): _S.BOUND,
        (_S.PENDING, _E.VANISH): _S.ENDED,
        (_S.BOUND, _E.START): _S.RUNNING,
        (_S.BOUND, _E.TERMINATE): _S.TERMINATING,
        (_S.BOUND, _E.VANISH): _S.ENDED,
        (_S.RUNNING, _E.TERMINATE): _S.TERMINATING,
        (_S.RUNNING, _E.FINISH): _S.ENDED,
        (_S.RUNNING, _E.VANISH): _S.ENDED,
        (_S.TERMINATING, _E.FINISH): _S.ENDED,
        (_S.TERMINATING, _E.VANISH): _S.ENDED,
    },
)

MAX_COUNTED_CLASSES: Final = 4096
"""Maximum number of distinct facts whose pods are counted, so that memory is bounded."""

ON_NODE: Final = frozenset({_S.BOUND, _S.RUNNING, _S.TERMINATING})
"""States of pods that use a node."""


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """One pod. Times in microseconds from the start of the scenario, NEVER_US before they occur.

    number: of the pod in its run, in the order of creation. source, controller: index in
    `CompiledScenario.sources` or `.controllers` of what created it, -1 otherwise. duration_us: how
    long it runs, NEVER_US until it is deleted. grace_us: time from a graceful deletion to its end.
    ordinal: its number at its controller. history: its last transitions, for errors. attempts: how
    often a scheduler tried it. ends_as: how it ended, or will end if nothing else happens.
    preemptor: key of the pod for which it was preempted. no_execute: see `PodLifecycle`. starts_us:
    when its start is planned, from its bind on. due_us: when its duration or grace period is over,
    NEVER_US if that is not planned.
    """

    number: int
    identity: PodIdentity
    facts: PodFacts
    created_us: int
    source: int
    controller: int
    duration_us: int
    grace_us: int
    ordinal: int = 0
    state: LifeState = LifeState.PENDING
    history: History = ()
    node: str = ""
    first_tried_us: int = NEVER_US
    bound_us: int = NEVER_US
    started_us: int = NEVER_US
    ended_us: int = NEVER_US
    attempts: int = 0
    ends_as: Ending = Ending.DONE
    preemptor: str = ""
    no_execute: tuple[TimedToleration, ...] = ()
    starts_us: int = NEVER_US
    due_us: int = NEVER_US

    @property
    def uid(self) -> str:
        return self.identity.uid


REMOVED: Final = frozenset({Ending.DELETED, Ending.EVICTED, Ending.PREEMPTED, Ending.LOST})
"""Endings of pods that did not end by themselves."""


@dataclass(slots=True, eq=False)
class ClassCounts:
    """Numbers of pods of a class so far, by state.

    facts: of the class; None for all classes after the first `MAX_COUNTED_CLASSES`, which are
    counted as one. running: pods on nodes. finished: done or failed. removed: see `REMOVED`.
    """

    facts: PodFacts | None
    created: int = 0
    running: int = 0
    finished: int = 0
    removed: int = 0

    def totals(self) -> tuple[int, int, int, int, int]:
        """Return created, pending, running, finished, removed."""
        pending = self.created - self.running - self.finished - self.removed
        return self.created, pending, self.running, self.finished, self.removed


class SimulatedPods:
    """The pods that have not ended, by UID, and how many are in which state.

    created: number of pods so far, with those that have ended.
    """

    def __init__(self) -> None:
        self.by_uid: dict[str, SimulatedPod] = {}
        self.counts: Counter[LifeState] = Counter()
        self.created = 0
        # By id, as hashing facts takes long. The facts are kept so that no others get their id.
        self._classes: dict[int, ClassCounts] = {}
        self._uncounted = ClassCounts(None)

    def create(self, pod: SimulatedPod) -> None:
        """Add a pending pod. AssertionError for a UID that is in use."""
        assert pod.uid not in self.by_uid, f"two pods have the UID {pod.uid}"
        assert pod.state is LifeState.PENDING, f"{pod.uid} is created {pod.state}"
        self.by_uid[pod.uid] = pod
        self.counts[LifeState.PENDING] += 1
        self.created += 1
        counted = self._classes.get(id(pod.facts))
        if counted is None:
            counted = self._uncounted
            if len(self._classes) < MAX_COUNTED_CLASSES:
                counted = self._classes[id(pod.facts)] = ClassCounts(pod.facts)
        counted.created += 1

    def typical(self, limit: int) -> list[tuple[PodFacts, int]]:
        """Return the facts that most pods had so far, each with its number of pods, most first.

        limit: maximum number of facts.
        """
        counted = [(each.facts, each.created) for each in self._classes.values() if each.facts]
        return sorted(counted, key=lambda each: -each[1])[:limit]

    def by_class(self) -> Iterator[ClassCounts]:
        """Yield the counts of each class, in the order of their first pods; then of the others."""
        yield from self._classes.values()
        if self._uncounted.created:
            yield self._uncounted

    def apply(self, pod: SimulatedPod, event: LifeEvent) -> None:
        """Move a pod by an event. IllegalTransitionError, with nothing changed, if that is illegal.

        An ended pod is removed from `by_uid`.
        """
        transition = TABLE.follow(pod.uid, pod.state, event, pod.history)
        self.counts[pod.state] -= 1
        self.counts[transition.target] += 1
        was_on_node = pod.state in ON_NODE
        pod.state, pod.history = transition.target, transition.extend(pod.history)
        if pod.state is LifeState.ENDED:
            counted = self._classes.get(id(pod.facts), self._uncounted)
            counted.running -= was_on_node
            if pod.ends_as in REMOVED:
                counted.removed += 1
            else:
                counted.finished += 1
            del self.by_uid[pod.uid]
        elif not was_on_node:
            self._classes.get(id(pod.facts), self._uncounted).running += 1

    def validate(self) -> None:
        """Check that counts and states agree, and that pods on nodes have one (O(pods))."""
        counts = Counter(pod.state for pod in self.by_uid.values())
        for state in LifeState:
            if state is not LifeState.ENDED:
                assert self.counts[state] == counts[state], f"pods {state}: counted wrongly"
        assert sum(self.counts.values()) == self.created, "a pod was created and is nowhere"
        totals = [
            sum(each) for each in zip(*(each.totals() for each in self.by_class()), strict=True)
        ]
        if totals:
            on_nodes, ended = sum(counts[each] for each in ON_NODE), self.counts[LifeState.ENDED]
            assert totals[:3] == [self.created, counts[LifeState.PENDING], on_nodes], (
                "classes differ"
            )
            assert totals[3] + totals[4] == ended, "classes differ"
        for pod in self.by_uid.values():
            is_on_node = pod.state in ON_NODE
            assert is_on_node == bool(pod.node), f"{pod.uid} is {pod.state} on {pod.node!r}"

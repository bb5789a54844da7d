"""Leased pods: states, events and transition table, attempts, and the record of a pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from roadstead.attempts.steps import Target
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.profile import Profile
from roadstead.protocol.status import Status
from roadstead.transitions import History, TransitionTable


class AttemptState(StrEnum):
    """States of a leased pod; `roadstead.attempts.core` has a diagram of the machine."""

    NEW = "new"
    LEASED = "leased"
    ASSUMING = "assuming"
    ASSUMED = "assumed"
    WAITING = "waiting"
    PERMITTED = "permitted"
    BINDING = "binding"
    ASKED = "asked"
    BOUND = "bound"
    UNSCHEDULABLE = "unschedulable"
    FAILED = "failed"
    CONFLICT = "conflict"
    GONE = "gone"


class AttemptEvent(StrEnum):
    """Events of a leased pod; see the diagram in `roadstead.attempts.core`."""

    LEASE = "lease"
    PLACE = "place"
    REJECT = "reject"
    FAIL = "fail"
    ACCEPT = "accept"
    REFUSE = "refuse"
    PARK = "park"
    PERMIT = "permit"
    BIND = "bind"
    ASK = "ask"
    COMMIT = "commit"
    BOUND_ELSEWHERE = "bound elsewhere"
    DELETE = "delete"


_S, _E = AttemptState, AttemptEvent

TRANSIENT = frozenset({_S.ASSUMED, _S.PERMITTED})
"""States that a pod enters and leaves within one call of the core."""

AT_BINDER = frozenset({_S.BINDING, _S.ASKED})
"""A bind request was sent (more than once in ASKED), and its outcome is not known."""

RESERVED = frozenset({_S.ASSUMED, _S.WAITING, _S.PERMITTED, *AT_BINDER})
"""The cache counts the pod on its node, and Reserve plugins hold its resources."""

TRYING = frozenset({_S.ASSUMING, *RESERVED})
"""The pod has an attempt, which the cache may count on its node."""

UNDER_WAY = frozenset({_S.LEASED, *TRYING})
"""States from lease to end."""

LIVE = UNDER_WAY - TRANSIENT
"""States from lease to end that a pod may have between two calls."""

ENDED = frozenset({_S.BOUND, _S.UNSCHEDULABLE, _S.FAILED, _S.CONFLICT, _S.GONE})
"""The lease of the pod is over; GONE: it was deleted, or another attempt bound it."""

ENDED_UNBOUND = ENDED - {_S.BOUND}

TABLE: TransitionTable[AttemptState, AttemptEvent] = TransitionTable(
    "attempt",
    {
        (_S.LEASED, _E.PLACE): _S.ASSUMING,
        (_S.LEASED, _E.REJECT): _S.UNSCHEDULABLE,
        (_S.LEASED, _E.FAIL): _S.FAILED,
        (_S.ASSUMING, _E.ACCEPT): _S.ASSUMED,
        (_S.ASSUMING, _E.REFUSE): _S.CONFLICT,
        (_S.ASSUMING, _E.ASK): _S.ASSUMING,
        (_S.ASSUMED, _E.REJECT): _S.UNSCHEDULABLE,
        (_S.ASSUMED, _E.FAIL): _S.FAILED,
        (_S.ASSUMED, _E.PARK): _S.WAITING,
        (_S.ASSUMED, _E.PERMIT): _S.PERMITTED,
        (_S.WAITING, _E.REJECT): _S.UNSCHEDULABLE,
        (_S.WAITING, _E.PERMIT): _S.PERMITTED,
        (_S.PERMITTED, _E.FAIL): _S.FAILED,
        (_S.PERMITTED, _E.BIND): _S.BINDING,
        **{(state, _E.ASK): _S.ASKED for state in sorted(AT_BINDER)},
        **{(state, _E.COMMIT): _S.BOUND for state in sorted(AT_BINDER)},
        **{(state, _E.REFUSE): _S.CONFLICT for state in sorted(AT_BINDER)},
        **{(state, _E.FAIL): _S.FAILED for state in sorted(AT_BINDER)},
        **{(state, _E.BOUND_ELSEWHERE): _S.GONE for state in sorted(AT_BINDER)},
        **{(state, _E.LEASE): state for state in sorted(LIVE)},
        **{(state, _E.LEASE): _S.LEASED for state in (_S.NEW, *sorted(ENDED - {_S.BOUND}))},
        (_S.BOUND, _E.LEASE): _S.BOUND,
        **{(state, _E.DELETE): _S.GONE for state in (*sorted(LIVE), _S.BOUND)},
    },
)


class BindOutcome(StrEnum):
    """The binder's answer as the core distinguishes it.

    CONFLICT: the attempt lost a race, or the binder is busy; the pod returns to the head of
    activeQ. BOUND_ELSEWHERE: another attempt bound it. GONE: the pod was deleted. FAILED: any other
    cause; the pod returns with backoff. `roadstead.scheduler.performer` maps the binder's causes to
    outcomes.
    """

    BOUND = "bound"
    CONFLICT = "conflict"
    BOUND_ELSEWHERE = "bound elsewhere"
    GONE = "gone"
    FAILED = "failed"


def event_of(decision: Decision) -> AttemptEvent:
    """Return the event of a decision."""
    if decision.node_name is not None:
        return AttemptEvent.PLACE
    return AttemptEvent.FAIL if decision.error else AttemptEvent.REJECT


def decision_key(decision: Decision) -> tuple[int, str | None, str]:
    """Return what is equal for copies of a decision: attempt number, node, error."""
    return decision.pod.attempt, decision.node_name, decision.error


class Attempt(NamedTuple):
    """One attempt to bind one pod to one node; `token` identifies it at cache and binder.

    key: namespace/name. read_version: version of the node's row that the decision read.
    """

    token: str
    uid: str
    key: str
    node_name: str
    facts: PodFacts
    read_version: int = 0


_EVENT_OF = {
    BindOutcome.BOUND: AttemptEvent.COMMIT,
    BindOutcome.CONFLICT: AttemptEvent.REFUSE,
    BindOutcome.BOUND_ELSEWHERE: AttemptEvent.BOUND_ELSEWHERE,
    BindOutcome.GONE: AttemptEvent.DELETE,
    BindOutcome.FAILED: AttemptEvent.FAIL,
}


class BindResult(NamedTuple):
    """The binder's answer to an attempt. message: why it was not bound."""

    token: str
    outcome: BindOutcome
    node_name: str = ""
    message: str = ""

    @property
    def event(self) -> AttemptEvent:
        return _EVENT_OF[self.outcome]


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """Number of pods in each state of LIVE, and of all pods that were bound."""

    leased: int
    assuming: int
    waiting: int
    binding: int
    asked: int
    bound_total: int

    @property
    def live(self) -> int:
        return self.leased + self.assuming + self.waiting + self.binding + self.asked


@dataclass(frozen=True, slots=True)
class PermitWait:
    """A Permit plugin's wait of `wait_s` seconds, until `deadline_s`."""

    wait_s: float
    deadline_s: float


@dataclass(slots=True, eq=False)
class AttemptRecord:
    """The core's record of a pod from lease to end.

    seq: unique number, in order of lease. history: the last transitions, for errors. decided:
    (attempt number, node or None, error) of the applied decision. answer: the binder's. waits:
    plugin → its wait, while WAITING. refusal: a plugin's refusal while the pod was ASSUMING, which
    ends the attempt when the cache accepts it.
    """

    uid: str
    pod: PodInCycle
    profile: Profile
    seq: int
    lease_id: int = 0
    state: AttemptState = AttemptState.NEW
    history: History = ()
    decided: tuple[int, str | None, str] | None = None
    attempt: Attempt | None = None
    answer: BindResult | None = None
    waits: dict[str, PermitWait] = field(default_factory=dict)
    refusal: Status | None = None

    @property
    def placed_attempt(self) -> Attempt:
        """The attempt of a placed pod."""
        assert self.attempt is not None, f"{self.uid} was never placed"
        return self.attempt

    @property
    def binds_without_plugins(self) -> bool:
        """Whether no plugin runs for the pod after its assumption."""
        return self.refusal is None and self.profile.binds_without_plugins

    @property
    def target(self) -> Target:
        """The pod and its node as plugins see them."""
        namespace, _, name = self.pod.key.partition("/")
        identity = PodIdentity(self.uid, namespace, name)
        return identity, self.pod.pod_class.facts, self.placed_attempt.node_name

    @property
    def deadline_s(self) -> float:
        """The earliest deadline of the pod's waits."""
        return min(wait.deadline_s for wait in self.waits.values())


def is_new_answer(record: AttemptRecord, answer: BindResult, earlier: BindResult | None) -> bool:
    """Whether an answer of the binder is new; raises IllegalTransitionError if it is illegal.

    earlier: an answer for the same token in the same call.
    """
    before, why = earlier or record.answer, ""
    if before is not None:
        if (before.outcome, before.node_name) == (answer.outcome, answer.node_name):
            return False
        why = f"the binder answered {before.outcome.value} {before.node_name} before"
    elif record.state is AttemptState.GONE:
        return False
    elif (
        answer.outcome is BindOutcome.BOUND and answer.node_name != record.placed_attempt.node_name
    ):
        why = f"bound to {answer.node_name}, sent to {record.placed_attempt.node_name}"
    if why or record.state not in AT_BINDER:
        raise TABLE.illegal(record.uid, record.state, answer.event, record.history, why)
    return True

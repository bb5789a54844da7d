"""What a scheduler keeps of a leased pod: its states, its attempt, and what it was told."""

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


class PodState(StrEnum):
    """Where a leased pod is; the machine is drawn in `roadstead.attempts.core`."""

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


class PodEvent(StrEnum):
    """What happens to a leased pod; which calls lead to it is said at the machine."""

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
    TAKE = "take"
    DELETE = "delete"


_S, _E = PodState, PodEvent

PASSING = frozenset({_S.ASSUMED, _S.PERMITTED})
"""States that a pod enters and leaves within one call."""

AT_BINDER = frozenset({_S.BINDING, _S.ASKED})
"""A bind request is out, and its outcome is not known."""

RESERVED = frozenset({_S.ASSUMED, _S.WAITING, _S.PERMITTED, *AT_BINDER})
"""The cache counts the pod on its node, and Reserve plugins hold what it needs."""

TRYING = frozenset({_S.ASSUMING, *RESERVED})
"""The pod has an attempt, which the cache may count on its node."""

UNDER_WAY = frozenset({_S.LEASED, *TRYING})
"""Where a pod is from lease to end."""

LIVE = UNDER_WAY - PASSING
"""Where a pod of this scheduler can be between two calls."""

ENDED = frozenset({_S.BOUND, _S.UNSCHEDULABLE, _S.FAILED, _S.CONFLICT, _S.GONE})

ENDED_UNBOUND = ENDED - {_S.BOUND}

TABLE: TransitionTable[PodState, PodEvent] = TransitionTable(
    "cycle",
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
        **{(state, _E.TAKE): _S.GONE for state in sorted(AT_BINDER)},
        **{(state, _E.LEASE): state for state in sorted(LIVE)},
        **{(state, _E.LEASE): _S.LEASED for state in (_S.NEW, *sorted(ENDED - {_S.BOUND}))},
        (_S.BOUND, _E.LEASE): _S.BOUND,
        **{(state, _E.DELETE): _S.GONE for state in (*sorted(LIVE), _S.BOUND)},
    },
)


class BindOutcome(StrEnum):
    """The binder's answer as the cycle sees it.

    CONFLICT: the state was not as read (the binder's causes constraint, unknown_node): back to the
    head. TAKEN: bound by another attempt (already_bound). GONE: no such pod any more (deleted).
    FAILED: anything else: back with backoff.
    """

    BOUND = "bound"
    CONFLICT = "conflict"
    TAKEN = "taken"
    GONE = "gone"
    FAILED = "failed"


def event_of(decision: Decision) -> PodEvent:
    """What a decision does to its pod."""
    if decision.node_name is not None:
        return PodEvent.PLACE
    return PodEvent.FAIL if decision.error else PodEvent.REJECT


def decision_key(decision: Decision) -> tuple[int, str | None, str]:
    """What of a decision tells it from another one for the same pod."""
    return decision.pod.attempt, decision.node_name, decision.error


class Attempt(NamedTuple):
    """One try to put one pod on one node; `token` names it to cache and binder.

    read_version: of the node's row, as the decision was made on it.
    """

    token: str
    uid: str
    key: str
    node_name: str
    facts: PodFacts
    read_version: int = 0


_EVENT_OF = {
    BindOutcome.BOUND: PodEvent.COMMIT,
    BindOutcome.CONFLICT: PodEvent.REFUSE,
    BindOutcome.TAKEN: PodEvent.TAKE,
    BindOutcome.GONE: PodEvent.DELETE,
    BindOutcome.FAILED: PodEvent.FAIL,
}


class BindAnswer(NamedTuple):
    """What became of an attempt at the binder; `message` says why it was not bound."""

    token: str
    outcome: BindOutcome
    node_name: str = ""
    message: str = ""

    @property
    def event(self) -> PodEvent:
        return _EVENT_OF[self.outcome]


@dataclass(frozen=True, slots=True)
class CycleCounts:
    """How many pods are where now, and how many leases of pods ended with a bind."""

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
class Wait:
    """A Permit plugin lets the pod wait `wait_s` seconds, until `deadline_s`."""

    wait_s: float
    deadline_s: float


@dataclass(slots=True, eq=False)
class PodRecord:
    """The core's own record of a pod from lease to end.

    seq: its number, unique. decided: (attempt number, node or None, error) of the decision taken.
    answer: the binder's. waits: plugin → its wait, while WAITING. refusal: what a plugin said while
    the pod was ASSUMING, and that it will be told.
    """

    uid: str
    pod: PodInCycle
    profile: Profile
    seq: int
    lease_id: int = 0
    state: PodState = PodState.NEW
    history: History = ()
    decided: tuple[int, str | None, str] | None = None
    attempt: Attempt | None = None
    answer: BindAnswer | None = None
    waits: dict[str, Wait] = field(default_factory=dict)
    refusal: Status | None = None

    @property
    def trial(self) -> Attempt:
        """The attempt of a pod that has one."""
        assert self.attempt is not None, f"{self.uid} was never placed"
        return self.attempt

    @property
    def is_plain(self) -> bool:
        """No plugin has a say in what becomes of the pod once it is assumed."""
        return self.refusal is None and self.profile.binds_plainly

    @property
    def target(self) -> Target:
        """The pod and its node as plugins see them."""
        namespace, _, name = self.pod.key.partition("/")
        who = PodIdentity(self.uid, namespace, name)
        return who, self.pod.info.facts, self.trial.node_name

    @property
    def deadline_s(self) -> float:
        """When the first of its waits is over."""
        return min(wait.deadline_s for wait in self.waits.values())


def is_answer(record: PodRecord, answer: BindAnswer, earlier: BindAnswer | None) -> bool:
    """Whether the binder says something new; raises where it must not say it."""
    before, why = earlier or record.answer, ""
    if before is not None:
        if (before.outcome, before.node_name) == (answer.outcome, answer.node_name):
            return False
        why = f"the binder said {before.outcome.value} {before.node_name} before"
    elif record.state is PodState.GONE:
        return False
    elif answer.outcome is BindOutcome.BOUND and answer.node_name != record.trial.node_name:
        why = f"bound to {answer.node_name}, sent to {record.trial.node_name}"
    if why or record.state not in AT_BINDER:
        raise TABLE.illegal(record.uid, record.state, answer.event, record.history, why)
    return True

"""What the queue keeps of a pod, what it hands out, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.lazyheap import SortKey
from roadstead.protocol.status import SUCCESS, Status
from roadstead.transitions import History

EventT = TypeVar("EventT")
"""A cluster event; the queue keeps it and hands it to the hint, and never looks inside."""


class PodState(StrEnum):
    """Where a pod is. NEW and DELETED are outside; DONE is outside and remembered for a while."""

    NEW = "new"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"
    DONE = "done"
    DELETED = "deleted"


class PodEvent(StrEnum):
    """An event of a pod; each leads to one state (`roadstead.queue.queue_store.TABLE`)."""

    ADD = "add"
    GATE = "gate"
    LEASE = "lease"
    FINISH = "finish"
    CONFLICT = "conflict"
    REJECT = "reject"
    FAIL = "fail"
    EXPIRE = "expire"
    BACK_OFF = "back_off"
    ACTIVATE = "activate"
    UPDATE = "update"
    ASSIGN = "assign"
    DELETE = "delete"


class RequeueReason(StrEnum):
    """Why a leased pod comes back."""

    CONFLICT = "conflict"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Bounds and durations (upstream's defaults where upstream has them).

    backoff_window_s: backoffs end in whole windows, so that the pods of one window come back in the
    order of QueueSort (backoffQOrderingWindowDuration). max_passed: how often a pod in activeQ may
    be passed by pods that are tried again; see `roadstead.queue.lease_order`. by_profile: leases
    may ask for the pods of one profile.
    """

    max_pods: int = 2_000_000
    lease_s: float = 30.0
    backoff_initial_s: float = 1.0
    backoff_max_s: float = 10.0
    backoff_window_s: float = 1.0
    unschedulable_max_s: float = 300.0
    max_in_flight_events: int = 10_000
    max_done_remembered: int = 65_536
    max_passed: int = 10_000
    by_profile: bool = False

    def backoff_s(self, failures: int) -> float:
        """Initial, doubled with each failure after the first, up to the maximum."""
        # After 64 doublings any duration is at its maximum; the bound keeps the power finite.
        doubled = self.backoff_initial_s * 2.0 ** min(failures - 1, 64)
        return min(doubled, self.backoff_max_s)

    def backoff_until_s(self, failures: int, now_s: float) -> float:
        """When a backoff that begins now is over: with the window in which it would end.

        Upstream's isPodBackingoff: a pod whose backoff ends in the present window still waits.
        """
        ends = now_s + self.backoff_s(failures)
        return (math.floor(ends / self.backoff_window_s) + 1) * self.backoff_window_s


class QueuedPod(NamedTuple):
    """A pod as handed to a scheduler.

    seq: number of arrival, unique. timestamp_s: when it last came into the queue.
    initial_attempt_s: when it first came into activeQ. attempts: leases so far, this one included.
    rejected_by: plugins that last rejected it (empty while in flight). draw: 1, and one more for
    each node chosen for it that came to nothing, by a lost race or a failure: the next choice among
    equals is another one then, and only then.
    """

    identity: PodIdentity
    facts: PodFacts
    seq: int
    timestamp_s: float
    initial_attempt_s: float | None
    attempts: int
    rejected_by: tuple[str, ...] = ()
    draw: int = 1


@dataclass(frozen=True, slots=True)
class Requeue:
    """One pod given back. `pending`: the plugins among the rejecting ones that said Pending.

    nominated_node: None leaves the pod's nomination as it is, "" clears it. preempts: pods made, or
    make, room there, and pods of lower priority lose their nominations to that node.
    """

    uid: str
    reason: RequeueReason
    rejected_by: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    nominated_node: str | None = None
    preempts: bool = False


@dataclass(frozen=True, slots=True)
class AddResult:
    """Every uid of the batch in exactly one of four; `status` tells why some were refused.

    accepted: now in the queue. duplicates: were there already. done: have left as bound.
    refused: the queue is full; the sender keeps them and comes again.
    """

    accepted: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    status: Status = SUCCESS


@dataclass(frozen=True, slots=True)
class LeaseBatch:
    """Pods leased to one scheduler until `deadline_s`; `lease_id` is 0 when there were none."""

    lease_id: int
    owner: str
    epoch: int
    deadline_s: float
    pods: tuple[QueuedPod, ...] = ()
    status: Status = SUCCESS


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """What became of the uids that a scheduler reported on.

    applied: done as asked. duplicates: the same was reported before. stale: the lease is over, or
    the pod left it otherwise (deleted, assigned); nothing was changed for them.
    """

    applied: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedLease:
    """A lease that ended without its owner: its pods went back."""

    lease_id: int
    owner: str
    epoch: int
    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many pods are where, and how many were done since the start."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    leases: int
    done_total: int

    @property
    def living(self) -> int:
        return self.active + self.backoff + self.unschedulable + self.gated + self.in_flight


@dataclass(slots=True, eq=False)
class PodEntry(Generic[EventT]):
    """The queue's own record of a pod; never handed out.

    unschedulable_count, consecutive_errors: what backoff grows with (upstream QueuedPodInfo).
    own_events: events while in flight that concern this pod alone; None stands for "any".
    """

    uid: str
    identity: PodIdentity
    facts: PodFacts
    seq: int
    timestamp_s: float
    state: PodState = PodState.NEW
    initial_attempt_s: float | None = None
    attempts: int = 0
    draw: int = 1
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_until_s: float = 0.0
    rejected_by: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    gating_plugin: str = ""
    lease_id: int = 0
    entered: int = 0
    passes_before: int = 0
    history: History = ()
    own_events: tuple[EventT | None, ...] = ()

    def view(self) -> QueuedPod:
        return QueuedPod(
            self.identity,
            self.facts,
            self.seq,
            self.timestamp_s,
            self.initial_attempt_s,
            self.attempts,
            self.rejected_by,
            self.draw,
        )


Gate = Callable[[PodFacts], Status]
"""PreEnqueue: anything but success keeps the pod gated; `Status.plugin` names who did."""

AnyOf = Callable[[Sequence[EventT | None]], EventT | None]
"""One event for many of which there are too many to keep; None stands for "any event"."""

QueueSort = Callable[[PodFacts, float], SortKey]
"""(facts, timestamp_s) -> key; the smallest is popped first, arrival breaks ties."""


def admit_all(facts: PodFacts) -> Status:
    """The gate of a profile without PreEnqueue plugins."""
    return SUCCESS


def priority_sort(facts: PodFacts, timestamp_s: float) -> SortKey:
    """Highest priority first, then oldest (pkg/scheduler/framework/plugins/queuesort)."""
    return (-facts.priority, timestamp_s)

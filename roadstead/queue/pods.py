"""Types of the queue: its record of a pod, settings, arguments and results of its methods."""

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
"""A cluster event; the queue passes it to hints and never reads it."""


class QueueState(StrEnum):
    """State of a pod. NEW, DONE and DELETED pods are not in the queue."""

    NEW = "new"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"
    DONE = "done"
    DELETED = "deleted"


class QueueEvent(StrEnum):
    """Event of a pod; its next state is in `roadstead.queue.queue_store.TABLE`."""

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
    """Reason that a leased pod returns to the queue.

    CONFLICT: its scheduler lost a race for the node. UNSCHEDULABLE: plugins rejected it. ERROR: its
    attempt failed.
    """

    CONFLICT = "conflict"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Bounds and durations (upstream's defaults, if it has them).

    lease_s: from the lease of pods, or its renewal, to its end. backoff_window_s: backoffs end at
    multiples of it, so that the pods of one window return in the order of QueueSort
    (backoffQOrderingWindowDuration). unschedulable_max_s: how long a pod waits in unschedulablePods
    without an event. max_in_flight_events: length of the log of events for the pods in flight.
    max_done_remembered: UIDs of DONE pods that are stored to recognize late copies of `add`.
    max_bypasses: how often pods that are tried again may bypass a pod in activeQ; see
    `roadstead.queue.lease_order`. by_profile: a lease may be restricted to the pods of one profile.
    """

    max_pods: int = 2_000_000
    lease_s: float = 30.0
    backoff_initial_s: float = 1.0
    backoff_max_s: float = 10.0
    backoff_window_s: float = 1.0
    unschedulable_max_s: float = 300.0
    max_in_flight_events: int = 10_000
    max_done_remembered: int = 65_536
    max_bypasses: int = 10_000
    by_profile: bool = False

    def backoff_s(self, failures: int) -> float:
        """Return the initial backoff, doubled by each further failure, up to the maximum."""
        # After 64 doublings any duration is at its maximum; the bound keeps the power finite.
        doubled = self.backoff_initial_s * 2.0 ** min(failures - 1, 64)
        return min(doubled, self.backoff_max_s)

    def backoff_until_s(self, failures: int, now_s: float) -> float:
        """Return when a backoff that begins now ends: at the end of the window in which it is over.

        Upstream's isPodBackingoff: a pod whose backoff ends in the present window still waits.
        """
        ends = now_s + self.backoff_s(failures)
        return (math.floor(ends / self.backoff_window_s) + 1) * self.backoff_window_s


class QueuedPod(NamedTuple):
    """A pod as a scheduler receives it.

    seq: unique arrival number. timestamp_s: when it arrived, or last returned rejected or failed
    (not after a lost race or an expired lease). initial_attempt_s: when it first entered activeQ.
    attempts: number of leases, this one included. rejected_by: plugins that last rejected it (empty
    while in flight). tie_break_number: 1 plus the number of lost races and failed attempts; the
    random choice among nodes of equal score depends on it.
    """

    identity: PodIdentity
    facts: PodFacts
    seq: int
    timestamp_s: float
    initial_attempt_s: float | None
    attempts: int
    rejected_by: tuple[str, ...] = ()
    tie_break_number: int = 1


@dataclass(frozen=True, slots=True)
class Requeue:
    """Report on a pod that returns. pending: the rejecting plugins that returned Pending.

    nominated_node: None keeps the pod's nomination, "" clears it. preempts: there are victims on
    that node, and pods of lower priority lose their nominations to it.
    """

    uid: str
    reason: RequeueReason
    rejected_by: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    nominated_node: str | None = None
    preempts: bool = False


@dataclass(frozen=True, slots=True)
class AddResult:
    """Each UID of the batch in exactly one of four tuples, and why some were refused (`status`).

    accepted: now in the queue. duplicates: were in the queue already. done: bound, and no longer in
    the queue. refused: the queue is full; the sender keeps them and may send them again.
    """

    accepted: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    status: Status = SUCCESS


@dataclass(frozen=True, slots=True)
class LeaseBatch:
    """Pods leased to one scheduler until `deadline_s`; `lease_id` is 0 if there are none."""

    lease_id: int
    owner: str
    epoch: int
    deadline_s: float
    pods: tuple[QueuedPod, ...] = ()
    status: Status = SUCCESS


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """Each UID of a scheduler's report in one of three tuples.

    applied: the report was applied. duplicates: an equal report was applied before. stale: the
    lease has ended, or the pod left it otherwise (deleted, assigned); nothing changed.
    """

    applied: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedLease:
    """A lease that expired or was revoked; its pods are back in the queue."""

    lease_id: int
    owner: str
    epoch: int
    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Number of pods in each container, of leases, and of pods that became DONE since the start."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    leases: int
    done_total: int

    @property
    def queued(self) -> int:
        return self.active + self.backoff + self.unschedulable + self.gated + self.in_flight


@dataclass(slots=True, eq=False)
class PodEntry(Generic[EventT]):
    """The queue's record of a pod; callers receive a `QueuedPod`.

    unschedulable_count, consecutive_errors: determine the backoff (upstream's QueuedPodInfo).
    own_events: events of this pod alone, while it is in flight; None stands for "any event".
    pending, rejected_by: as in `Requeue`. gating_plugin: whose PreEnqueue refused the pod.
    entered: number of its entry into activeQ. bypasses_before: bypasses at that time; see
    `roadstead.queue.containers.EntryOrder`. history: the last transitions, for errors.
    """

    uid: str
    identity: PodIdentity
    facts: PodFacts
    seq: int
    timestamp_s: float
    state: QueueState = QueueState.NEW
    initial_attempt_s: float | None = None
    attempts: int = 0
    tie_break_number: int = 1
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_until_s: float = 0.0
    rejected_by: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    gating_plugin: str = ""
    lease_id: int = 0
    entered: int = 0
    bypasses_before: int = 0
    history: History = ()
    own_events: tuple[EventT | None, ...] = ()

    def view(self) -> QueuedPod:
        """Return the pod as a scheduler receives it."""
        return QueuedPod(
            self.identity,
            self.facts,
            self.seq,
            self.timestamp_s,
            self.initial_attempt_s,
            self.attempts,
            self.rejected_by,
            self.tie_break_number,
        )


Gate = Callable[[PodFacts], Status]
"""PreEnqueue: the pod is gated unless the status is success; `Status.plugin` is the cause."""

AnyOf = Callable[[Sequence[EventT | None]], EventT | None]
"""Function that returns one event in place of many; None stands for "any event"."""

QueueSort = Callable[[PodFacts, float], SortKey]
"""(facts, timestamp_s) -> key; the smallest is first, arrival breaks ties."""


def admit_all(facts: PodFacts) -> Status:
    """Return success: the gate of a profile without PreEnqueue plugins."""
    return SUCCESS


def priority_sort(facts: PodFacts, timestamp_s: float) -> SortKey:
    """Sort by priority, highest first, then age (pkg/scheduler/framework/plugins/queuesort)."""
    return (-facts.priority, timestamp_s)

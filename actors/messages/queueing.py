"""Messages to the queue: submitted pods, leases, and reports on leased pods."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.actors.messages.common import PageRequest
from roadstead.facts.pod_list import NO_PODS, PodList
from roadstead.queue.reports import PendingReason, ReturnedPod


@dataclass(frozen=True, slots=True)
class Submitted:
    """Queue → client: number of accepted pods, and UIDs of those refused by a full queue."""

    accepted: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Scheduler → queue: lease up to `max_pods` pods; answer after at most `wait_s`.

    A second copy leases further pods. A lease whose answer is not read is not renewed: it expires,
    and its pods are leased again.

    owner, epoch: of the scheduler. profile: lease the pods of this profile only; "" for all. gangs:
    (namespace, name) of gangs with pods that wait at Permit.
    """

    owner: str
    epoch: int
    max_pods: int
    wait_s: float
    profile: str = ""
    gangs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Leased:
    """Queue → scheduler: leased pods; lease_id 0 if there are none.

    lease_counts: how often each pod was leased. tie_break_numbers: of each pod, an input of the
    choice among nodes of equal score (`QueuedPod`). waiting: how many more pods are in activeQ.
    turn: how often partitions have moved to the next scheduler. gangs: (namespace, name, number of
    bound pods) of the pods' gangs.
    """

    lease_id: int
    pods: PodList
    lease_counts: tuple[int, ...]
    tie_break_numbers: tuple[int, ...]
    waiting: int = 0
    turn: int = 0
    gangs: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Renew:
    """Scheduler → queue: extend these leases."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Renewed:
    """Queue → scheduler: the leases that are still valid."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaseReport:
    """Scheduler → queue: outcome of leased pods. A second copy changes nothing.

    bound: UIDs. returned: pods that were not bound, to be requeued. pending_reasons: why they are
    pending. evicted: pods of any lease or none, bound or waiting.
    """

    lease_id: int
    bound: tuple[str, ...]
    returned: tuple[ReturnedPod, ...]
    pending_reasons: tuple[PendingReason, ...]
    evicted: PodList = NO_PODS


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Queue → client: number of pods in each part of the queue.

    in_flight: leased. done: removed, since they are bound or deleted.
    """

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    done: int


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Queue → client: a page of the pending pods with reasons, in order of arrival."""

    pending_reasons: tuple[PendingReason, ...]
    total: int


SUBMIT = method("submit", PodList, Submitted)
LEASE = method("lease", LeaseRequest, Leased)
RENEW = method("renew", Renew, Renewed)
REPORT = method("report", LeaseReport, Nothing)
QUEUE_STATE = method("queue_state", Nothing, QueueStatus)
PENDING = method("pending", PageRequest, PendingPage)

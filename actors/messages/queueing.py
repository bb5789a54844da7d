"""To the queue: pods that are submitted, leases, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.messages.common import PageAsk
from roadstead.actors.messages.pods import NO_PODS, PodBatch
from roadstead.actors.seam import Nothing, method
from roadstead.queue.reports import GivenBack, PendingNote


@dataclass(frozen=True, slots=True)
class Submitted:
    """Queue → client: how many pods were taken, and which must come again (the queue is full)."""

    accepted: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeaseAsk:
    """Scheduler → queue: pods, please; waits up to `wait_s` for the first.

    profile: whose pods; "" for all. gangs: (namespace, name) of those whose pods wait for others.
    """

    owner: str
    epoch: int
    max_pods: int
    wait_s: float
    profile: str = ""
    gangs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Leased:
    """Queue → scheduler: pods under a lease; lease_id 0 means that there are none.

    attempts, draws: of each pod, see `QueuedPod`. waiting: how many more are in activeQ. turn: how
    often partitions have changed hands. gangs: (namespace, name, how many of its pods are bound) of
    the pods' gangs.
    """

    lease_id: int
    pods: PodBatch
    attempts: tuple[int, ...]
    draws: tuple[int, ...]
    waiting: int = 0
    turn: int = 0
    gangs: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Renew:
    """Scheduler → queue: it still thinks about the pods of these leases."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Renewed:
    """Queue → scheduler: which of the leases go on."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaseReport:
    """Scheduler → queue: what became of pods of a lease. The same report twice changes nothing.

    gone: pods that were evicted, wherever they were.
    """

    lease_id: int
    done: tuple[str, ...]
    given_back: tuple[GivenBack, ...]
    notes: tuple[PendingNote, ...]
    gone: PodBatch = NO_PODS


@dataclass(frozen=True, slots=True)
class QueueState:
    """Queue → client: how many pods are where."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    done: int


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Queue → client: why pods are pending, in order of arrival."""

    notes: tuple[PendingNote, ...]
    total: int


SUBMIT = method("submit", PodBatch, Submitted)
LEASE = method("lease", LeaseAsk, Leased)
RENEW = method("renew", Renew, Renewed)
REPORT = method("report", LeaseReport, Nothing)
QUEUE_STATE = method("queue_state", Nothing, QueueState)
PENDING = method("pending", PageAsk, PendingPage)

"""Needs of a scheduler: its requests to queue, cache and binder, besides those of its cycle.

    scheduler ── Need ──► driver ── answer ──► scheduler ── Need ──► …

As in `roadstead.cycle.needs`, the scheduler sends nothing itself: it yields each request and
continues with the answer.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from roadstead.attempts.commands import Nomination
from roadstead.attempts.pods import Attempt
from roadstead.binder.answers import BindAnswers
from roadstead.cache.answers import CacheAnswer
from roadstead.cycle import needs as of_cycle
from roadstead.facts.pod import Pod, PodFacts
from roadstead.facts.pod_groups import GroupKey
from roadstead.queue.reports import PendingReason, ReturnedPod
from roadstead.storage.claim_messages import AttemptBindings

ResultT = TypeVar("ResultT")
"""The result of a generator of `Steps`."""


@dataclass(frozen=True, slots=True)
class RequestLease:
    """Queue: lease pods, now or when some arrive soon. Answer: `LeasedPods`; None after a timeout.

    profile: whose pods; "" for all. gangs: those with pods that wait at Permit in this scheduler;
    their pods that had stopped waiting for the gang are tried again.
    """

    max_pods: int
    profile: str
    gangs: tuple[GroupKey, ...]


@dataclass(frozen=True, slots=True)
class LeasedPods:
    """Pods (uid, key, facts) under a lease; lease_id 0 means that there are none.

    lease_counts: how often each pod was leased, this time included. tie_break_numbers: of each pod,
    1 plus its lost races and failed attempts; the random choice among nodes of equal score depends
    on it. waiting: number of other pods in activeQ. turn: how often partitions changed their
    owners. gangs: (namespace, name, number of bound pods) of the pods' groups.
    """

    lease_id: int
    pods: Sequence[tuple[str, str, PodFacts]]
    lease_counts: Sequence[int]
    tie_break_numbers: Sequence[int]
    waiting: int = 0
    turn: int = 0
    gangs: Sequence[tuple[str, str, int]] = ()


@dataclass(frozen=True, slots=True)
class RenewLeases:
    """Queue: renew these leases. Answer: those that have not ended."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportPods:
    """Queue: record the results of a lease's pods. The answer is not used.

    bound: UIDs of pods that leave the queue. returned: pods that return to it, with the reason.
    evicted: victims of preemption, which need not be pods of this lease.
    """

    lease_id: int
    bound: tuple[str, ...] = ()
    returned: tuple[ReturnedPod, ...] = ()
    pending_reasons: tuple[PendingReason, ...] = ()
    evicted: Sequence[Pod] = ()


@dataclass(frozen=True, slots=True)
class AssumePods:
    """Cache: assume these attempts. Answer: `CacheAnswer`.

    known_changes: how many of the cache's changes of claims and volumes the scheduler has received;
    the answer contains the later ones. bind_next: the binds follow the answer, since no Permit or
    PreBind runs; treat the attempts as if they were in `UpdateAttempts.sent_to_binder`, too.
    """

    attempts: Sequence[Attempt]
    known_changes: int
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class UpdateAttempts:
    """Cache: record changes of attempts. Answer: `CacheAnswer`.

    forget: attempts (uid, token) that have ended. sent_to_binder: attempts that the binder is about
    to receive (upstream's FinishBinding). confirm: UIDs of bound pods. row_versions: new versions
    of nodes' rows; empty unless the binder compares versions, to refuse attempts whose node changed
    after it was read. known_changes: see `AssumePods`.
    """

    forget: tuple[tuple[str, str], ...]
    sent_to_binder: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    row_versions: tuple[tuple[str, int], ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class NominatePods:
    """Cache: set or clear nominations. Answer: `CacheAnswer`.

    evicted: UIDs of the victims that were evicted for them. known_changes: see `AssumePods`.
    """

    nominations: Sequence[Nomination]
    evicted: tuple[str, ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class EvictPods:
    """Binder: evict these pods. Answer: the evicted ones.

    preemptors: namespace/name of the pod for which each is evicted. claims: (key of a device claim
    to deallocate, UID of the pod for which it is deallocated).
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class BindPods:
    """Binder: commit these attempts. Answer: `BindAnswers`, or None after a timeout.

    read_versions: of the nodes' rows; empty unless the binder compares versions. transactions: the
    all-or-nothing transaction of each pod; empty if each pod is committed by itself.
    """

    attempts: Sequence[Attempt]
    volumes: tuple[AttemptBindings, ...]
    read_versions: tuple[int, ...]
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunConcurrently:
    """Run these steps concurrently with what follows. The answer is not used.

    Binds are sent in the order of these requests. Upstream: the goroutine of a binding cycle.
    """

    steps: Steps[None]


ClusterNeed: TypeAlias = (
    RequestLease
    | RenewLeases
    | ReportPods
    | AssumePods
    | UpdateAttempts
    | NominatePods
    | EvictPods
    | BindPods
    | RunConcurrently
)
Need: TypeAlias = of_cycle.Need | ClusterNeed
Steps: TypeAlias = Generator[Need, object, ResultT]
"""A generator that yields needs, receives their answers, and returns a result."""


def queue_answer(need: RequestLease) -> Steps[LeasedPods | None]:
    """Return the answer of the queue."""
    return cast("LeasedPods | None", (yield need))


def cache_answer(need: AssumePods | UpdateAttempts | NominatePods) -> Steps[CacheAnswer]:
    """Return the answer of the cache."""
    return cast("CacheAnswer", (yield need))


def binder_answer(need: BindPods) -> Steps[BindAnswers | None]:
    """Return the answer of the binder."""
    return cast("BindAnswers | None", (yield need))

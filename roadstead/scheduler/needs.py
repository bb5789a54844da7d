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
from roadstead.cache.answers import Assumed
from roadstead.cycle import needs as of_cycle
from roadstead.facts.pod import Pod, PodFacts
from roadstead.facts.pod_groups import GroupKey
from roadstead.queue.reports import PendingNote, ReturnedPod
from roadstead.storage.news import BoundVolumes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestLease:
    """Queue: lease pods, if there are any soon. Answer: `LeasedPods`, or None after a timeout.

    profile: whose pods; "" for all. gangs: those with pods that wait at Permit in this scheduler.
    """

    max_pods: int
    profile: str
    gangs: tuple[GroupKey, ...]


@dataclass(frozen=True, slots=True)
class LeasedPods:
    """Pods (uid, key, facts) under a lease; lease_id 0 means that there are none.

    attempts, draws: of each pod, see `QueuedPod`. waiting: number of other pods in activeQ. turn:
    how often partitions changed their owners. gangs: (namespace, name, number of bound pods).
    """

    lease_id: int
    pods: Sequence[tuple[str, str, PodFacts]]
    attempts: Sequence[int]
    draws: Sequence[int]
    waiting: int = 0
    turn: int = 0
    gangs: Sequence[tuple[str, str, int]] = ()


@dataclass(frozen=True, slots=True)
class RenewLeases:
    """Queue: renew these leases. Answer: those that have not ended."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportPods:
    """Queue: record the results of a lease's pods. gone: evicted pods. The answer is not used."""

    lease_id: int
    done: tuple[str, ...] = ()
    given_back: tuple[ReturnedPod, ...] = ()
    notes: tuple[PendingNote, ...] = ()
    gone: Sequence[Pod] = ()


@dataclass(frozen=True, slots=True)
class AssumePods:
    """Cache: assume these attempts. Answer: `Assumed`.

    known_changes: number of changes of claims and volumes that the scheduler has, here and below.
    bind_next: the binds follow directly, so that no `UpdateAttempts.finish` is sent before them.
    """

    attempts: Sequence[Attempt]
    known_changes: int
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class UpdateAttempts:
    """Cache: record changes of attempts. Answer: `Assumed`.

    forget: attempts (uid, token) that have ended. finish: attempts that the binder is about to
    receive. confirm: UIDs of bound pods. rows: versions of nodes in the binder's answers, if
    compared.
    """

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    rows: tuple[tuple[str, int], ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class NominatePods:
    """Cache: set or clear nominations; `gone` were evicted for them. Answer: `Assumed`."""

    nominations: Sequence[Nomination]
    gone: tuple[str, ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class EvictPods:
    """Binder: evict these pods. Answer: the evicted ones.

    preemptors: namespace/name of the pod for which each is evicted. claims: (key, UID) of claims of
    devices that lose their allocation, each for the pod with this UID.
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class BindPods:
    """Binder: commit these attempts. Answer: `BindAnswers`, or None after a timeout.

    read_versions: of the nodes' rows, if compared. transactions: the all-or-nothing transaction of
    each pod; empty if each pod is committed by itself.
    """

    attempts: Sequence[Attempt]
    volumes: tuple[BoundVolumes, ...]
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
Steps: TypeAlias = Generator[Need, object, T]
"""A generator that yields needs, receives their answers, and returns a result."""


def queue_answer(need: RequestLease) -> Steps[LeasedPods | None]:
    """Return the answer of the queue."""
    return cast("LeasedPods | None", (yield need))


def cache_answer(need: AssumePods | UpdateAttempts | NominatePods) -> Steps[Assumed]:
    """Return the answer of the cache."""
    return cast("Assumed", (yield need))


def binder_answer(need: BindPods) -> Steps[BindAnswers | None]:
    """Return the answer of the binder."""
    return cast("BindAnswers | None", (yield need))

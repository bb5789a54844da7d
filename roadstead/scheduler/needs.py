"""Needs of a scheduler beside those of its cycle: what it asks of queue, cache and binder.

    scheduler ── Need ──► driver ── answer ──► scheduler ── Need ──► …

As in `roadstead.cycle.needs`: it sends nothing itself, and goes on with the answer to each.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from roadstead.attempts.effects import Nomination
from roadstead.attempts.pods import Attempt
from roadstead.binder.answers import BindAnswers
from roadstead.cache.answers import Assumed
from roadstead.cycle import needs as of_cycle
from roadstead.facts.pod import Pod, PodFacts
from roadstead.facts.pod_groups import GroupKey
from roadstead.queue.reports import GivenBack, PendingNote
from roadstead.storage.news import BoundVolumes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskLease:
    """Queue: pods, if there are any soon. Answer: `LeasedPods`, or None where none came in time.

    profile: whose pods; "" for all. gangs: those of which pods wait for others here.
    """

    max_pods: int
    profile: str
    gangs: tuple[GroupKey, ...]


@dataclass(frozen=True, slots=True)
class LeasedPods:
    """Pods (uid, key, facts) under a lease; lease_id 0 means that there are none.

    attempts, draws: of each pod, see `QueuedPod`. waiting: how many more are in activeQ. turn: how
    often partitions have changed hands. gangs: (namespace, name, how many of its pods are bound).
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
    """Queue: the pods of these leases are still being decided. Answer: those that go on."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportPods:
    """Queue: what became of pods of a lease. gone: pods that were evicted. Answer: any."""

    lease_id: int
    done: tuple[str, ...] = ()
    given_back: tuple[GivenBack, ...] = ()
    notes: tuple[PendingNote, ...] = ()
    gone: Sequence[Pod] = ()


@dataclass(frozen=True, slots=True)
class AssumePods:
    """Cache: count these attempts ahead of their commits. Answer: `Assumed`.

    known_changes: how many changes of claims and volumes the scheduler has, here and below.
    bind_next: nothing comes between the answer and the binds, which `SettlePods` need not say then.
    """

    attempts: Sequence[Attempt]
    known_changes: int
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class SettlePods:
    """Cache: attempts (uid, token) are over, or about to be bound; uids are bound.

    Answer: `Assumed`. rows: versions of nodes that the binder answered, where they matter.
    """

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    rows: tuple[tuple[str, int], ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class NominatePods:
    """Cache: pods are nominated, or no more; `gone` were evicted for them. Answer: `Assumed`."""

    nominations: Sequence[Nomination]
    gone: tuple[str, ...]
    known_changes: int


@dataclass(frozen=True, slots=True)
class EvictPods:
    """Binder: take these pods from the cluster, each for another one. Answer: those that are gone.

    preemptors: namespace/name of that other one, for each.
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindPods:
    """Binder: commit these attempts. Answer: `BindAnswers`, or None where none came in time.

    read_versions: of the nodes' rows, where they matter. transactions: what each pod is part of,
    all or nothing; none where each stands by itself.
    """

    attempts: Sequence[Attempt]
    volumes: tuple[BoundVolumes, ...]
    read_versions: tuple[int, ...]
    transactions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindBeside:
    """These steps are to be taken beside what follows, in the order in which they come here.

    Upstream: the goroutine of a binding cycle. Answer: any.
    """

    steps: Steps[None]


ClusterNeed: TypeAlias = (
    AskLease
    | RenewLeases
    | ReportPods
    | AssumePods
    | SettlePods
    | NominatePods
    | EvictPods
    | BindPods
    | BindBeside
)
Need: TypeAlias = of_cycle.Need | ClusterNeed
Steps: TypeAlias = Generator[Need, object, T]
"""Needs, one after another, and a result."""


def leased_by(need: AskLease) -> Steps[LeasedPods | None]:
    """The answer of the queue."""
    return cast("LeasedPods | None", (yield need))


def answer_of_cache(need: AssumePods | SettlePods | NominatePods) -> Steps[Assumed]:
    """The answer of the cache."""
    return cast("Assumed", (yield need))


def bound_by(need: BindPods) -> Steps[BindAnswers | None]:
    """The answer of the binder."""
    return cast("BindAnswers | None", (yield need))

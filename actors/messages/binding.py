"""To the binder: what is to be committed or evicted, and what has been."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.messages.common import PageAsk
from roadstead.actors.messages.pods import PodBatch
from roadstead.actors.seam import Nothing, method
from roadstead.binder.answers import BindAnswers
from roadstead.binder.outcomes import GonePod
from roadstead.storage.news import BoundVolumes


@dataclass(frozen=True, slots=True)
class BindBatch:
    """Scheduler → binder: commit these. The same token gets the same answer.

    volumes: of the attempts among them that bind claims. read_versions: of the nodes' rows, as they
    were read, where they matter. transactions: what each pod is part of, all or nothing, or "";
    none at all where each stands by itself. number: of the batch, see `bind_order`; 0 for none.
    """

    owner: str
    epoch: int
    pods: PodBatch
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    volumes: tuple[BoundVolumes, ...] = ()
    read_versions: tuple[int, ...] = ()
    transactions: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class BoundPage:
    """Binder → client: committed binds in commit order: uid and node."""

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Evict:
    """Scheduler → binder: take these pods from the cluster, each for another one.

    preemptors: namespace/name of the pod that gets the room, for each. Coming twice, the same pods
    are gone.
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evicted:
    """Binder → scheduler: who is gone; pods that it never had are not among them."""

    gone: PodBatch


@dataclass(frozen=True, slots=True)
class PreemptedPage:
    """Binder → client: evicted pods in the order of their eviction."""

    notes: tuple[GonePod, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CommitPage:
    """Binder → client: commits from a place on.

    times: (how many of the uids, when they were acknowledged), in the order of the uids; seconds of
    the clock that `now_s` read when this was answered. total: commits so far.
    """

    uids: tuple[str, ...]
    times: tuple[tuple[int, float], ...]
    total: int
    now_s: float


@dataclass(frozen=True, slots=True)
class RunEnds:
    """Client → binder: all is decided; digest: of the outcome, which is kept beside the journal."""

    digest: str


ADD_PENDING = method("add_pending", PodBatch, Nothing)
BIND = method("bind", BindBatch, BindAnswers)
BOUND = method("bound", PageAsk, BoundPage)
EVICT = method("evict", Evict, Evicted)
PREEMPTED = method("preempted", PageAsk, PreemptedPage)
END_RUN = method("end_run", RunEnds, Nothing)
COMMITS = method("commits", PageAsk, CommitPage)

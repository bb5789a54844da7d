"""Messages to the binder: commits, evictions, and reads of both."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.actors.messages.common import PageRequest
from roadstead.binder.answers import BindAnswers
from roadstead.binder.outcomes import RemovedPod
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.pod_list import PodList
from roadstead.storage.claim_messages import BoundVolumes


@dataclass(frozen=True, slots=True)
class BindBatch:
    """Scheduler → binder: commit these pods. The same token gets the same answer.

    owner, epoch: of the scheduler. volumes: the bindings of those attempts that bind claims.
    read_versions: version of each node's row at the decision, with `conflicts: version`.
    transactions: name of each pod's all-or-nothing transaction, "" for none; empty if no pod has
    one. number: place in the scheduler's order of batches (`actors/binder/order.py`); 0 for none.
    """

    owner: str
    epoch: int
    pods: PodList
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    volumes: tuple[BoundVolumes, ...] = ()
    read_versions: tuple[int, ...] = ()
    transactions: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class BoundPage:
    """Binder → client: a page of the committed binds, in commit order. total: of all pages."""

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Evict:
    """Scheduler → binder: evict these victims.

    preemptors: namespace/name of the preemptor of each. A second copy evicts no further pods.
    claims: (key, UID) of claims of devices to be deallocated, each for the pod with this UID.
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evicted:
    """Binder → scheduler: the requested pods that are evicted now; unknown ones are left out."""

    pods: PodList


@dataclass(frozen=True, slots=True)
class PreemptedPage:
    """Binder → client: a page of the evicted pods, in the order of their eviction."""

    pods: tuple[RemovedPod, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ClaimsPage:
    """Binder → client: a page of the claims of devices, allocated or not."""

    claims: tuple[DeviceClaimFacts, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CommitPage:
    """Binder → client: a page of commits.

    times: (number of consecutive UIDs, time of their acknowledgement by the binder's clock,
    processor time of the binder's process then), in the order of the UIDs, in seconds. now_s,
    processor_s: these two times when the answer is sent. total: commits so far.
    """

    uids: tuple[str, ...]
    times: tuple[tuple[int, float, float], ...]
    total: int
    now_s: float
    processor_s: float


@dataclass(frozen=True, slots=True)
class OutcomePart:
    """Client → binder: a part of the outcome's file, at an offset. is_last: the file is complete.

    A second copy changes nothing.
    """

    offset: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class OutcomeSize:
    """Binder → client: how many bytes of the outcome's file the binder has."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Client → binder: the run ended. digest: of the outcome, a file in the journal's folder."""

    digest: str


ADD_PENDING = method("add_pending", PodList, Nothing)
BIND = method("bind", BindBatch, BindAnswers)
BOUND = method("bound", PageRequest, BoundPage)
EVICT = method("evict", Evict, Evicted)
PREEMPTED = method("preempted", PageRequest, PreemptedPage)
CLAIMS = method("claims", PageRequest, ClaimsPage)
STORE_OUTCOME = method("store_outcome", OutcomePart, OutcomeSize)
END_RUN = method("end_run", RunEnded, Nothing)
COMMITS = method("commits", PageRequest, CommitPage)

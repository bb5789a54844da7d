"""Requests to the binder, and its answers: commits, evictions, reads, and the end of a run."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.actors.messages.common import PageRequest
from roadstead.binder.answers import BindAnswers
from roadstead.binder.outcomes import RemovedPod
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.pod_list import PodList
from roadstead.storage.claim_messages import AttemptBindings


@dataclass(frozen=True, slots=True)
class BindBatch:
    """Scheduler → binder: commit these pods. The same token gets the same answer.

    pods, nodes, tokens, read_versions, transactions have one entry for each pod, in one order; the
    last two may be empty. owner, epoch: of the scheduler. volumes: the bindings of claims by those
    attempts that have any. read_versions: version of each node's row at the decision, if the
    setting `conflicts` is `version`. transactions: name of each pod's all-or-nothing transaction,
    "" for none; empty if no pod has one. number: sequence number of the batch, from 1 for each
    scheduler, by which the binder orders them (`actors/binder/order.py`); 0 for none.
    """

    owner: str
    epoch: int
    pods: PodList
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    volumes: tuple[AttemptBindings, ...] = ()
    read_versions: tuple[int, ...] = ()
    transactions: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class BoundPage:
    """Binder → client: where pods are bound, one page, in commit order.

    total: number of binds on all pages.
    """

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Evict:
    """Scheduler → binder: evict these victims.

    preemptors: namespace/name of the preemptor of each. A repeated message evicts no further pods.
    claims: (key of a device claim, UID of the pod for which it is to be deallocated).
    """

    uids: tuple[str, ...]
    preemptors: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evicted:
    """Binder → scheduler: the requested pods that are deleted, by this request or an earlier one.

    Pods that the binder does not know are left out.
    """

    pods: PodList


@dataclass(frozen=True, slots=True)
class PreemptedPage:
    """Binder → client: a page of the evicted and deleted pods, in the order of their removal.

    total: number of pods on all pages.
    """

    pods: tuple[RemovedPod, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ClaimsPage:
    """Binder → client: a page of the device claims, allocated or not.

    total: number of claims on all pages.
    """

    claims: tuple[DeviceClaimFacts, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CommitPage:
    """Binder → client: when commits were acknowledged, one page, in commit order.

    times: for each group of UIDs that were acknowledged together: how many they are, and then the
    binder's clock and the processor time of its process, both in seconds. now_s, processor_s: these
    two when the answer is made. total: number of commits on all pages.
    """

    uids: tuple[str, ...]
    times: tuple[tuple[int, float, float], ...]
    total: int
    now_s: float
    processor_s: float


@dataclass(frozen=True, slots=True)
class OutcomePart:
    """Client → binder: a part of the file with the run's decisions (`RunOutcome`), at an offset.

    The binder stores the file next to the journal. A repeated message changes nothing. is_last: the
    file is complete.
    """

    offset: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class OutcomeSize:
    """Binder → client: how many bytes of that file the binder has."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Client → binder: the run ended. digest: of the file with its outcome."""

    digest: str


# Client → binder: add pods, which may be bound from now on.
ADD_PENDING = method("add_pending", PodList, Nothing)
BIND = method("bind", BindBatch, BindAnswers)
BOUND = method("bound", PageRequest, BoundPage)
EVICT = method("evict", Evict, Evicted)
PREEMPTED = method("preempted", PageRequest, PreemptedPage)
CLAIMS = method("claims", PageRequest, ClaimsPage)
STORE_OUTCOME = method("store_outcome", OutcomePart, OutcomeSize)
END_RUN = method("end_run", RunEnded, Nothing)
COMMITS = method("commits", PageRequest, CommitPage)

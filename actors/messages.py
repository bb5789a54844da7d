"""Messages between actors: who sends them, who receives them, what it means when they come twice.

Pods travel in batches, as columns beside a table of their classes; never one message per pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from roadstead.actors.seam import Nothing, method
from roadstead.cycle.messages import ClassAsk, DryRunAsk, EvaluateRequest, ShardAnswer, ShardView
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.wire import facts_in, facts_out
from roadstead.framework.victims import Tried
from roadstead.storage import Binding, StorageChange


@dataclass(frozen=True, slots=True)
class PodBatch:
    """Pods as columns: `class_of[i]` points into `classes` (see `roadstead.facts.wire`).

    started_s: (place, start time) of the pods that have one.
    """

    classes: tuple[bytes, ...]
    uids: tuple[str, ...]
    names: tuple[str, ...]
    class_of: tuple[int, ...]
    started_s: tuple[tuple[int, float], ...] = ()

    def starts(self) -> dict[str, float]:
        """Start times by UID, of the pods that have one."""
        return {self.uids[place]: time_s for place, time_s in self.started_s}

    def pods(self) -> Iterator[tuple[PodIdentity, PodFacts]]:
        """Each pod's identity and facts; pods of one class share one facts object."""
        classes = [facts_in(data) for data in self.classes]
        for uid, name, index in zip(self.uids, self.names, self.class_of, strict=True):
            facts = classes[index]
            yield PodIdentity(uid, facts.namespace, name), facts


def pod_batch(pods: Iterable[tuple[PodIdentity, PodFacts]]) -> PodBatch:
    """Columns of pods, in order."""
    classes = ClassColumn()
    uids: list[str] = []
    names, started_s = [], []
    for identity, facts in pods:
        if identity.started_s is not None:
            started_s.append((len(uids), identity.started_s))
        uids.append(identity.uid)
        names.append(identity.name)
        classes.add(facts)
    return PodBatch(
        classes.table, tuple(uids), tuple(names), tuple(classes.column), tuple(started_s)
    )


class ClassColumn:
    """Builds a class table and the column of places in it; equal objects are looked up by id."""

    __slots__ = ("_by_id", "_index_of", "column")

    def __init__(self) -> None:
        self.column: list[int] = []
        self._by_id: dict[int, int] = {}
        self._index_of: dict[PodFacts, int] = {}

    def add(self, facts: PodFacts) -> None:
        index = self._by_id.get(id(facts))
        if index is None:
            index = self._index_of.setdefault(facts, len(self._index_of))
            if index == len(self._index_of) - 1:
                self._by_id[id(facts)] = index
        self.column.append(index)

    @property
    def table(self) -> tuple[bytes, ...]:
        return tuple(facts_out(facts) for facts in self._index_of)


@dataclass(frozen=True, slots=True)
class NodeBatch:
    """Client → cache and binder: nodes appear. Coming twice, they are updated to the same."""

    nodes: tuple[NodeFacts, ...]


@dataclass(frozen=True, slots=True)
class RunningPods:
    """Client → cache and binder: pods that run already, on `nodes[i]`. Known ones are skipped."""

    pods: PodBatch
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Submitted:
    """Queue → client: how many pods were taken, and which must come again (the queue is full)."""

    accepted: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeaseAsk:
    """Scheduler → queue: pods, please; waits up to `wait_s` for the first."""

    owner: str
    epoch: int
    max_pods: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Leased:
    """Queue → scheduler: pods under a lease; lease_id 0 means that there are none."""

    lease_id: int
    pods: PodBatch
    attempts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PendingNote:
    """Why a pod is pending: message, (reason, nodes), plugins."""

    uid: str
    key: str
    message: str
    reasons: tuple[tuple[str, int], ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenBack:
    """One pod that goes back to the queue; see `roadstead.queue.Requeue`.

    freed: it was assumed on a node, where there is room again.
    """

    uid: str
    reason: str
    rejected_by: tuple[str, ...]
    nominated_node: str | None = None
    preempts: bool = False
    pending: tuple[str, ...] = ()
    freed: bool = False


@dataclass(frozen=True, slots=True)
class LeaseReport:
    """Scheduler → queue: what became of pods of a lease. The same report twice changes nothing.

    gone: pods that were evicted, wherever they were.
    """

    lease_id: int
    done: tuple[str, ...]
    given_back: tuple[GivenBack, ...]
    notes: tuple[PendingNote, ...]
    gone: PodBatch = PodBatch((), (), (), ())


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
class PageAsk:
    """Client → queue or binder: part of a long list."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Queue → client: why pods are pending, in order of arrival."""

    notes: tuple[PendingNote, ...]
    total: int


@dataclass(frozen=True, slots=True)
class StorageNews:
    """What changed of claims and volumes; the first of the changes is number `start`."""

    start: int = 0
    changes: tuple[StorageChange, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundVolumes:
    """What an attempt's claims are bound to, as long as nobody committed it."""

    token: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class AssumeBatch:
    """Scheduler → cache: count these pods on these nodes, ahead of their commits.

    known_changes: how many changes of the storage the scheduler has.
    """

    pods: PodBatch
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    known_changes: int = 0


@dataclass(frozen=True, slots=True)
class Assumed:
    """Cache → scheduler: which tokens were refused, and how far each worker must have come.

    volumes: of the attempts with claims that are not settled. storage: what the scheduler lacks.
    """

    refused: tuple[tuple[str, str], ...]
    worker_seqs: tuple[int, ...]
    volumes: tuple[BoundVolumes, ...] = ()
    storage: StorageNews = StorageNews()


@dataclass(frozen=True, slots=True)
class Settle:
    """Scheduler → cache: how assumptions end: (uid, token) pairs forgotten or about to be bound,
    and uids that are bound."""

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    known_changes: int = 0


@dataclass(frozen=True, slots=True)
class DeltaBatch:
    """Cache → worker: changes of its rows, numbered from `first_seq`; known ones are skipped.

    kinds[i] is a DeltaKind; pods[i] points into `classes` (-1 for none); `nodes` holds the facts
    of the add_node and update_node deltas, in order, and `arrivals` when each of these nodes came
    to the whole cluster. uids[i] is a pod's UID, "" for none; keys[i] its namespace/name where the
    UID is another text; started_s: (place among the deltas, start time) of pods that have one.
    changes: of the storage, one for each delta of kind STORAGE.
    """

    first_seq: int
    kinds: tuple[str, ...]
    names: tuple[str, ...]
    pods: tuple[int, ...]
    classes: tuple[bytes, ...]
    nodes: tuple[NodeFacts, ...]
    arrivals: tuple[int, ...]
    changes: tuple[StorageChange, ...] = ()
    uids: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    started_s: tuple[tuple[int, float], ...] = ()


STORAGE = "storage"
"""The kind of a delta that changes claims and volumes; the same one goes to every worker."""


@dataclass(frozen=True, slots=True)
class RosterAsk:
    """Scheduler → cache: the nodes in their order, from place `start` on, unless `known` is new
    enough; names alone where no extender wants more."""

    known: int
    start: int
    whole: bool


@dataclass(frozen=True, slots=True)
class RosterPage:
    """Cache → scheduler: part of the nodes in their order, as of `version`.

    arrivals: int64[node]. nodes: empty where only names were wanted. total: of all pages.
    worker_seqs: how far each worker must have come to have them.
    """

    version: int
    total: int
    names: tuple[str, ...]
    arrivals: bytes
    nodes: tuple[NodeFacts, ...]
    worker_seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ViewAsk:
    """Whoever explains → worker: everything about one class on your rows."""

    node_count: int
    table_version: int
    ask: ClassAsk


@dataclass(frozen=True, slots=True)
class BindBatch:
    """Scheduler → binder: commit these. The same token gets the same answer.

    volumes: of the attempts among them that bind claims.
    """

    owner: str
    epoch: int
    pods: PodBatch
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    volumes: tuple[BoundVolumes, ...] = ()


@dataclass(frozen=True, slots=True)
class BindAnswer:
    """What became of one token. cause: "" if it is bound."""

    token: str
    uid: str
    node_name: str
    lsn: int
    version: int
    cause: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BindAnswers:
    answers: tuple[BindAnswer, ...]


@dataclass(frozen=True, slots=True)
class BoundPage:
    """Binder → client: committed binds in commit order: uid and node."""

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """Any actor → supervisor: what it did and holds, for people; error: why it cannot go on."""

    text: str
    error: str = ""
    error_kind: str = ""
    error_parts: tuple[str, ...] = ()
    timings_s: tuple[tuple[str, float], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Evict:
    """Scheduler → binder: take these pods from the cluster for another one.

    token: names the eviction. preemptor: namespace/name of the pod that gets the room. Told twice,
    the same pods are gone.
    """

    token: str
    uids: tuple[str, ...]
    preemptor: str
    node_name: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """Binder → scheduler: who is gone; pods that it never had are not among them."""

    gone: PodBatch


@dataclass(frozen=True, slots=True)
class Nominations:
    """Scheduler or client → cache: pods that wait are nominated to nodes, "" for none any more.

    preempts: for each pod, whether others had to go for it. gone: pods that were evicted. Coming
    twice, it changes nothing more.
    """

    pods: PodBatch
    nodes: tuple[str, ...]
    preempts: tuple[bool, ...]
    gone: tuple[str, ...] = ()
    known_changes: int = 0


@dataclass(frozen=True, slots=True)
class PreemptedNote:
    """A pod that was evicted from a node, and for which pod."""

    uid: str
    key: str
    node_name: str
    preemptor: str


@dataclass(frozen=True, slots=True)
class PreemptedPage:
    """Binder → client: evicted pods in the order of their eviction."""

    notes: tuple[PreemptedNote, ...]
    total: int


STATUS = method("status", Nothing, ActorStatus)
ADD_NODES = method("add_nodes", NodeBatch, Nothing)
ADD_RUNNING = method("add_running", RunningPods, Nothing)
ADD_PENDING = method("add_pending", PodBatch, Nothing)
SUBMIT = method("submit", PodBatch, Submitted)
LEASE = method("lease", LeaseAsk, Leased)
REPORT = method("report", LeaseReport, Nothing)
QUEUE_STATE = method("queue_state", Nothing, QueueState)
PENDING = method("pending", PageAsk, PendingPage)
ASSUME = method("assume", AssumeBatch, Assumed)
SETTLE = method("settle", Settle, Assumed)
ROSTER = method("roster", RosterAsk, RosterPage)
APPLY = method("apply", DeltaBatch, Nothing)
EVALUATE = method("evaluate", EvaluateRequest, ShardAnswer)
VIEW = method("view", ViewAsk, ShardView)
BIND = method("bind", BindBatch, BindAnswers)
DRY_RUN = method("dry_run", DryRunAsk, Tried)
EVICT = method("evict", Evict, Evicted)
NOMINATE = method("nominate", Nominations, Assumed)
PREEMPTED = method("preempted", PageAsk, PreemptedPage)
BOUND = method("bound", PageAsk, BoundPage)
RUN = method("run", Nothing, Nothing)
STOP = method("stop", Nothing, Nothing)

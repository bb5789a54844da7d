"""The binder's states, events, requests, answers and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from roadstead.facts.pod import PodFacts
from roadstead.journal import JournalRecord
from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.status import SUCCESS, Status
from roadstead.transitions import History, TransitionTable


class BinderState(StrEnum):
    """States of a pod at the binder; TENTATIVE and BOUND pods are counted on their nodes.

    TENTATIVE: its bind is committed, but the record is not flushed yet.
    """

    UNKNOWN = "unknown"
    PENDING = "pending"
    TENTATIVE = "tentative"
    BOUND = "bound"
    DELETED = "deleted"


class BinderEvent(StrEnum):
    """Events of a pod.

    ADD: the pod was submitted; it is "accepted". LOAD: it arrives bound. COMMIT, FLUSH: of a bind.
    UNBIND and MOVE exist only to be refused: no state allows them (I3 in docs/invariants.md).
    """

    ADD = "add"
    LOAD = "load"
    UPDATE = "update"
    COMMIT = "commit"
    FLUSH = "flush"
    EVICT = "evict"
    DELETE = "delete"
    UNBIND = "unbind"
    MOVE = "move"


_S, _E = BinderState, BinderEvent

TABLE: TransitionTable[BinderState, BinderEvent] = TransitionTable(
    "binder",
    {
        (_S.UNKNOWN, _E.ADD): _S.PENDING,
        (_S.UNKNOWN, _E.LOAD): _S.BOUND,
        (_S.PENDING, _E.LOAD): _S.BOUND,
        (_S.PENDING, _E.UPDATE): _S.PENDING,
        (_S.PENDING, _E.COMMIT): _S.TENTATIVE,
        (_S.PENDING, _E.EVICT): _S.DELETED,
        (_S.PENDING, _E.DELETE): _S.DELETED,
        (_S.TENTATIVE, _E.UPDATE): _S.TENTATIVE,
        (_S.TENTATIVE, _E.FLUSH): _S.BOUND,
        (_S.TENTATIVE, _E.EVICT): _S.DELETED,
        (_S.TENTATIVE, _E.DELETE): _S.DELETED,
        (_S.BOUND, _E.UPDATE): _S.BOUND,
        (_S.BOUND, _E.EVICT): _S.DELETED,
        (_S.BOUND, _E.DELETE): _S.DELETED,
        (_S.DELETED, _E.ADD): _S.PENDING,
        (_S.DELETED, _E.LOAD): _S.BOUND,
        (_S.DELETED, _E.EVICT): _S.DELETED,
        (_S.DELETED, _E.DELETE): _S.DELETED,
    },
)

COUNTED = frozenset({_S.TENTATIVE, _S.BOUND})
"""States of pods that are counted on their nodes."""

PRESENT = COUNTED | {_S.PENDING}
"""States of present pods (`PodStore.present`): known and not deleted."""


class BindConflictError(RoadsteadError):
    """A token was used again for another request: a bug of the sender. Nothing was changed."""


class BinderHaltedError(RoadsteadError):
    """The journal failed: nothing more is committed until the binder is recovered."""


class BindRequest(NamedTuple):
    """A scheduler's request for a commit.

    token: the unique name of the attempt. owner, epoch: the scheduler and its epoch. read_version:
    the version of the node's row that the decision was made on. transaction: the name of the
    all-or-nothing group that it is part of; "" for none.
    """

    token: str
    uid: str
    key: str
    node_name: str
    facts: PodFacts
    owner: str
    epoch: int
    read_version: int = 0
    transaction: str = ""

    def is_same(self, other: BindRequest) -> bool:
        """Whether the other is the same request, possibly resent with a newer read_version."""
        return (
            (self.token, self.uid, self.key, self.node_name, self.owner, self.epoch)
            == (other.token, other.uid, other.key, other.node_name, other.owner, other.epoch)
        ) and self.facts == other.facts


KeyedPod = tuple[str, str, PodFacts]
"""A pod's UID, key (namespace/name) and facts."""


Verify = Callable[[BindRequest], Status]
"""All hard filters of one node, run again on the binder's tables, tentative commits included."""


VerifyPrefix = Callable[[Sequence[BindRequest]], int]
"""How many of the first requests `Verify` would pass, each on top of those before it.

It may return fewer: the request after them need not be refused, `Verify` decides on it.
"""


class RejectCause(StrEnum):
    """Cause of a refused bind.

    HALTED: the journal has failed. BUSY: too many records wait for their flush. STALE_EPOCH: the
    scheduler was replaced. CONSTRAINT: a filter refuses the node. VERSION: the node changed since
    it was read. TRANSACTION: another pod of the same job was refused. EXPIRED: the token was voided
    (`void`). CHANGED: the pod was updated since it was read. FAILED: a filter or the write of a
    claim failed, so that the pod's cycle has failed.
    """

    HALTED = "halted"
    BUSY = "busy"
    UNKNOWN_POD = "unknown_pod"
    ALREADY_BOUND = "already_bound"
    DELETED = "deleted"
    STALE_EPOCH = "stale_epoch"
    UNKNOWN_NODE = "unknown_node"
    CONSTRAINT = "constraint"
    FAILED = "failed"
    EXPIRED = "expired"
    CHANGED = "changed"
    VERSION = "version"
    TRANSACTION = "transaction"


class Bound(NamedTuple):
    """A bind that is committed and durable. lsn: of its record. version: of the state after it."""

    uid: str
    node_name: str
    lsn: int
    version: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A bind that is not committed.

    version: of the binder's state, to which the scheduler refreshes before another try. status: of
    the filters, or the reason in words for VERSION, CHANGED and TRANSACTION; SUCCESS for any other
    cause. row_version: that of the node's row, if commits check versions.
    """

    uid: str
    cause: RejectCause
    version: int
    status: Status = SUCCESS
    row_version: int = 0


CommitResult = Bound | Rejected


@dataclass(frozen=True, slots=True)
class AppendJournal:
    """Command: append these records, then flush, then call the core's `flushed(last_lsn)`."""

    records: tuple[JournalRecord, ...]

    @property
    def last_lsn(self) -> int:
        return self.records[-1].lsn


class Acknowledge(NamedTuple):
    """Command: send the result to the scheduler that sent the request."""

    token: str
    owner: str
    result: CommitResult


@dataclass(frozen=True, slots=True)
class Released:
    """Command: a pod is removed, durably; `node_name` is "" if it was not bound.

    preemptor: the key of the pod for which it was evicted; "" if there is none.
    """

    uid: str
    key: str
    node_name: str
    evicted: bool
    preemptor: str


@dataclass(frozen=True, slots=True)
class Halted:
    """Command: report that the binder halted; it will not answer these tokens."""

    reason: str
    flushed_lsn: int
    last_lsn: int
    unanswered: tuple[str, ...]


BinderCommand = AppendJournal | Acknowledge | Released | Halted


@dataclass(frozen=True, slots=True)
class BinderSettings:
    """Bounds of the binder's state.

    max_unflushed: records that wait for their flush; beyond it, binds are refused as BUSY.
    max_tokens: answered requests that are remembered, so that a repeated one gets the same answer.
    max_gone_remembered: deleted pods whose records are kept. checks_versions: refuse binds to a
    node that other schedulers changed since it was read.
    """

    max_unflushed: int = 100_000
    max_tokens: int = 65_536
    max_gone_remembered: int = 65_536
    checks_versions: bool = False


@dataclass(slots=True, eq=False)
class BinderRecord:
    """The binder's record of a pod.

    node_name and lsn are written once, by COMMIT or LOAD, and token, owner, epoch and version by
    COMMIT; a batch that is undone resets them. lsn: number of the record of the bind or load.
    version: of all placements after the bind.
    """

    uid: str
    key: str
    facts: PodFacts
    state: BinderState = BinderState.UNKNOWN
    node_name: str = ""
    token: str = ""
    owner: str = ""
    epoch: int = 0
    lsn: int = 0
    version: int = 0
    history: History = ()

    @property
    def bound(self) -> Bound | None:
        """The answer to the attempt that bound the pod; None if no attempt did."""
        return Bound(self.uid, self.node_name, self.lsn, self.version) if self.token else None

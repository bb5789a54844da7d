"""What the binder is asked, what it keeps, and what it answers."""

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


class PodState(StrEnum):
    """TENTATIVE: accepted, its record not flushed yet. TENTATIVE and BOUND pods are counted."""

    UNKNOWN = "unknown"
    PENDING = "pending"
    TENTATIVE = "tentative"
    BOUND = "bound"
    DELETED = "deleted"


class PodEvent(StrEnum):
    """UNBIND and MOVE are named so that they can be refused: no state allows them (I3)."""

    ADD = "add"
    LOAD = "load"
    UPDATE = "update"
    ACCEPT = "accept"
    FLUSH = "flush"
    EVICT = "evict"
    DELETE = "delete"
    UNBIND = "unbind"
    MOVE = "move"


_S, _E = PodState, PodEvent

TABLE: TransitionTable[PodState, PodEvent] = TransitionTable(
    "binder",
    {
        (_S.UNKNOWN, _E.ADD): _S.PENDING,
        (_S.UNKNOWN, _E.LOAD): _S.BOUND,
        (_S.PENDING, _E.LOAD): _S.BOUND,
        (_S.PENDING, _E.UPDATE): _S.PENDING,
        (_S.PENDING, _E.ACCEPT): _S.TENTATIVE,
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
HERE = COUNTED | {_S.PENDING}


class BindConflictError(RoadsteadError):
    """A token came again with another request: its sender is broken. Nothing was changed."""


class BinderHaltedError(RoadsteadError):
    """The journal failed: nothing more is committed until the binder is recovered."""


class BindRequest(NamedTuple):
    """A scheduler asks for a commit.

    token: names the attempt, unique. owner, epoch: who asks, under which lease epoch.
    read_version: the version of the node's row that the decision was made on. transaction: the
    name of what it is part of, all or nothing; "" for a request that stands by itself.
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
        """The same request, if perhaps sent anew with a fresher version."""
        return (
            (self.token, self.uid, self.key, self.node_name, self.owner, self.epoch)
            == (other.token, other.uid, other.key, other.node_name, other.owner, other.epoch)
        ) and self.facts == other.facts


KeyedPod = tuple[str, str, PodFacts]
"""A pod's UID, key (namespace/name) and facts."""


Verify = Callable[[BindRequest], Status]
"""All hard filters of one node, run again on the binder's tables, tentative commits included."""


VerifyFirst = Callable[[Sequence[BindRequest]], int]
"""How many of the first requests `Verify` would let through, each on top of those before it.

As many as are found quickly: `Verify` must be asked about the one behind them.
"""


class RejectCause(StrEnum):
    """Why a bind is refused.

    CONSTRAINT and VERSION are matters of the node, TRANSACTION of another pod of the same job.
    EXPIRED: `void` said that the attempt is over. CHANGED: the pod was updated since it was read.
    """

    HALTED = "halted"
    BUSY = "busy"
    UNKNOWN_POD = "unknown_pod"
    ALREADY_BOUND = "already_bound"
    DELETED = "deleted"
    STALE_EPOCH = "stale_epoch"
    UNKNOWN_NODE = "unknown_node"
    CONSTRAINT = "constraint"
    EXPIRED = "expired"
    CHANGED = "changed"
    VERSION = "version"
    TRANSACTION = "transaction"


class Bound(NamedTuple):
    """Committed and durable: record `lsn`, state `version`."""

    uid: str
    node_name: str
    lsn: int
    version: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """Not committed; `version` is the state to refresh to before another try, `row_version` that
    of the node's row, where commits check versions."""

    uid: str
    cause: RejectCause
    version: int
    status: Status = SUCCESS
    row_version: int = 0


Decision = Bound | Rejected


@dataclass(frozen=True, slots=True)
class AppendJournal:
    """Effect: append these records, then flush, then tell the core `flushed(last_lsn)`."""

    records: tuple[JournalRecord, ...]

    @property
    def last_lsn(self) -> int:
        return self.records[-1].lsn


class Acknowledge(NamedTuple):
    """Effect: tell the owner of a token what became of it."""

    token: str
    owner: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class Released:
    """Effect: a pod is gone, durably; `node_name` is "" where it was not bound.

    preemptor: for whom it was evicted, if for anybody.
    """

    uid: str
    key: str
    node_name: str
    evicted: bool
    preemptor: str


@dataclass(frozen=True, slots=True)
class Halted:
    """Effect: report that the binder stopped; these tokens will not be answered by it."""

    reason: str
    flushed_lsn: int
    last_lsn: int
    unanswered: tuple[str, ...]


Effect = AppendJournal | Acknowledge | Released | Halted


@dataclass(frozen=True, slots=True)
class BinderSettings:
    """Bounds. Within `max_tokens` a repeated token gets its first answer, whatever it was.

    checks_versions: what goes to a node that others changed since it was read is refused.
    """

    max_unflushed: int = 100_000
    max_tokens: int = 65_536
    max_gone_remembered: int = 65_536
    checks_versions: bool = False


@dataclass(slots=True, eq=False)
class PodRecord:
    """The binder's own record. node_name, token, owner, epoch, lsn and version are written
    once, by accept or load."""

    uid: str
    key: str
    facts: PodFacts
    state: PodState = PodState.UNKNOWN
    node_name: str = ""
    token: str = ""
    owner: str = ""
    epoch: int = 0
    lsn: int = 0
    version: int = 0
    history: History = ()

    @property
    def bound(self) -> Bound | None:
        """What was answered to the attempt that bound it; None where none did."""
        return Bound(self.uid, self.node_name, self.lsn, self.version) if self.token else None

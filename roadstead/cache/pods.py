"""Types of the cache: its record of a pod, transition table, arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from roadstead.facts.pod import PodFacts
from roadstead.placements import Delta
from roadstead.protocol.status import Status
from roadstead.transitions import History, TransitionTable


class CacheState(StrEnum):
    """State of a pod. ASSUMED, ASKED and ADDED pods are counted on their node; others are not."""

    INITIAL = "initial"
    ASSUMED = "assumed"
    ASKED = "asked"
    ADDED = "added"
    EXPIRED = "expired"
    DELETED = "deleted"


class CacheEvent(StrEnum):
    """Event of a pod; the diagram in `roadstead.cache` shows its next states."""

    ASSUME = "assume"
    FORGET = "forget"
    FINISH_BINDING = "finish_binding"
    ASK = "ask"
    EXPIRE = "expire"
    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"


_S, _E = CacheState, CacheEvent

TABLE: TransitionTable[CacheState, CacheEvent] = TransitionTable(
    "cache",
    {
        (_S.INITIAL, _E.ASSUME): _S.ASSUMED,
        (_S.INITIAL, _E.ADD): _S.ADDED,
        (_S.ASSUMED, _E.FORGET): _S.INITIAL,
        (_S.ASSUMED, _E.FINISH_BINDING): _S.ASSUMED,
        (_S.ASSUMED, _E.ASK): _S.ASKED,
        (_S.ASSUMED, _E.ADD): _S.ADDED,
        (_S.ASSUMED, _E.UPDATE): _S.ADDED,
        (_S.ASSUMED, _E.REMOVE): _S.DELETED,
        (_S.ASKED, _E.ASK): _S.ASKED,
        (_S.ASKED, _E.FORGET): _S.INITIAL,
        (_S.ASKED, _E.FINISH_BINDING): _S.ASSUMED,
        (_S.ASKED, _E.EXPIRE): _S.EXPIRED,
        (_S.ASKED, _E.ADD): _S.ADDED,
        (_S.ASKED, _E.UPDATE): _S.ADDED,
        (_S.ASKED, _E.REMOVE): _S.DELETED,
        (_S.ADDED, _E.UPDATE): _S.ADDED,
        (_S.ADDED, _E.REMOVE): _S.DELETED,
        (_S.EXPIRED, _E.ASSUME): _S.ASSUMED,
        (_S.EXPIRED, _E.ADD): _S.ADDED,
        (_S.EXPIRED, _E.UPDATE): _S.ADDED,
        (_S.EXPIRED, _E.REMOVE): _S.DELETED,
        (_S.DELETED, _E.ASSUME): _S.ASSUMED,
        (_S.DELETED, _E.ADD): _S.ADDED,
        (_S.DELETED, _E.REMOVE): _S.DELETED,
    },
)

COUNTED = frozenset({_S.ASSUMED, _S.ASKED, _S.ADDED})
"""States of pods that are counted on their nodes."""

UNCONFIRMED = frozenset({_S.ASSUMED, _S.ASKED})
"""States of pods whose bind is not acknowledged yet; they have deadlines."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Durations after which the binder is asked about an assumption, and bounds.

    assume_s: from assume, while the pod waits for Permit and PreBind. bind_s: from finish_binding.
    ask_again_s: from an unanswered question to the binder. max_gone_remembered: maximum number of
    expired and deleted pods, and of ended attempts, that are remembered.
    """

    assume_s: float = 900.0
    bind_s: float = 30.0
    ask_again_s: float = 5.0
    max_gone_remembered: int = 65_536


class Assumption(NamedTuple):
    """A scheduler's request to count a pod before its commit; `token` names the attempt."""

    uid: str
    key: str
    facts: PodFacts
    node_name: str
    token: str


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod that the cluster shows on a node."""

    uid: str
    key: str
    facts: PodFacts
    node_name: str


@dataclass(frozen=True, slots=True)
class AskBinder:
    """Command: ask the binder for the result of this attempt, and pass its answer to `resolve`."""

    uid: str
    key: str
    token: str
    node_name: str


@dataclass(frozen=True, slots=True)
class BinderAnswer:
    """The binder's answer on an attempt: the node that the pod is bound to, None if not bound."""

    uid: str
    token: str
    node_name: str | None


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """One item of a batch that was refused; nothing was changed for it."""

    uid: str
    status: Status


@dataclass(frozen=True, slots=True)
class CacheResult:
    """The deltas of the applied items, and the refused items."""

    deltas: tuple[Delta, ...] = ()
    refused: tuple[RefusedItem, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Numbers of nodes, and of pods by state.

    on_unknown_nodes: how many of the pods are on nodes that were removed or not added yet.
    """

    nodes: int
    assumed: int
    asked: int
    added: int
    on_unknown_nodes: int


@dataclass(slots=True, eq=False)
class CacheRecord:
    """The cache's record of a pod; facts and node are those of its last placement.

    token: of the attempt that assumed it last. deadline_s: when the binder is asked about that.
    """

    uid: str
    key: str
    facts: PodFacts
    node_name: str
    token: str = ""
    state: CacheState = CacheState.INITIAL
    deadline_s: float = 0.0
    history: History = ()

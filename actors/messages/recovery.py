"""The messages by which a new life of an actor learns what an earlier one knew.

Who asks is the supervisor, but for RESTORE, which the cache sends to a worker. Coming twice, none
changes anything more.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.messages import DeltaBatch, PageAsk, PodBatch
from roadstead.actors.seam import Nothing, method
from roadstead.facts.node_list import NodeList
from roadstead.storage import StorageChange

PAGE = 5_000
"""Nodes or pods in one message."""


@dataclass(frozen=True, slots=True)
class NodesPage:
    """Binder → supervisor: nodes in the order in which they came."""

    nodes: NodeList
    total: int
    revision: int = 0


@dataclass(frozen=True, slots=True)
class StandingPage:
    """Binder → supervisor: pods that are bound, with their nodes, or that wait ("" for a node).

    ran: places of those that nobody bound here, since they ran from the start.
    """

    pods: PodBatch
    nodes: tuple[str, ...]
    total: int
    ran: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Uids:
    """Pods by UID."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodsGone:
    """Client or supervisor → binder or cache: these pods are gone, by a counted removal or not."""

    uids: tuple[str, ...]
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Attempts:
    """Cache → binder: what became of these attempts? What is not committed by now never will be."""

    uids: tuple[str, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Binder → supervisor or cache: the node of each pod asked about; "" waits, None is gone."""

    nodes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """A scheduler whose earlier lives are over; epoch: of the present one."""

    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class OwnerEnds:
    """Supervisor → queue or cache: what the binder says of the pods of an owner's earlier lives."""

    owner: Owner
    uids: tuple[str, ...]
    nodes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class StorageLog:
    """Changes of claims and volumes that commits made, in order."""

    changes: tuple[StorageChange, ...]


@dataclass(frozen=True, slots=True)
class Restream:
    """Supervisor → cache: a follower of its changes is new and has nothing. epoch: of its life."""

    follower: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Cache → scheduler or worker: part of all that the cluster holds after change `seq`.

    epoch: of the life that it is meant for. What was on its way to an earlier one is older than
    changes that this one will not be told of again.
    """

    seq: int
    part: int
    parts: int
    batch: DeltaBatch
    epoch: int


@dataclass(frozen=True, slots=True)
class Restored:
    """Supervisor → queue: all pods are there again. done: how many are bound."""

    done: int


@dataclass(frozen=True, slots=True)
class BoundBefore:
    """Client → queue: how many of the pods were bound before the run was resumed."""

    count: int


@dataclass(frozen=True, slots=True)
class Differences:
    """What a cache and one made anew say differently, one line each."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revised:
    """Binder → supervisor → cache: the last revision of nodes and pods; see `revisions.py`."""

    nodes: tuple[tuple[str, int], ...]
    pods: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Nominated:
    """Queue or cache → supervisor: pods that are nominated to nodes. none: those of the pods that
    were asked about that are waiting without a nomination, or do not wait at all."""

    pods: PodBatch
    nodes: tuple[str, ...]
    none: tuple[str, ...] = ()


NODES_PAGE = method("nodes_page", PageAsk, NodesPage)
STANDING_PAGE = method("standing_page", PageAsk, StandingPage)
STANDING = method("standing", Uids, Words)
RESOLVE = method("resolve", Attempts, Words)
FENCE_OWNER = method("fence_owner", Owner, Nothing)
STORAGE_LOG = method("storage_log", Nothing, StorageLog)
TAKE_STORAGE = method("take_storage", StorageLog, Nothing)
LEASED_TO = method("leased_to", Owner, Uids)
ASSUMED_BY = method("assumed_by", Owner, Uids)
OWNER_ENDS = method("owner_ends", OwnerEnds, Nothing)
RESTREAM = method("restream", Restream, Nothing)
RESTORE = method("restore", Restore, Nothing)
RESTORED = method("restored", Restored, Nothing)
BOUND_BEFORE = method("bound_before", BoundBefore, Nothing)
BOUND_MEMBERS = method("bound_members", PodBatch, Nothing)
"""Supervisor or client → queue: pods of gangs that were bound, before those that wait come."""
EVICTED_PAGE = method("evicted_pods", Nothing, PodBatch)
GONE = method("gone", PodsGone, Nothing)
REVISIONS = method("revisions", Nothing, Revised)
TAKE_REVISIONS = method("take_revisions", Revised, Nothing)
NOMINATED = method("nominated", Uids, Nominated)
COMPARE = method("compare", Nothing, Differences)

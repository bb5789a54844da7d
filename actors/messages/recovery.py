"""Messages that restore the state of a replaced actor.

The supervisor sends most of them; the cache sends RESTORE and RESOLVE, and a client that resumes a
run sends a few. A second copy of any of them changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.actors.messages import DeltaBatch, PageRequest, PodList
from roadstead.facts.node_list import NodeList
from roadstead.storage import StorageChange

PAGE = 5_000
"""Maximum number of nodes or pods in one message."""


@dataclass(frozen=True, slots=True)
class NodesPage:
    """Binder → supervisor: nodes, in the order in which they were added.

    next_start: `start` of the request for the next page; 0 after the last one. Deletions between
    two requests make no other node missing; a node may be in two pages. revision: the highest one
    that the binder has recorded for any node.
    """

    nodes: NodeList
    next_start: int
    revision: int = 0


@dataclass(frozen=True, slots=True)
class PodsPage:
    """Binder → supervisor or client: pods with their nodes; "" for pending ones.

    next_start: as in `NodesPage`. ran: indices of pods that were running when the run started, so
    that this run has no bind for them.
    """

    pods: PodList
    nodes: tuple[str, ...]
    next_start: int = 0
    ran: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Uids:
    """Pods by UID."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodRemoval:
    """Client or supervisor → binder or cache: remove pods. revision: the client's number for it."""

    uids: tuple[str, ...]
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ResolveAttempts:
    """Cache → binder: end these attempts; those that are not committed by now never will be."""

    uids: tuple[str, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodNodes:
    """Binder → caller: node of each requested pod; "" if pending, None if unknown or deleted."""

    nodes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class OwnerEpoch:
    """A scheduler that was replaced. epoch: of its present incarnation."""

    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class EndOwner:
    """Supervisor → queue or cache: a replaced scheduler's pods, with the binder's answer.

    nodes: as in `PodNodes`.
    """

    owner: OwnerEpoch
    uids: tuple[str, ...]
    nodes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class StorageLog:
    """Binder → client, cache or supervisor: changes of claims and volumes by commits, in order."""

    changes: tuple[StorageChange, ...]


@dataclass(frozen=True, slots=True)
class Restream:
    """Supervisor → cache: send all state to a new incarnation of a follower, or to a new worker.

    epoch: of its incarnation.
    """

    follower: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Cache → scheduler or worker: one part of the whole cluster state as of change `seq`.

    epoch: of the incarnation that it is sent to. A later incarnation ignores it: the state may lack
    changes which that incarnation has applied and which are not sent again.
    """

    seq: int
    part: int
    parts: int
    batch: DeltaBatch
    epoch: int


@dataclass(frozen=True, slots=True)
class Restored:
    """Supervisor → queue: all pods were submitted again. done: how many are bound."""

    done: int


@dataclass(frozen=True, slots=True)
class BoundBefore:
    """Client → queue: number of pods that were bound before the run was resumed."""

    count: int


@dataclass(frozen=True, slots=True)
class Differences:
    """Cache → supervisor: differences from a cache rebuilt from scratch, one line each."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LastRevisions:
    """Binder → supervisor → cache: last revision by name and UID; see `roadstead/revisions.py`.

    gone: UIDs of the pods that were removed.
    """

    nodes: tuple[tuple[str, int], ...]
    pods: tuple[tuple[str, int], ...]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nominated:
    """Queue or cache → supervisor: pods with their nominated nodes.

    none: UIDs of the requested pods that have no nomination, or do not wait.
    """

    pods: PodList
    nodes: tuple[str, ...]
    none: tuple[str, ...] = ()


NODES_PAGE = method("nodes_page", PageRequest, NodesPage)
PODS_PAGE = method("pods_page", PageRequest, PodsPage)
POD_NODES = method("pod_nodes", Uids, PodNodes)
RESOLVE = method("resolve", ResolveAttempts, PodNodes)
FENCE_OWNER = method("fence_owner", OwnerEpoch, Nothing)
"""Supervisor → binder: refuse the binds of a scheduler's earlier incarnations from now on."""
STORAGE_LOG = method("storage_log", Nothing, StorageLog)
"""Any → binder: return all changes of claims and volumes."""
LOAD_STORAGE = method("load_storage", StorageLog, Nothing)
"""Supervisor or client → cache: apply these changes."""
LEASED_TO = method("leased_to", OwnerEpoch, Uids)
"""Supervisor → queue: return the pods that earlier incarnations of a scheduler leased."""
ASSUMED_BY = method("assumed_by", OwnerEpoch, Uids)
"""Supervisor → cache: return the pods that earlier incarnations of a scheduler assumed."""
END_OWNER = method("end_owner", EndOwner, Nothing)
RESTREAM = method("restream", Restream, Nothing)
RESTORE = method("restore", Restore, Nothing)
RESTORED = method("restored", Restored, Nothing)
BOUND_BEFORE = method("bound_before", BoundBefore, Nothing)
BOUND_MEMBERS = method("bound_members", PodList, Nothing)
"""Supervisor or client → queue: bound pods of gangs, sent before the waiting pods."""
EVICTED_PODS = method("evicted_pods", Nothing, PodList)
"""Supervisor or client → binder: return all evicted and deleted pods, not only a page."""
REMOVE_PODS = method("remove_pods", PodRemoval, Nothing)
"""Client or supervisor → cache: remove pods that the binder deleted."""
REVISIONS = method("revisions", Nothing, LastRevisions)
MERGE_REVISIONS = method("merge_revisions", LastRevisions, Nothing)
NOMINATED = method("nominated", Uids, Nominated)
COMPARE = method("compare", Nothing, Differences)
"""Supervisor → cache: compare it with a cache rebuilt from scratch."""

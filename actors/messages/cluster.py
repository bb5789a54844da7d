"""To the cache: the cluster, what is assumed of it, and how assumptions end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roadstead.actors.messages.pods import PodBatch
from roadstead.actors.seam import Nothing, method
from roadstead.cache.answers import Assumed
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList


@dataclass(frozen=True, slots=True)
class NodeBatch:
    """Client → cache and binder: nodes appear or change. Coming twice, nothing changes more.

    revision: see `roadstead/revisions.py`.
    """

    nodes: NodeList
    revision: int = 0


def node_batch(nodes: Iterable[NodeFacts], revision: int = 0) -> NodeBatch:
    """Nodes as they travel, in order."""
    return NodeBatch(NodeList.of(nodes), revision)


@dataclass(frozen=True, slots=True)
class RunningPods:
    """Client → cache and binder: pods that run already, on `nodes[i]`. Known ones are skipped."""

    pods: PodBatch
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssumeBatch:
    """Scheduler → cache: count these pods on these nodes, ahead of their commits.

    known_changes: how many changes of the storage the scheduler has. bind_next: they are about to
    be bound, as `Settle.finish` says of others.
    """

    pods: PodBatch
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    known_changes: int = 0
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class Settle:
    """Scheduler → cache: how assumptions end: (uid, token) pairs forgotten or about to be bound,
    and uids that are bound.

    rows: versions of nodes that the binder told, where they matter.
    """

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    known_changes: int = 0
    rows: tuple[tuple[str, int], ...] = ()


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


ADD_NODES = method("add_nodes", NodeBatch, Nothing)
ADD_RUNNING = method("add_running", RunningPods, Nothing)
ASSUME = method("assume", AssumeBatch, Assumed)
SETTLE = method("settle", Settle, Assumed)
NOMINATE = method("nominate", Nominations, Assumed)

"""Messages to the cache: nodes and pods, assumptions, and the ends of assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.cache.answers import CacheAnswer
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod_list import PodList


@dataclass(frozen=True, slots=True)
class NodeBatch:
    """Client → cache and binder: add or change nodes. A second copy changes nothing.

    revision: see `roadstead/revisions.py`.
    """

    nodes: NodeList
    revision: int = 0


def node_batch(nodes: Iterable[NodeFacts], revision: int = 0) -> NodeBatch:
    """Return the message that adds nodes, in order."""
    return NodeBatch(NodeList.of(nodes), revision)


@dataclass(frozen=True, slots=True)
class RunningPods:
    """Client → cache and binder: pods that run on `nodes[i]` already; known ones are skipped."""

    pods: PodList
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssumeBatch:
    """Scheduler → cache: count these pods on these nodes, ahead of their commits.

    known_changes: how many storage changes the scheduler has received. bind_next: the pods are
    bound next, so that their binding deadline starts now, as with `UpdateAssumptions.finish`.
    """

    pods: PodList
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    known_changes: int = 0
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class UpdateAssumptions:
    """Scheduler → cache: progress and ends of assumptions.

    forget: (uid, token) pairs to forget. finish: pairs that are bound next (upstream's
    FinishBinding). confirm: UIDs of bound pods. rows: (node name, version) from the binder's
    answer, with `conflicts: version`.
    """

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    known_changes: int = 0
    rows: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NominateBatch:
    """Any actor or client → cache: nominated nodes of waiting pods; "" ends a nomination.

    preempts: for each pod, whether it has victims. gone: UIDs of evicted pods. deallocated: claims
    of devices that the binder deallocated, as in `Evict`. A second copy changes nothing.
    """

    pods: PodList
    nodes: tuple[str, ...]
    preempts: tuple[bool, ...]
    gone: tuple[str, ...] = ()
    known_changes: int = 0
    deallocated: tuple[tuple[str, str], ...] = ()


ADD_NODES = method("add_nodes", NodeBatch, Nothing)
ADD_RUNNING = method("add_running", RunningPods, Nothing)
ASSUME = method("assume", AssumeBatch, CacheAnswer)
UPDATE_ASSUMPTIONS = method("update_assumptions", UpdateAssumptions, CacheAnswer)
NOMINATE = method("nominate", NominateBatch, CacheAnswer)

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
    """Client → cache and binder: add running pods; `pods[i]` is on `nodes[i]`. Skip known pods."""

    pods: PodList
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssumeBatch:
    """Scheduler → cache: count these pods on these nodes, before their commits.

    known_changes: how many changes of claims and volumes the scheduler has received; the answer
    contains the later ones. bind_next: the scheduler requests the binds next, so that their
    deadline starts now, as with `UpdateAssumptions.finish`.
    """

    pods: PodList
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    known_changes: int = 0
    bind_next: bool = False


@dataclass(frozen=True, slots=True)
class UpdateAssumptions:
    """Scheduler → cache: progress and ends of assumptions.

    forget: (UID, token) of assumptions to forget. finish: of those whose binds are requested next
    (upstream's FinishBinding). confirm: UIDs of bound pods. rows: (node name, version of its row)
    from the binder's answer, with `conflicts: version`.
    """

    forget: tuple[tuple[str, str], ...]
    finish: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]
    known_changes: int = 0
    rows: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NominateBatch:
    """Any actor or client → cache: set the nominated nodes of waiting pods; "" ends a nomination.

    preempts: for each pod, whether it has victims. evicted: UIDs of evicted pods. deallocated:
    claims of devices that the binder deallocated, as in `Evict`. A second copy changes nothing.
    """

    pods: PodList
    nodes: tuple[str, ...]
    preempts: tuple[bool, ...]
    evicted: tuple[str, ...] = ()
    known_changes: int = 0
    deallocated: tuple[tuple[str, str], ...] = ()


ADD_NODES = method("add_nodes", NodeBatch, Nothing)
ADD_RUNNING = method("add_running", RunningPods, Nothing)
ASSUME = method("assume", AssumeBatch, CacheAnswer)
UPDATE_ASSUMPTIONS = method("update_assumptions", UpdateAssumptions, CacheAnswer)
NOMINATE = method("nominate", NominateBatch, CacheAnswer)

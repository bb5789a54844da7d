"""Data of reports to the queue: on leased pods, and on changes of nodes and bound pods."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts


@dataclass(frozen=True, slots=True)
class PendingReason:
    """Status of a pending pod.

    key: namespace/name. reasons: (reason, number of nodes that were rejected for it). plugins: that
    rejected the pod.
    """

    uid: str
    key: str
    message: str
    reasons: tuple[tuple[str, int], ...]
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReturnedPod:
    """One pod that returns to the queue; fields as in `roadstead.queue.Requeue`.

    freed: it was assumed on a node, whose resources are free again.
    """

    uid: str
    reason: str
    rejected_by: tuple[str, ...]
    nominated_node: str | None = None
    preempts: bool = False
    pending: tuple[str, ...] = ()
    freed: bool = False


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that was added (old None), removed (new None) or changed."""

    old: NodeFacts | None
    new: NodeFacts | None


@dataclass(frozen=True, slots=True)
class PodChange:
    """A change of a pod on a node."""

    old: PodFacts
    new: PodFacts

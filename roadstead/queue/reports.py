"""What the queue hears: of pods that it leased, and of what changed in the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts


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
class NodeChange:
    """A node that came (old None), left (new None) or changed."""

    old: NodeFacts | None
    new: NodeFacts | None


@dataclass(frozen=True, slots=True)
class PodChange:
    """A pod on a node that changed."""

    old: PodFacts
    new: PodFacts

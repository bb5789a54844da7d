"""Messages of a cluster that changes in the middle of a run.

The binder hears of a change first, then the cache (and so all that hold nodes), then the queue,
whose waiting pods it may help. What comes, comes by the messages with which a run begins; pods that
change while they wait come to the queue as submitted ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.messages.cluster import RunningPods
from roadstead.actors.messages.pods import NO_PODS, PodBatch
from roadstead.actors.messages.recovery import PodsGone, StandingPage
from roadstead.actors.seam import Nothing, method
from roadstead.queue.reports import NodeChange, PodChange


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """Client or binder → queue: nodes changed; pods, deleted or evicted, left their nodes.

    pods: on their nodes, other than they were. Coming twice, it may bring pods back for a retry in
    vain.
    """

    nodes: tuple[NodeChange, ...] = ()
    gone: PodBatch = NO_PODS
    pods: tuple[PodChange, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Client → binder and cache: these nodes are gone. Coming twice, it changes nothing more."""

    names: tuple[str, ...]
    revision: int = 0


REMOVE_NODES = method("remove_nodes", NodeNames, Nothing)
UPDATE_PODS = method("update_pods", PodBatch, StandingPage)
"""Client → binder: pods are other than they were; the answer is those that are here, as they are
now, with their nodes, "" for those that wait. Coming twice, or late, it changes nothing more."""
UPDATE_RUNNING = method("update_running", RunningPods, Nothing)
"""Client → cache: pods are other than they were, on their nodes; those not counted stay so."""
DELETE_PODS = method("delete_pods", PodsGone, PodBatch)
"""Client → binder: these pods are gone; the answer is those that were there, or went before."""
LEAVE = method("leave", PodBatch, Nothing)
"""Client → queue: these pods are gone, wherever they were; what they held may help others."""
OBSERVE = method("observe", ClusterChanges, Nothing)

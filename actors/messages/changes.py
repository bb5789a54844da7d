"""Messages about changes of the cluster during a run.

A change is sent to the binder, then to the cache (which streams it to schedulers and workers), then
to the queue, which requeues the pods that it may help. New nodes and pods are sent with the same
messages as at the start of a run; waiting pods that changed are submitted to the queue again.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method
from roadstead.actors.messages.cluster import RunningPods
from roadstead.actors.messages.recovery import PodRemoval, PodsPage
from roadstead.facts.pod_list import NO_PODS, PodList
from roadstead.queue.reports import NodeChange, PodChange


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """Client, cache or supervisor → queue: events that may help waiting pods.

    nodes: added, removed or changed. gone: pods that left their nodes. pods: changed on their
    nodes. A second copy may requeue pods that then fail again.
    """

    nodes: tuple[NodeChange, ...] = ()
    gone: PodList = NO_PODS
    pods: tuple[PodChange, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Client → binder and cache: remove these nodes. A second copy changes nothing.

    revision: as in `NodeBatch`.
    """

    names: tuple[str, ...]
    revision: int = 0


REMOVE_NODES = method("remove_nodes", NodeNames, Nothing)
UPDATE_PODS = method("update_pods", PodList, PodsPage)
"""Client → binder: change pods. The answer has the pods that exist, with their present facts and
nodes ("" for pending ones). A second or late copy changes nothing."""
UPDATE_RUNNING = method("update_running", RunningPods, Nothing)
"""Client → cache: change pods on their nodes; pods that the cache does not have are not added."""
DELETE_PODS = method("delete_pods", PodRemoval, PodList)
"""Client → binder: delete pods. The answer has those that existed, or were deleted before."""
REMOVE_DELETED = method("remove_deleted", PodList, Nothing)
"""Client → queue: remove deleted pods, in any state; the room that they leave may help others."""
OBSERVE = method("observe", ClusterChanges, Nothing)

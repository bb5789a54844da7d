"""What an update of a node or a pod changed that scheduling cares about, as cluster events.

Told from manifests, for some of what counts here (annotations, conditions, requests of unknown
resources) leaves no trace in facts. Upstream: pkg/scheduler/framework/events.go (1.34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from roadstead.facts.requests import pod_requests
from roadstead.framework.events import ActionType, ClusterEvent, EventResource
from roadstead.protocol.objects import Node, Pod
from roadstead.protocol.quantity import Quantity


def node_update_events(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """One event per kind of change, in upstream's order; () for a change of no interest.

    A node that is no longer cordoned counts as a change of taints, beside one of its taints.
    """
    actions = (action for action, changed in _NODE_CHANGES if changed(old, new))
    return tuple(ClusterEvent(EventResource.NODE, action) for action in actions)


def pod_update_events(old: Pod, new: Pod) -> tuple[ClusterEvent, ...]:
    """One event per kind of change, in upstream's order; a plain Update where there is none."""
    assigned = bool(new.spec.node_name)
    resource = EventResource.ASSIGNED_POD if assigned else EventResource.UNSCHEDULABLE_POD
    actions = [action for action, changed in _POD_CHANGES if changed(old, new)]
    return tuple(ClusterEvent(resource, action) for action in actions or [ActionType.UPDATE])


def _is_uncordoned(old: Node, new: Node) -> bool:
    return old.spec.unschedulable and not new.spec.unschedulable


def _allocatable_changed(old: Node, new: Node) -> bool:
    return not _equal(old.status.allocatable, new.status.allocatable)


def _equal(old: Mapping[str, Quantity], new: Mapping[str, Quantity]) -> bool:
    return old.keys() == new.keys() and all(old[name].cmp(new[name]) == 0 for name in old)


def _node_labels_changed(old: Node, new: Node) -> bool:
    return old.metadata.labels != new.metadata.labels


def _taints_changed(old: Node, new: Node) -> bool:
    return old.spec.taints != new.spec.taints


def _conditions_changed(old: Node, new: Node) -> bool:
    before, after = (
        {each.type: each.status for each in one.status.conditions} for one in (old, new)
    )
    return before != after


def _annotations_changed(old: Node, new: Node) -> bool:
    return old.metadata.annotations != new.metadata.annotations


def _pod_labels_changed(old: Pod, new: Pod) -> bool:
    return old.metadata.labels != new.metadata.labels


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    return any(_shrunk(old, new))


def _shrunk(old: Pod, new: Pod) -> Iterator[bool]:
    asked = pod_requests(new)
    for name, before in pod_requests(old).items():
        after = asked.get(name)
        yield after is None or before.milli_value() > after.milli_value()


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _tolerations_changed(old: Pod, new: Pod) -> bool:
    """The API server lets tolerations only be added, so upstream counts them."""
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def _generated_claims_changed(old: Pod, new: Pod) -> bool:
    return old.status.resource_claim_statuses != new.status.resource_claim_statuses


_NODE_CHANGES: tuple[tuple[ActionType, Callable[[Node, Node], bool]], ...] = (
    (ActionType.UPDATE_NODE_TAINT, _is_uncordoned),
    (ActionType.UPDATE_NODE_ALLOCATABLE, _allocatable_changed),
    (ActionType.UPDATE_NODE_LABEL, _node_labels_changed),
    (ActionType.UPDATE_NODE_TAINT, _taints_changed),
    (ActionType.UPDATE_NODE_CONDITION, _conditions_changed),
    (ActionType.UPDATE_NODE_ANNOTATION, _annotations_changed),
)
_POD_CHANGES: tuple[tuple[ActionType, Callable[[Pod, Pod], bool]], ...] = (
    (ActionType.UPDATE_POD_LABEL, _pod_labels_changed),
    (ActionType.UPDATE_POD_SCALE_DOWN, _is_scaled_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_eliminated),
    (ActionType.UPDATE_POD_TOLERATION, _tolerations_changed),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _generated_claims_changed),
)

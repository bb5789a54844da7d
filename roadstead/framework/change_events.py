"""The cluster events for the difference between old and new facts of one object.

One event per type of change, in the order of upstream's pkg/scheduler/framework/events.go (1.34).
Changes of annotations, conditions and resources that scheduling does not count have no event of
their own.
"""

from __future__ import annotations

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
    EventPod,
    EventResource,
    ObjectChange,
)
from roadstead.framework.hint_map import OccurredEvent


def node_change_events(old: NodeFacts | None, new: NodeFacts | None) -> list[OccurredEvent]:
    """Return the events of a node that was added (old None), removed (new None) or changed."""
    change: ObjectChange[object] = ObjectChange(old, new)
    if old is None or new is None:
        return [OccurredEvent(NODE_ADD if old is None else NODE_DELETE, change)]
    # Uncordoning counts as a change of taints, in addition to a change of the taints themselves.
    uncordoned = old.unschedulable and not new.unschedulable
    resized = (old.allocatable, old.allocatable_pods) != (new.allocatable, new.allocatable_pods)
    found = (
        (ActionType.UPDATE_NODE_TAINT, uncordoned),
        (ActionType.UPDATE_NODE_ALLOCATABLE, resized),
        (ActionType.UPDATE_NODE_LABEL, old.labels != new.labels),
        (ActionType.UPDATE_NODE_TAINT, old.taints != new.taints),
    )
    return [
        OccurredEvent(ClusterEvent(EventResource.NODE, action), change)
        for action, changed in found
        if changed
    ]


def pod_change_events(old: PodFacts, new: PodFacts, *, is_assigned: bool) -> list[OccurredEvent]:
    """Return the events of a pod that changed on a node, or (`of_waiting_pod`) while it waits.

    Tolerations are compared by number, as upstream does: the API server only permits to add them.
    """
    resource = EventResource.ASSIGNED_POD if is_assigned else EventResource.UNSCHEDULABLE_POD
    change: ObjectChange[object] = ObjectChange(
        EventPod(old, is_assigned), EventPod(new, is_assigned), of_waiting_pod=not is_assigned
    )
    before, after = dict(old.requests), dict(new.requests)
    shrunk = any(name not in after or amount > after[name] for name, amount in before.items())
    ungated = bool(old.scheduling_gates) and not new.scheduling_gates
    found = (
        (ActionType.UPDATE_POD_LABEL, old.labels != new.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, shrunk),
        (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, ungated),
        (ActionType.UPDATE_POD_TOLERATION, len(old.tolerations) != len(new.tolerations)),
        (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, old.device_claims != new.device_claims),
    )
    actions = [action for action, changed in found if changed] or [ActionType.UPDATE]
    return [OccurredEvent(ClusterEvent(resource, action), change) for action in actions]

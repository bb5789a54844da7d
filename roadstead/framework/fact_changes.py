"""What changed between two facts of one object, as far as facts tell.

What leaves no trace in facts (annotations, conditions, resources nobody counts) changes no
decision; `roadstead.framework.changes` tells of it from manifests, as upstream does.
"""

from __future__ import annotations

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    Change,
    ClusterEvent,
    EventResource,
    SeenPod,
)
from roadstead.framework.hint_map import SeenEvent


def seen_node(old: NodeFacts | None, new: NodeFacts | None) -> list[SeenEvent]:
    """The events of a node that came (old None), left (new None) or changed."""
    change: Change[object] = Change(old, new)
    if old is None or new is None:
        return [SeenEvent(NODE_ADD if old is None else NODE_DELETE, change)]
    uncordoned = old.unschedulable and not new.unschedulable
    resized = (old.allocatable, old.allocatable_pods) != (new.allocatable, new.allocatable_pods)
    found = (
        (ActionType.UPDATE_NODE_TAINT, uncordoned or old.taints != new.taints),
        (ActionType.UPDATE_NODE_ALLOCATABLE, resized),
        (ActionType.UPDATE_NODE_LABEL, old.labels != new.labels),
    )
    return [
        SeenEvent(ClusterEvent(EventResource.NODE, action), change)
        for action, changed in found
        if changed
    ]


def seen_pod(old: PodFacts, new: PodFacts, *, is_assigned: bool) -> list[SeenEvent]:
    """The events of a pod that changed: on a node, or while it waits, which is for its own hints.

    Upstream: pkg/scheduler/framework/events.go (PodSchedulingPropertiesChange).
    """
    resource = EventResource.ASSIGNED_POD if is_assigned else EventResource.UNSCHEDULABLE_POD
    seen = SeenPod(old, is_assigned), SeenPod(new, is_assigned)
    change: Change[object] = Change(*seen, own=not is_assigned)
    before, after = dict(old.requests), dict(new.requests)
    shrunk = any(name not in after or amount > after[name] for name, amount in before.items())
    ungated = bool(old.scheduling_gates) and not new.scheduling_gates
    found = (
        (ActionType.UPDATE_POD_LABEL, old.labels != new.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, shrunk),
        (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, ungated),
        (ActionType.UPDATE_POD_TOLERATION, len(old.tolerations) != len(new.tolerations)),
    )
    actions = [action for action, changed in found if changed] or [ActionType.UPDATE]
    return [SeenEvent(ClusterEvent(resource, action), change) for action in actions]

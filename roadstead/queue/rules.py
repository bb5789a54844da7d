"""What the events of a cluster mean to pods that wait: `EventRules` over a HintMap.

Upstream narrows down whom it looks at when a pod was assigned or changed on its node
(getUnschedulablePodsWithCrossTopologyTerm of pkg/scheduler/backend/queue/scheduling_queue.go,
1.34): such a pod helps no one who was refused by what is on single nodes. Ours besides: it helps
those of its gang that gave up.
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.pod import Labels, PodFacts
from roadstead.facts.pod_groups import group_key
from roadstead.framework.events import ActionType, ClusterEvent, EventResource, SeenPod
from roadstead.framework.hint_map import HintMap, SeenEvent
from roadstead.queue.hints import EventRules

SPREAD = "PodTopologySpread"
GANGS = "Coscheduling"


def rules_of(hints: HintMap) -> EventRules[SeenEvent]:
    """The rules of a queue whose profiles registered these hints."""

    def concerns(seen: SeenEvent, facts: PodFacts, rejected_by: tuple[str, ...]) -> bool:
        assigned = seen.change.new
        if not _is_narrowed(seen.event) or not isinstance(assigned, SeenPod):
            return True
        if SPREAD in rejected_by and assigned.facts.namespace == facts.namespace:
            return True
        gang = group_key(facts)
        if gang is not None and GANGS in rejected_by and gang == group_key(assigned.facts):
            return True
        return _wants(facts, assigned.facts, dict(hints.cluster.namespaces))

    return EventRules(hint=hints.may_help, registered=hints.is_registered, concerns=concerns)


def _is_narrowed(event: ClusterEvent) -> bool:
    """A pod that asks for less may let others in by itself."""
    grown = event.action & (ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    return event.resource is EventResource.ASSIGNED_POD and not grown


def _wants(pod: PodFacts, assigned: PodFacts, namespaces: Mapping[str, Labels]) -> bool:
    """Whether a required affinity term of a waiting pod means the assigned one."""
    if not pod.pod_affinity:
        return False
    labels, namespace = dict(assigned.labels), dict(namespaces.get(assigned.namespace, ()))
    return any(term.means(assigned.namespace, labels, namespace) for term in pod.pod_affinity)

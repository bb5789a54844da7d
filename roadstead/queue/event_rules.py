"""EventRules of cluster events, from the queueing hints of a HintMap.

When a pod was assigned, or changed on its node, upstream considers only some waiting pods
(getUnschedulablePodsWithCrossTopologyTerm of pkg/scheduler/backend/queue/scheduling_queue.go,
1.34): such a pod cannot help a pod that was rejected for reasons within single nodes. Plugins
declare which pods it may help when they register events (`RegisteredEvent.may_matter`). An event
that spares gangs moves only pods without a gang (`roadstead.queue.gang_turns`). A thorough event
(`ObjectChange.thorough`) also moves pods that upstream leaves to the retry after five minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    ActionType,
    ClusterEvent,
    EventPod,
    EventResource,
    ObjectChange,
)
from roadstead.framework.hint_map import HintMap, OccurredEvent
from roadstead.queue.hints import EventRules

ANY_THAT_SPARES_GANGS = OccurredEvent(
    ClusterEvent(EventResource.WILDCARD, ActionType.ALL), ObjectChange(), spares_gangs=True
)
"""Any event, for pods without a gang."""


def event_rules(hints: HintMap) -> EventRules[OccurredEvent]:
    """Return the rules of a queue whose profiles registered these hints."""

    def concerns(event: OccurredEvent, facts: PodFacts, rejected_by: tuple[str, ...]) -> bool:
        assigned = event.change.new
        if not _may_help_only_some(event.event) or not isinstance(assigned, EventPod):
            return True
        if event.change.thorough and event.change.old is not None:
            # The old pod may have blocked pods that the new one does not concern.
            return True
        return hints.may_matter(facts, assigned.facts, rejected_by)

    return EventRules(hints.may_help, hints.is_registered, concerns, any_of)


def any_of(events: Sequence[OccurredEvent | None]) -> OccurredEvent | None:
    """Return "any event"; it spares gangs if all of these events do.

    Otherwise gangs that fail would requeue each other for ever through a full log of events.
    """
    spare_gangs = all(event is not None and event.spares_gangs for event in events)
    return ANY_THAT_SPARES_GANGS if spare_gangs else None


def _may_help_only_some(event: ClusterEvent) -> bool:
    """Whether only some waiting pods are considered for an event of a pod on a node.

    All are considered for deleted pods and lower requests, which free resources.
    """
    frees_resources = event.action & (ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    return event.resource is EventResource.ASSIGNED_POD and not frees_resources

"""What the events of a cluster mean to pods that wait: `EventRules` over a HintMap.

Upstream narrows down whom it looks at when a pod was assigned or changed on its node
(getUnschedulablePodsWithCrossTopologyTerm of pkg/scheduler/backend/queue/scheduling_queue.go,
1.34): such a pod helps no one who was refused by what is on single nodes. Whom it may help, the
plugins say where they register their events (`RegisteredEvent.concerns`).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.facts.pod import PodFacts
from roadstead.framework.events import ActionType, Change, ClusterEvent, EventResource, SeenPod
from roadstead.framework.hint_map import HintMap, SeenEvent
from roadstead.queue.hints import EventRules

ANY_THAT_SPARES_GANGS = SeenEvent(
    ClusterEvent(EventResource.WILDCARD, ActionType.ALL), Change(), spares_gangs=True
)


def rules_of(hints: HintMap) -> EventRules[SeenEvent]:
    """The rules of a queue whose profiles registered these hints."""

    def concerns(seen: SeenEvent, facts: PodFacts, rejected_by: tuple[str, ...]) -> bool:
        assigned = seen.change.new
        if not _is_narrowed(seen.event) or not isinstance(assigned, SeenPod):
            return True
        if seen.change.thorough and seen.change.old is not None:
            # Upstream looks at the pod as it is now alone, and not at whom it kept away before.
            return True
        return hints.is_concerned(facts, assigned.facts, rejected_by)

    return EventRules(hints.may_help, hints.is_registered, concerns, any_of)


def any_of(events: Sequence[SeenEvent | None]) -> SeenEvent | None:
    """ "Any event", which spares gangs if all of these do.

    Otherwise gangs that give up would wake each other for ever by way of a log that is full.
    """
    spare_gangs = all(event is not None and event.spares_gangs for event in events)
    return ANY_THAT_SPARES_GANGS if spare_gangs else None


def _is_narrowed(event: ClusterEvent) -> bool:
    """A pod that asks for less may let others in by itself."""
    grown = event.action & (ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    return event.resource is EventResource.ASSIGNED_POD and not grown

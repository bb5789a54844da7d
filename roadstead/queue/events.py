"""Events for queueing hints, created from changes of nodes and pods.

Thorough events (`ObjectChange.thorough`) also move pods that upstream leaves to the retry after
five minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from roadstead.devices.assumed import names_of
from roadstead.devices.claims import consumer_of
from roadstead.facts.devices import Allocation, DeviceClaimFacts
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, PodFacts
from roadstead.framework.change_events import node_change_events, pod_change_events
from roadstead.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ActionType,
    ClusterEvent,
    EventPod,
    EventResource,
    ObjectChange,
)
from roadstead.framework.hint_map import OccurredEvent
from roadstead.protocol.generations import Generations
from roadstead.queue.reports import NodeChange, PodChange

_CLAIM_UPDATE = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.UPDATE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)

MAX_CACHED_EVENTS = 32_768
"""How many recently used events a cache keeps; older ones are dropped.

Equal events are one object, so that hints evaluate each once.
"""


class PodEvents:
    """Events of pods: one object for each cluster event and class of pods.

    claims: device claims. When a pod that uses one is assigned to a node or leaves it, there is an
    event of the claim, too.
    """

    def __init__(self, claims: Iterable[DeviceClaimFacts] = ()) -> None:
        self._claims = {each.key: each for each in claims}
        self._cached = Generations[tuple[ClusterEvent, int, bool], OccurredEvent](MAX_CACHED_EVENTS)
        self._cached_of_claims = Generations[tuple[str, str, str, bool], OccurredEvent](
            MAX_CACHED_EVENTS
        )

    def add_claims(self, claims: Iterable[DeviceClaimFacts]) -> None:
        """Add device claims that were created for pods."""
        self._claims |= {each.key: each for each in claims}

    def remove_claims(self, keys: Iterable[str]) -> None:
        """Remove device claims that were deleted."""
        for key in keys:
            self._claims.pop(key, None)

    def assigned(self, pods: Iterable[PodFacts]) -> list[OccurredEvent]:
        """Return the events of pods that were assigned to nodes; one for each class."""
        pods = list(pods)
        return [*self._events_of(ASSIGNED_POD_ADD, pods), *self._claims_written(pods)]

    def unassigned(
        self, pods: Iterable[PodFacts], *, spares_gangs: bool = False
    ) -> list[OccurredEvent]:
        """Return the events of pods that left nodes, or are no longer assumed; one for each class.

        spares_gangs: the events do not move pods of gangs.
        """
        pods = list(pods)
        found = self._events_of(ASSIGNED_POD_DELETE, pods, spares_gangs=spares_gangs)
        return [*found, *self._claims_freed(pods, spares_gangs)]

    def added(self, pods: Iterable[PodFacts]) -> list[OccurredEvent]:
        """Return the events of pods that were added to the queue; one for each class."""
        return self._events_of(UNSCHEDULABLE_POD_ADD, pods)

    def _claims_written(self, pods: Iterable[PodFacts]) -> Iterator[OccurredEvent]:
        """Yield the events of shared claims that bound pods use: other pods may use them now.

        (Before the bind, the claim was in flight: its allocation was assumed, not written.)
        """
        for claim, pod in self._claims_of(pods):
            if claim.owner_kind != "Pod":
                consumer = consumer_of(pod)
                before = replace(claim, allocation=None)
                after = replace(before, reserved_for=(consumer,))
                yield self._event_of_claim(consumer.uid, before, after)

    def _claims_freed(
        self, pods: Iterable[PodFacts], spares_gangs: bool
    ) -> Iterator[OccurredEvent]:
        """Yield the event of one claim whose devices are free again.

        One is enough: it moves the same pods as the events of all claims.
        """
        for claim, _ in self._claims_of(pods):
            # Hints read only that the claim was allocated, not the devices.
            before = replace(claim, allocation=Allocation())
            after = replace(claim, allocation=None)
            yield self._event_of_claim("", before, after, spares_gangs=spares_gangs)
            return

    def _event_of_claim(
        self,
        consumer: str,
        old: DeviceClaimFacts,
        new: DeviceClaimFacts,
        *,
        spares_gangs: bool = False,
    ) -> OccurredEvent:
        """Return the event of a changed claim; one object for equal changes.

        consumer: UID of the pod that the claim is reserved for after the change; "" for none.
        """
        # With the UID: a deleted claim may be created again under its name.
        key = new.key, new.uid, consumer, spares_gangs
        cached = self._cached_of_claims.get(key)
        if cached is None:
            cached = OccurredEvent(_CLAIM_UPDATE, ObjectChange(old, new), spares_gangs)
            self._cached_of_claims.put(key, cached)
        return cached

    def _claims_of(self, pods: Iterable[PodFacts]) -> Iterator[tuple[DeviceClaimFacts, PodFacts]]:
        """Yield the claims of pods, whose allocation may be out of date."""
        for pod in pods:
            for name in names_of(pod) if pod.device_claims else ():
                key = f"{pod.namespace}/{name}"
                yield self._claims.get(key) or DeviceClaimFacts(pod.namespace, name), pod
            if pod.extended_requests:
                # The claim for extended resources may not exist, and its name is not known: what
                # matters to other pods is that its devices may be free again.
                yield DeviceClaimFacts(pod.namespace, UNWRITTEN_CLAIM_NAME, owner_kind="Pod"), pod

    def _events_of(
        self, event: ClusterEvent, pods: Iterable[PodFacts], *, spares_gangs: bool = False
    ) -> list[OccurredEvent]:
        # By id: a cached event keeps its facts alive, so no other facts can have the same id.
        classes = {id(facts): facts for facts in pods}
        return [self._event_of(event, facts, spares_gangs) for facts in classes.values()]

    def _event_of(self, event: ClusterEvent, facts: PodFacts, spares_gangs: bool) -> OccurredEvent:
        key = event, id(facts), spares_gangs
        cached = self._cached.get(key)
        if cached is None:
            pod = EventPod(facts, event.resource is EventResource.ASSIGNED_POD)
            is_deleted = event.action is ActionType.DELETE
            change: ObjectChange[object] = (
                ObjectChange(old=pod, thorough=True) if is_deleted else ObjectChange(new=pod)
            )
            cached = OccurredEvent(event, change, spares_gangs)
            self._cached.put(key, cached)
        return cached


def pod_events(changes: Iterable[PodChange]) -> list[OccurredEvent]:
    """Return the events of pods that changed on their nodes; equal changes count once."""
    distinct = dict.fromkeys((each.old, each.new) for each in changes)
    return [
        OccurredEvent(event.event, replace(event.change, thorough=True))
        for old, new in distinct
        for event in pod_change_events(old, new, is_assigned=True)
    ]


def node_events(changes: Iterable[NodeChange]) -> list[OccurredEvent]:
    """Return the events of changed nodes; one change may have several."""
    return [
        OccurredEvent(event.event, replace(event.change, thorough=True))
        for each in changes
        for event in node_change_events(each.old, each.new)
    ]

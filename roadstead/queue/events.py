"""Events for queueing hints, created from changes of nodes and pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from roadstead.devices.assumed import names_of
from roadstead.devices.claims import consumer_of
from roadstead.facts.devices import Allocation, DeviceClaimFacts
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, PodFacts
from roadstead.framework.changes import node_change_events, pod_change_events
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

MAX_KNOWN = 32_768
"""Cached events, or up to twice as many: equal ones are one object, and each is evaluated once."""


class PodEvents:
    """Events of pods: one object for each cluster event and class of pods.

    claims: the claims of devices, of which the events of their pods are also events.
    """

    def __init__(self, claims: Iterable[DeviceClaimFacts] = ()) -> None:
        self._claims = {each.key: each for each in claims}
        self._known: Generations[tuple[ClusterEvent, int, bool], OccurredEvent] = Generations(
            MAX_KNOWN
        )
        self._known_of_claims: Generations[tuple[str, str, str, bool], OccurredEvent] = Generations(
            MAX_KNOWN
        )

    def add_claims(self, claims: Iterable[DeviceClaimFacts]) -> None:
        """Add claims of devices that were made for pods."""
        self._claims |= {each.key: each for each in claims}

    def remove_claims(self, keys: Iterable[str]) -> None:
        """Remove claims of devices that ended."""
        for key in keys:
            self._claims.pop(key, None)

    def assigned(self, pods: Iterable[PodFacts]) -> list[OccurredEvent]:
        """Return the events of pods that were assigned to nodes; one for each class."""
        pods = list(pods)
        return [*self._of(ASSIGNED_POD_ADD, pods), *self._claims_written(pods)]

    def gone(self, pods: Iterable[PodFacts], *, spares_gangs: bool = False) -> list[OccurredEvent]:
        """Return the events of pods that left nodes or lost assumptions; one for each class.

        spares_gangs: the events do not wake pods of gangs.
        """
        pods = list(pods)
        found = self._of(ASSIGNED_POD_DELETE, pods, spares_gangs=spares_gangs)
        return [*found, *self._claims_freed(pods, spares_gangs)]

    def waiting(self, pods: Iterable[PodFacts]) -> list[OccurredEvent]:
        """Return the events of pods that were added to the queue; one for each class."""
        return self._of(UNSCHEDULABLE_POD_ADD, pods)

    def _claims_written(self, pods: Iterable[PodFacts]) -> Iterator[OccurredEvent]:
        """Yield the events of claims that bound pods share: they are no longer in flight."""
        for claim, pod in self._claims_of(pods):
            if claim.owner_kind != "Pod":
                consumer = consumer_of(pod)
                after = replace(claim, reserved_for=(consumer,))
                yield self._of_claim(consumer.uid, claim, after)

    def _claims_freed(
        self, pods: Iterable[PodFacts], spares_gangs: bool
    ) -> Iterator[OccurredEvent]:
        """Yield the event of a claim whose devices are free again; one wakes as many as all."""
        for claim, _ in self._claims_of(pods):
            before = replace(claim, allocation=Allocation())
            yield self._of_claim("", before, claim, spares_gangs=spares_gangs)
            return

    def _of_claim(
        self,
        consumer: str,
        old: DeviceClaimFacts,
        new: DeviceClaimFacts,
        *,
        spares_gangs: bool = False,
    ) -> OccurredEvent:
        """Return the event of a changed claim, one object each. consumer: UID of its new one."""
        # With the UID: a claim of the same name may be made again.
        key = new.key, new.uid, consumer, spares_gangs
        known = self._known_of_claims.get(key)
        if known is None:
            known = OccurredEvent(_CLAIM_UPDATE, ObjectChange(old, new), spares_gangs)
            self._known_of_claims.put(key, known)
        return known

    def _claims_of(self, pods: Iterable[PodFacts]) -> Iterator[tuple[DeviceClaimFacts, PodFacts]]:
        """Yield the claims of pods, without allocation."""
        for pod in pods:
            for name in names_of(pod) if pod.device_claims else ():
                key = f"{pod.namespace}/{name}"
                claim = self._claims.get(key) or DeviceClaimFacts(pod.namespace, name)
                yield replace(claim, allocation=None), pod
            if pod.extended_requests:
                # Whether it was made, and its name, do not matter: devices may be free again.
                yield DeviceClaimFacts(pod.namespace, UNWRITTEN_CLAIM_NAME, owner_kind="Pod"), pod

    def _of(
        self, event: ClusterEvent, pods: Iterable[PodFacts], *, spares_gangs: bool = False
    ) -> list[OccurredEvent]:
        # By id: a cached event keeps its facts alive, so no other facts can have the same id.
        classes = {id(facts): facts for facts in pods}
        return [self._one(event, facts, spares_gangs) for facts in classes.values()]

    def _one(self, event: ClusterEvent, facts: PodFacts, spares_gangs: bool) -> OccurredEvent:
        key = event, id(facts), spares_gangs
        known = self._known.get(key)
        if known is None:
            seen = EventPod(facts, event.resource is EventResource.ASSIGNED_POD)
            is_gone = event.action is ActionType.DELETE
            change: ObjectChange[object] = (
                ObjectChange(old=seen, thorough=True) if is_gone else ObjectChange(new=seen)
            )
            known = OccurredEvent(event, change, spares_gangs)
            self._known.put(key, known)
        return known


def pod_events(changes: Iterable[PodChange]) -> list[OccurredEvent]:
    """Return the events of pods that changed on their nodes; equal changes count once."""
    found = dict.fromkeys((each.old, each.new) for each in changes)
    return [
        OccurredEvent(seen.event, replace(seen.change, thorough=True))
        for old, new in found
        for seen in pod_change_events(old, new, is_assigned=True)
    ]


def node_events(changes: Iterable[NodeChange]) -> list[OccurredEvent]:
    """Return the events of changed nodes; one change may have several."""
    return [
        OccurredEvent(seen.event, replace(seen.change, thorough=True))
        for each in changes
        for seen in node_change_events(each.old, each.new)
    ]

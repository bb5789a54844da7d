"""Cluster events, and how plugins register those that may help a pod that they rejected.

An event is a resource and an action. A plugin registers events (`EnqueueExtensions` in
`roadstead.framework.plugin`), each with a queueing hint or without. When a registered event occurs,
the queue calls the hints of the plugins that rejected a pod. A hint is called once per pod class
and not once per pod, so it receives facts, and `of_waiting_pod` where upstream compares UIDs.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go, pkg/scheduler/framework/types.go and
events.go (1.34). The events of an update: `roadstead.framework.change_events`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Generic, TypeVar, cast

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.errors import RoadsteadError


class EventResource(StrEnum):
    """The kind of object that an event is about; ASSIGNED_POD and UNSCHEDULABLE_POD are pods."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    WILDCARD = "*"


class ActionType(IntFlag):
    """Type of the change of an object, as bit flags; `matches` relies on upstream's order."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_POD_LABEL = 1 << 7
    UPDATE_POD_SCALE_DOWN = 1 << 8
    UPDATE_POD_TOLERATION = 1 << 9
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 10
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 11
    UPDATE = (1 << 12) - 1 - (1 << 0) - (1 << 1)
    ALL = (1 << 12) - 1

    @property
    def label(self) -> str:
        """Upstream's name, such as "UpdateNodeTaint"; "" for a combination without one."""
        if self not in _NAMED or self.name is None:
            return ""
        return "".join(map(str.capitalize, self.name.split("_")))


_NAMED = frozenset((*ActionType, ActionType.UPDATE, ActionType.ALL))

_PODS = (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A type of event, registered or occurring."""

    resource: EventResource
    action: ActionType

    @property
    def label(self) -> str:
        """The name in logs and metrics: "NodeAdd", "AssignedPodUpdatePodLabel"."""
        return f"{self.resource}{self.action.label}"

    @property
    def is_wildcard(self) -> bool:
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether a registration of this event covers `incoming` (MatchClusterEvents).

        An incoming UPDATE, whose bits are all updates, does not match a registration of one of them
        alone, such as UPDATE_NODE_LABEL.
        """
        if self.is_wildcard:
            return True
        return (
            self._covers(incoming.resource)
            and bool(self.action & incoming.action)
            and incoming.action <= self.action
        )

    def _covers(self, resource: EventResource) -> bool:
        if self.resource in (EventResource.WILDCARD, resource):
            return True
        return self.resource is EventResource.POD and resource in _PODS


ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)


@dataclass(frozen=True, slots=True)
class EventPod:
    """The pod of an event. assigned: it has a node (spec.nodeName)."""

    facts: PodFacts
    assigned: bool


ObjectT = TypeVar("ObjectT")
"""EventPod, NodeFacts, or the facts of a storage or device object."""


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[ObjectT]):
    """The object of an event before and after; `old` is None for Add, `new` for Delete.

    of_waiting_pod: the change is an update of the waiting pod itself (upstream: equal UIDs).
    thorough: hints also consider changes that upstream's hint ignores, although they may help.
    Upstream can ignore them, as its queue retries every pod after five minutes; a `roadstead
    schedule` command or a simulated run is often over by then.
    """

    old: ObjectT | None = None
    new: ObjectT | None = None
    of_waiting_pod: bool = False
    thorough: bool = False


class QueueingHint(StrEnum):
    """QUEUE: the event may let the pod pass this plugin. QUEUE_SKIP: it does not."""

    QUEUE = "Queue"
    QUEUE_SKIP = "QueueSkip"

    @staticmethod
    def when(condition: bool) -> QueueingHint:
        return QueueingHint.QUEUE if condition else QueueingHint.QUEUE_SKIP


class HintError(RoadsteadError):
    """A hint failed; the queue treats it as QUEUE, so that no pod is stuck."""


Hint = Callable[[PodFacts, ObjectChange[ObjectT], ClusterFacts], QueueingHint]
"""(facts of the waiting pod, the change, the current cluster) → hint. May raise HintError."""


MayMatter = Callable[[PodFacts, PodFacts, ClusterFacts], bool]
"""(facts of the waiting pod, of a pod on a node, the current cluster) → whether the second pod may
matter to the first. May raise HintError.
"""


@dataclass(frozen=True, slots=True)
class RegisteredEvent:
    """An event that may help pods that a plugin rejected; without a hint, it may always help.

    Built by `on`. may_matter: a cheaper test before the hints. When a pod on a node was added or
    changed, the queue calls hints only for those waiting pods for which `may_matter` of a plugin
    that rejected them returns true. It is called for all events of pods on nodes, not only for
    `event`; if it is None, this registration selects no pods.
    whoever_rejected: `may_matter` also selects among pods that only other plugins rejected.
    """

    event: ClusterEvent
    hint: Hint[object] | None = None
    may_matter: MayMatter | None = None
    whoever_rejected: bool = False


def on(
    resource: EventResource,
    action: ActionType,
    hint: Hint[ObjectT] | None = None,
    *,
    may_matter: MayMatter | None = None,
    whoever_rejected: bool = False,
) -> RegisteredEvent:
    """Return a registered event; the hint receives changes of the facts of `resource`.

    may_matter, whoever_rejected: see `RegisteredEvent`.
    """
    event, untyped = ClusterEvent(resource, action), cast("Hint[object] | None", hint)
    return RegisteredEvent(event, untyped, may_matter, whoever_rejected)


EVERYTHING: tuple[RegisteredEvent, ...] = tuple(
    on(resource, ActionType.ALL)
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)
"""The events of a plugin without EnqueueExtensions (UnrollWildCardResource)."""

"""Recorded queueing hints, registered events, and the classification of updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.compile import compile_node, compile_pod
from roadstead.facts.compile_devices import (
    compile_device_claim,
    compile_device_class,
    compile_slice,
)
from roadstead.facts.compile_storage import (
    compile_attachment,
    compile_capacity,
    compile_claim,
    compile_class,
    compile_csi_driver,
    compile_csi_node,
    compile_volume,
)
from roadstead.framework.change_events import node_change_events, pod_change_events
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    HintError,
    ObjectChange,
    RegisteredEvent,
)
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol import objects
from scripts.recordings.cases import compile_case, mapping
from scripts.recordings.result import Json, differing

Check = Callable[[Json], tuple[Json, list[str]]]
T = TypeVar("T", bound=objects.ApiObject)

IGNORED = "Condition", "Annotation", "GeneratedResourceClaim"
"""Suffixes of the labels of events that concern nothing a decision reads."""

_FINE_UPDATES = tuple(each for each in ActionType if each in ActionType.UPDATE)


def hint_check(file: Path, document: Json) -> Check:
    """Return a check of our queueing hints, with a recording's objects in the listers."""
    cluster = compile_case(file, document).cluster
    registered = _registered(cluster)

    def check(case: Json) -> tuple[Json, list[str]]:
        event = registered[str(case["plugin"])][int(str(case["event"]))]
        ours = {key: case[key] for key in ("plugin", "resource", "action", "event")}
        ours |= _hint_fields(event, case, cluster)
        return ours, differing(ours, {key: case[key] for key in (*ours, "error") if key in case})

    return check


def events_check(file: Path, document: Json) -> Check:
    """Return a check of the events that our plugins register."""
    registered = _registered(ClusterFacts())

    def check(case: Json) -> tuple[Json, list[str]]:
        name = str(case["name"])
        ours: Json = {"name": name, "value": [_as_recorded(each) for each in registered[name]]}
        return ours, differing(ours, case)

    return check


def check_classification(case: Json) -> tuple[Json, list[str]]:
    """Return our fine-grained events of an update, and how they differ.

    Recorded events of changes that are not in the facts are not compared.
    """
    recorded = cast("list[str]", case["events"] or [])
    wanted = [each for each in recorded if not each.endswith(IGNORED)]
    if case["kind"] == "Pod":
        old, new = (objects.Pod.read(case[key]) for key in ("old", "new"))
        is_assigned = bool(new.spec.node_name)
        events = pod_change_events(
            compile_pod(old)[1], compile_pod(new)[1], is_assigned=is_assigned
        )
        if not wanted:
            wanted = ["AssignedPodUpdate" if is_assigned else "UnschedulablePodUpdate"]
    else:
        was, now = (compile_node(objects.Node.read(case[key])) for key in ("old", "new"))
        events = node_change_events(was, now)
    ours: Json = {"events": [each.event.label for each in events]}
    return ours, differing(ours, {"events": wanted})


def check_claims_made(case: Json) -> tuple[Json, list[str]]:
    """Return our events of an update of a waiting pod's claims, and how they differ."""
    old, new = (compile_pod(objects.Pod.read(case[key]))[1] for key in ("old", "new"))
    events = pod_change_events(old, new, is_assigned=bool(new.node_name))
    ours: Json = {"events": [each.event.label for each in events]}
    return ours, differing(ours, {"events": case["events"] or []})


def _registered(cluster: ClusterFacts) -> Mapping[str, tuple[RegisteredEvent, ...]]:
    handle = Handle(PodClasses(), cluster)
    profile = Profile(default_config().profiles[0], in_tree_registry(), handle)
    return profile.registered_events()


def _as_recorded(registered: RegisteredEvent) -> Json:
    action = registered.event.action
    actions = [each.label for each in (ActionType.ADD, ActionType.DELETE) if each in action]
    if ActionType.UPDATE in action:
        actions.append(ActionType.UPDATE.label)
    else:
        actions += [each.label for each in _FINE_UPDATES if each in action]
    has_hint = registered.hint is not None
    return {"resource": registered.event.resource.value, "actions": actions, "hasHint": has_hint}


def _hint_fields(registered: RegisteredEvent, case: Json, cluster: ClusterFacts) -> Json:
    """Return the hint of a recorded event, and its error if there is one."""
    if registered.hint is None:
        return {"hint": "Queue"}
    facts = compile_pod(objects.Pod.read(case["pod"]))[1]
    try:
        return {"hint": registered.hint(facts, _change(case), cluster).value}
    except HintError as error:
        return {"hint": "Queue", "error": str(error)}


def _change(case: Json) -> ObjectChange[object]:
    kind, compiled = _KINDS[EventResource(str(case["resource"]))]
    old, new = (
        compiled(kind.read(case[key])) if case.get(key) is not None else None
        for key in ("old", "new")
    )
    shown = mapping(case.get("new") or case.get("old"))
    own = mapping(shown["metadata"]).get("uid") == mapping(mapping(case["pod"])["metadata"])["uid"]
    return ObjectChange(old, new, of_waiting_pod=own and kind is objects.Pod)


def _event_pod(pod: objects.Pod) -> EventPod:
    return EventPod(compile_pod(pod)[1], bool(pod.spec.node_name))


def _of(compiled: Callable[[T], object]) -> Callable[[objects.ApiObject], object]:
    return cast("Callable[[objects.ApiObject], object]", compiled)


_KINDS: Mapping[
    EventResource, tuple[type[objects.ApiObject], Callable[[objects.ApiObject], object]]
] = {
    EventResource.POD: (objects.Pod, _of(_event_pod)),
    EventResource.NODE: (objects.Node, _of(compile_node)),
    EventResource.PERSISTENT_VOLUME: (objects.PersistentVolume, _of(compile_volume)),
    EventResource.PERSISTENT_VOLUME_CLAIM: (objects.PersistentVolumeClaim, _of(compile_claim)),
    EventResource.STORAGE_CLASS: (objects.StorageClass, _of(compile_class)),
    EventResource.CSI_NODE: (objects.CSINode, _of(compile_csi_node)),
    EventResource.CSI_DRIVER: (objects.CSIDriver, _of(compile_csi_driver)),
    EventResource.CSI_STORAGE_CAPACITY: (objects.CSIStorageCapacity, _of(compile_capacity)),
    EventResource.RESOURCE_CLAIM: (objects.ResourceClaim, _of(compile_device_claim)),
    EventResource.RESOURCE_SLICE: (objects.ResourceSlice, _of(compile_slice)),
    EventResource.DEVICE_CLASS: (objects.DeviceClass, _of(compile_device_class)),
    EventResource.VOLUME_ATTACHMENT: (objects.VolumeAttachment, _of(compile_attachment)),
}
"""The manifest class of a resource, and its compilation to facts."""

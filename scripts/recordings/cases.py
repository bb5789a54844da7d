"""Recorded cases: reading them, and what they hold as facts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from roadstead.config.load import load_config
from roadstead.config.model import SchedulerConfig, default_config
from roadstead.devices.gates import DeviceGates, gates_of
from roadstead.devices.state import NO_GATES
from roadstead.facts.cluster import ClusterFacts, compile_cluster
from roadstead.facts.compile import compile_node, compile_pod
from roadstead.facts.compile_devices import compile_allocation, compile_devices
from roadstead.facts.compile_storage import compile_storage
from roadstead.facts.devices import DevicesFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod
from roadstead.facts.storage import StorageFacts
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects.devices import ClaimAllocation
from scripts.recordings.result import Json, listed

T = TypeVar("T", bound=objects.ApiObject)

MAX_FILE_BYTES = 256 * 1024 * 1024

RECORDED_MS = 1_760_000_000_000
"""The time of the recordings; the allocations in them are of 2001 or 2099."""

_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded file: `document` is all of it, the other fields are the cluster in it.

    bound: (node name, pod) of the pods that run. pending: the pods to be decided, in order.
    nominated: pods that wait and are nominated to a node. gates: feature gates of devices.
    """

    path: Path
    document: Json
    nodes: tuple[NodeFacts, ...]
    bound: tuple[tuple[str, Pod], ...]
    pending: tuple[Pod, ...]
    nominated: tuple[Pod, ...]
    cluster: ClusterFacts
    config: SchedulerConfig
    gates: DeviceGates = NO_GATES

    def profiles(self, classes: PodClasses) -> dict[str, Profile]:
        """Build the profiles of the case's configuration for one process."""
        handle = Handle(classes, self.cluster, gates=self.gates)
        handle.storage.devices.now_ms = RECORDED_MS
        registry = in_tree_registry()
        return {
            each.scheduler_name: Profile(each, registry, handle) for each in self.config.profiles
        }


def find_files(paths: Iterable[Path]) -> list[Path]:
    """Return all recorded files under files and folders, sorted. InputError for a bad path."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob("*.json.gz"))
        elif path.is_file():
            found.append(path)
        else:
            raise InputError("no such file or folder", source=str(path))
    return found


def read_document(path: Path) -> Json:
    """Return the document of a recorded file. InputError if it has none."""
    try:
        with gzip.open(path) as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InputError(f"is larger than {MAX_FILE_BYTES} bytes", source=str(path))
        document = json.loads(data)
    except (OSError, ValueError, EOFError, RecursionError) as failure:
        raise InputError(f"is not a recorded case: {failure}", source=str(path)) from failure
    if not isinstance(document, dict):
        raise InputError("is not a recorded case", source=str(path))
    return document


def compile_case(path: Path, document: Json) -> Case:
    """Compile a case of static, profiles, preemption or sequence. InputError if it is invalid."""
    source = path.name
    manifests = mapping(document.get("objects"))
    config = document.get("config")
    if extenders := document.get("extenders"):
        config = {**_HEAD, **mapping(config), "extenders": extenders}
    gates = gates_of((name, bool(on)) for name, on in mapping(document.get("gates")).items())
    devices = devices_of(document, source)
    names = (each.extended_resource for each in devices.classes if gates.extended_resource)
    served = frozenset(name for name in names if name)
    return Case(
        path=path,
        document=document,
        nodes=_listed(_models(objects.Node, manifests, "nodes", source)),
        bound=tuple(_bound(_models(objects.Pod, manifests, "pods", source))),
        pending=tuple(
            compile_pod(each, served) for each in _models(objects.Pod, document, "pending", source)
        ),
        nominated=tuple(map(compile_pod, _models(objects.Pod, document, "nominated", source))),
        cluster=compile_cluster(
            namespaces=_models(objects.Namespace, manifests, "namespaces", source),
            services=_models(objects.Service, manifests, "services", source),
            replication_controllers=_models(
                objects.ReplicationController, manifests, "replicationControllers", source
            ),
            replica_sets=_models(objects.ReplicaSet, manifests, "replicaSets", source),
            stateful_sets=_models(objects.StatefulSet, manifests, "statefulSets", source),
            storage=storage_of(manifests, source),
            budgets=_models(objects.PodDisruptionBudget, manifests, "podDisruptionBudgets", source),
            devices=devices,
        ),
        gates=gates,
        config=default_config()
        if config is None
        else load_config(json.dumps(config), source=source).config,
    )


def devices_of(document: Json, source: str) -> DevicesFacts:
    """Compile the device objects of a recording; claims in flight have their allocation."""
    manifests = mapping(document.get("objects"))
    found = compile_devices(
        slices=_models(objects.ResourceSlice, manifests, "resourceSlices", source),
        classes=_models(objects.DeviceClass, manifests, "deviceClasses", source),
        claims=_models(objects.ResourceClaim, manifests, "resourceClaims", source),
        taint_rules=_models(objects.DeviceTaintRule, manifests, "deviceTaintRules", source),
    )
    in_flight = {
        each["claim"]: compile_allocation(ClaimAllocation.read(each["allocation"]))
        for each in listed(document.get("inFlight") or [])
    }
    claims = (
        replace(each, allocation=in_flight[each.key], is_in_flight=True)
        if each.key in in_flight
        else each
        for each in found.claims
    )
    return replace(found, claims=tuple(claims))


def storage_of(manifests: Mapping[str, object], source: str) -> StorageFacts:
    """Compile the storage objects of a recording."""
    return compile_storage(
        volumes=_models(objects.PersistentVolume, manifests, "persistentVolumes", source),
        claims=_models(objects.PersistentVolumeClaim, manifests, "persistentVolumeClaims", source),
        classes=_models(objects.StorageClass, manifests, "storageClasses", source),
        csi_nodes=_models(objects.CSINode, manifests, "csiNodes", source),
        csi_drivers=_models(objects.CSIDriver, manifests, "csiDrivers", source),
        capacities=_models(objects.CSIStorageCapacity, manifests, "csiStorageCapacities", source),
        attachments=_models(objects.VolumeAttachment, manifests, "volumeAttachments", source),
    )


def compile_node_manifest(manifest: object, source: str) -> NodeFacts:
    return compile_node(_model(objects.Node, manifest, source))


def _listed(nodes: Iterable[objects.Node]) -> tuple[NodeFacts, ...]:
    """Return nodes in the order in which the API server lists them and a cache first adds them."""
    facts = (compile_node(node) for node in nodes)
    return tuple(sorted(facts, key=lambda each: each.name.encode()))


def _bound(pods: Iterable[objects.Pod]) -> Iterator[tuple[str, Pod]]:
    for pod in pods:
        yield pod.spec.node_name, compile_pod(pod)


def _models(kind: type[T], manifests: Mapping[str, object], key: str, source: str) -> list[T]:
    found = manifests.get(key) or []
    assert isinstance(found, list)
    return [_model(kind, each, source) for each in found]


def _model(kind: type[T], manifest: object, source: str) -> T:
    model = objects.validate(kind.__name__, manifest, source=source)
    assert isinstance(model, kind)
    return model


def mapping(value: object) -> Mapping[str, object]:
    """Return a JSON object, or an empty one if the value is none."""
    return value if isinstance(value, dict) else {}

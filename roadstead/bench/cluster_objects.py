"""The initial cluster objects of a benchmark other than nodes and pods.

Upstream creates these objects in the course of a workload. Scheduling is not affected: each
object exists before the first pod that it concerns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from roadstead.bench.device_objects import DEVICE_KINDS, DeviceObjects
from roadstead.bench.objects import fixed_name, validated
from roadstead.bench.templates import Document
from roadstead.facts.cluster import NAME_LABEL, ClusterFacts, compile_cluster
from roadstead.facts.compile_storage import compile_storage, with_controller_defaults
from roadstead.facts.parse_selectors import SelectorError
from roadstead.facts.storage import (
    ClaimFacts,
    CsiNodeFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.manifests.collection import CLUSTER_SCOPED
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import (
    ApiObject,
    CSIDriver,
    CSINode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StorageClass,
)

_KINDS: dict[str, type[ApiObject]] = {
    each.__name__: each
    for each in (
        *(Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PriorityClass),
        *(PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver),
        PodDisruptionBudget,
    )
} | DEVICE_KINDS


@dataclass(slots=True)
class ClusterObjects:
    """Collect cluster objects."""

    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    volumes: list[VolumeFacts] = field(default_factory=list)
    claims: list[ClaimFacts] = field(default_factory=list)
    csi_nodes: list[CsiNodeFacts] = field(default_factory=list)
    devices: DeviceObjects = field(default_factory=DeviceObjects)
    _objects: dict[str, list[ApiObject]] = field(
        default_factory=lambda: {kind: [] for kind in _KINDS}
    )

    @property
    def priorities(self) -> dict[str, PriorityClass]:
        found = self._objects["PriorityClass"]
        return {each.metadata.name: each for each in found if isinstance(each, PriorityClass)}

    def add_namespace(self, name: str, labels: dict[str, str] | None = None) -> None:
        """Add a namespace; an existing one keeps its labels."""
        self.namespaces.setdefault(name, labels or {})

    def add(self, document: Document, source: str, namespace: str, number: int) -> None:
        """Add an object of a kind that scheduling reads. Raises InputError for any other kind.

        number: a part of the object's name if the document has none.
        """
        kind = str(document["kind"])
        if kind not in _KINDS:
            problem = f"is not a kind that a benchmark can create (there are: {', '.join(_KINDS)})"
            raise InputError(problem, source=source, field="kind", value=cut_short(kind))
        meta: dict[str, object] = {"name": fixed_name(document) or f"{kind.lower()}-{number}"}
        if kind not in CLUSTER_SCOPED:
            if not namespace:
                raise InputError(f"is missing for a {kind}", source=source, field="namespace")
            meta["namespace"] = namespace
            # Operations need no manifest of their namespace.
            self.add_namespace(namespace)
        found = validated(_KINDS[kind], document, source, **meta)
        if isinstance(found, Namespace):
            self.namespaces[found.metadata.name] = dict(found.metadata.labels)
        elif kind in DEVICE_KINDS:
            self.devices.add(found)
        else:
            self._objects[kind].append(found)

    def facts(self) -> ClusterFacts:
        """Return the objects as plugins read them. Raises InputError for an invalid selector."""
        objects = self._objects
        try:
            found = compile_cluster(
                services=objects["Service"],  # type: ignore[arg-type]
                replication_controllers=objects["ReplicationController"],  # type: ignore[arg-type]
                replica_sets=objects["ReplicaSet"],  # type: ignore[arg-type]
                stateful_sets=objects["StatefulSet"],  # type: ignore[arg-type]
                budgets=objects["PodDisruptionBudget"],  # type: ignore[arg-type]
            )
        except SelectorError as error:
            raise InputError(str(error), field="spec.selector") from error
        namespaces = tuple(
            (name, tuple(sorted({**labels, NAME_LABEL: name}.items())))
            for name, labels in self.namespaces.items()
        )
        devices = self.devices.facts()
        return replace(found, namespaces=namespaces, storage=self._storage(), devices=devices)

    def _storage(self) -> StorageFacts:
        objects = self._objects
        found = compile_storage(
            objects["PersistentVolume"],  # type: ignore[arg-type]
            objects["PersistentVolumeClaim"],  # type: ignore[arg-type]
            objects["StorageClass"],  # type: ignore[arg-type]
            objects["CSINode"],  # type: ignore[arg-type]
            objects["CSIDriver"],  # type: ignore[arg-type]
        )
        found = with_controller_defaults(found)
        return replace(
            found,
            volumes=(*found.volumes, *self.volumes),
            claims=(*found.claims, *self.claims),
            csi_nodes=(*found.csi_nodes, *self.csi_nodes),
        )

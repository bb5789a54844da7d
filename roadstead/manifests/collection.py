"""Reading of manifests: each object is validated, gets its defaults, and is listed by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar, cast

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.garbage_collection import gc_paused
from roadstead.manifests.defaults import default_node, default_pod
from roadstead.manifests.device_versions import as_v1
from roadstead.manifests.files import read_texts
from roadstead.manifests.names import generated_name
from roadstead.manifests.object_checks import check_node, check_object
from roadstead.manifests.unknown_fields import unknown_fields
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import (
    API_GROUPS,
    API_VERSIONS,
    KINDS,
    ApiObject,
    CronJob,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DaemonSet,
    Deployment,
    DeviceClass,
    DeviceTaintRule,
    Job,
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    RuntimeClass,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
    describe,
    validate,
)

ObjectT = TypeVar("ObjectT", bound=ApiObject)
"""The objects of one kind."""

ObjectKey = tuple[str, str, str]
"""(kind, namespace, name); the namespace is "" for cluster-scoped objects."""

TERMINAL_PHASES = ("Succeeded", "Failed")
TEMPLATE_MARKER = b"{{"
"""Start of an expression of Helm's templates. A text that has it and is no YAML is a template."""

_LIST_DEPTH_MAX = 10
"""Lists within lists: kubectl writes none; the bound is for the recursion that reads them."""

_POD_SPEC_DEPTH_MAX = 8
"""Depth at which containers are searched: 5 in a CronJob; custom resources may nest deeper."""

_KEYS_SHOWN = 3
"""Keys of a document in an error: enough to find it, and the error stays one line."""

CLUSTER_SCOPED = frozenset(
    {"Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver"}
    | {"VolumeAttachment", "PriorityClass", "RuntimeClass"}
    | {"ResourceSlice", "DeviceClass", "DeviceTaintRule"}
)


_BUILT_IN_GROUPS = frozenset({*API_GROUPS.values(), "extensions"})
"""Groups of Kubernetes' own kinds; other groups may have kinds of the same names."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects by kind, in the order in which they were read.

    pods: those that have not terminated. finished_pods: the terminated ones, which are neither
    scheduled nor counted on nodes. ignored: kind → number of objects that scheduling does not use.
    workload_documents: kind → names and sources of objects of other kinds (custom resources) that
    contain a pod spec. unknown: a message for each field that Kubernetes does not have; the field
    is ignored. sources: the file from which each object was read, for errors.
    """

    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    persistent_volumes: tuple[PersistentVolume, ...] = ()
    persistent_volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    jobs: tuple[Job, ...] = ()
    cron_jobs: tuple[CronJob, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    device_taint_rules: tuple[DeviceTaintRule, ...] = ()
    finished_pods: tuple[Pod, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    workload_documents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    sources: Mapping[ObjectKey, str] = field(default_factory=dict)


def read_manifests(
    paths: Sequence[str],
    *,
    stdin: BinaryIO,
    priority_classes: Sequence[PriorityClass] = (),
    is_strict: bool = False,
    on_text: Callable[[str, bytes], None] | None = None,
) -> Manifests:
    """Read all objects in files, folders (searched for *.yaml, *.yml, *.json), globs and "-".

    priority_classes: of manifests that were read before; pods may name them, too. is_strict: refuse
    a field that Kubernetes does not have, as `kubectl --validate=strict` does. on_text: called with
    each source and its text.

    Raises:
        InputError: a path cannot be read, a text or an object is wrong, or an object occurs twice.
    """
    collector = _ManifestCollector(is_strict=is_strict)
    # The objects stay until the run ends. So garbage collection is paused, and these objects are
    # "frozen" (gc.freeze): later collections do not search them either.
    with gc_paused(freezes=True):
        for source, text in read_texts(paths, stdin=stdin):
            if on_text is not None:
                on_text(source, text)
            for document in _documents(text, source):
                collector.add_document(document, source)
        return collector.manifests(priority_classes)


def _documents(text: bytes, source: str) -> Iterator[object]:
    try:
        yield from read_documents(text, source=source)
    except InputError as error:
        if TEMPLATE_MARKER not in text:
            raise
        message = "holds template syntax ({{ … }}): render it first, as with helm template"
        raise InputError(f"{message} ({error.rule})", source=source, field=error.field) from error


class _ManifestCollector:
    """The objects read so far, by kind, and the file of each.

    Documents are added one by one; `manifests` then returns all objects with their defaults.
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._unknown: list[str] = []
        self._by_kind: dict[str, list[ApiObject]] = {kind: [] for kind in KINDS}
        # The sources of the pods in `_by_kind`, in their order.
        self._pod_sources: list[str] = []
        self._sources: dict[ObjectKey, str] = {}
        self._ignored: Counter[str] = Counter()
        self._workload_documents: dict[str, list[str]] = {}
        # By kind and `generateName`: how many names were generated.
        self._generated: Counter[str] = Counter()

    def add_document(self, document: object, source: str, depth: int = 0) -> None:
        """Add an object, or all objects of a list. depth: of lists around the document."""
        if depth > _LIST_DEPTH_MAX:
            raise InputError(f"holds lists in lists deeper than {_LIST_DEPTH_MAX}", source=source)
        if isinstance(document, list):
            for each in document:
                self.add_document(each, source, depth + 1)
            return
        if not isinstance(document, dict):
            message = "is not a Kubernetes object (want a map with apiVersion and kind)"
            raise InputError(message, source=source, value=cut_short(document))
        kind = document.get("kind")
        if not isinstance(kind, str) or not kind:
            keys = f" (the document has {_first_keys(document)})" if document else ""
            raise InputError(f"is missing{keys}", source=source, field="kind")
        if kind.endswith("List") and "items" in document:
            for item in _items(kind.removesuffix("List"), document, source):
                self.add_document(item, source, depth + 1)
        else:
            self._add(kind, document, source)

    def _add(self, kind: str, document: dict[str, object], source: str) -> None:
        # A missing apiVersion is accepted: each kind that is read has one version (API_VERSIONS).
        version = document.get("apiVersion")
        group = version.rpartition("/")[0] if isinstance(version, str) else None
        if kind not in KINDS or (group is not None and group not in _BUILT_IN_GROUPS):
            full_kind = f"{kind}.{group}" if group else kind
            if _has_pod_spec(document):
                self._workload_documents.setdefault(full_kind, []).append(
                    _key_and_source(document, source)
                )
            else:
                self._ignored[full_kind] += 1
            return
        # Converts objects of the beta versions of resource.k8s.io; leaves others as they are.
        document = as_v1(kind, document)
        version = document.get("apiVersion")
        if isinstance(version, str) and version != API_VERSIONS[kind]:
            raise InputError(
                f"is not served for this kind by Kubernetes 1.34 (want {API_VERSIONS[kind]})",
                source=source,
                obj=describe(kind, document),
                field="apiVersion",
                value=cut_short(version),
            )
        validated = validate(kind, self._with_generated_name(kind, document), source=source)
        for error in unknown_fields(kind, document):
            located = error.at(source=source, obj=describe(kind, document))
            if self._is_strict:
                raise located
            self._unknown.append(str(located))
        if kind == "Node":
            check_node(cast("Node", validated), source=source)
        elif kind != "Pod":
            # Pods are checked by `default_pod`, once all priority classes are read.
            check_object(kind, validated, source=source)
        namespace = validated.metadata.namespace or DEFAULT_NAMESPACE
        key = (kind, "" if kind in CLUSTER_SCOPED else namespace, validated.metadata.name)
        if key in self._sources:
            raise _duplicate(key, document, source, self._sources[key])
        self._sources[key] = source
        self._by_kind[kind].append(validated)
        if kind == "Pod":
            self._pod_sources.append(source)

    def _with_generated_name(self, kind: str, document: dict[str, object]) -> dict[str, object]:
        """Return the document; if it has only a `generateName`, with a generated name."""
        metadata = document.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name"):
            return document
        generate_name = metadata.get("generateName")
        if not isinstance(generate_name, str) or not generate_name:
            return document
        self._generated[f"{kind}/{generate_name}"] += 1
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
        kind_and_namespace = kind, "" if kind in CLUSTER_SCOPED else namespace
        index, collisions = self._generated[f"{kind}/{generate_name}"], 0
        while (
            *kind_and_namespace,
            name := generated_name(generate_name, index, collisions),
        ) in self._sources:
            collisions += 1
        return {**document, "metadata": {**metadata, "name": name}}

    def manifests(self, earlier_classes: Sequence[PriorityClass]) -> Manifests:
        """Return all objects with their defaults. earlier_classes: those read before."""
        priority_classes = {
            each.metadata.name: each for each in (*earlier_classes, *self._of(PriorityClass))
        }
        # Priorities are resolved now and not while documents are read: a PriorityClass may follow
        # the pods that name it.
        pods = [
            default_pod(pod, priority_classes, source=source)
            for pod, source in zip(self._of(Pod), self._pod_sources, strict=True)
        ]
        unfinished = tuple(pod for pod in pods if pod.status.phase not in TERMINAL_PHASES)
        finished = tuple(pod for pod in pods if pod.status.phase in TERMINAL_PHASES)
        return Manifests(
            nodes=tuple(map(default_node, self._of(Node))),
            pods=unfinished,
            finished_pods=finished,
            ignored=dict(sorted(self._ignored.items())),
            workload_documents=dict(sorted(self._workload_documents.items())),
            unknown=tuple(self._unknown),
            sources=self._sources,
            namespaces=self._of(Namespace),
            persistent_volumes=self._of(PersistentVolume),
            persistent_volume_claims=self._of(PersistentVolumeClaim),
            storage_classes=self._of(StorageClass),
            csi_nodes=self._of(CSINode),
            csi_drivers=self._of(CSIDriver),
            csi_storage_capacities=self._of(CSIStorageCapacity),
            volume_attachments=self._of(VolumeAttachment),
            pod_disruption_budgets=self._of(PodDisruptionBudget),
            pod_groups=self._of(PodGroup),
            services=self._of(Service),
            replication_controllers=self._of(ReplicationController),
            replica_sets=self._of(ReplicaSet),
            stateful_sets=self._of(StatefulSet),
            deployments=self._of(Deployment),
            daemon_sets=self._of(DaemonSet),
            jobs=self._of(Job),
            cron_jobs=self._of(CronJob),
            priority_classes=self._of(PriorityClass),
            limit_ranges=self._of(LimitRange),
            resource_quotas=self._of(ResourceQuota),
            runtime_classes=self._of(RuntimeClass),
            resource_slices=self._of(ResourceSlice),
            device_classes=self._of(DeviceClass),
            resource_claims=self._of(ResourceClaim),
            resource_claim_templates=self._of(ResourceClaimTemplate),
            device_taint_rules=self._of(DeviceTaintRule),
        )

    def _of(self, model: type[ObjectT]) -> tuple[ObjectT, ...]:
        return cast("tuple[ObjectT, ...]", tuple(self._by_kind[model.__name__]))


def _items(item_kind: str, document: dict[str, object], source: str) -> Iterator[dict[str, object]]:
    """Yield the items of a list. item_kind: "" for kind List, "Pod" for PodList, and so on.

    Items of a typed list may have no kind and no apiVersion: those of the list are added.
    """
    items = document["items"]
    if items is None:
        return
    if not isinstance(items, list):
        raise InputError("must be a list", source=source, field="items", value=cut_short(items))
    version = document.get("apiVersion")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            field_name = f"items[{index}]"
            message = "must be a map"
            raise InputError(message, source=source, field=field_name, value=cut_short(item))
        if item_kind and "kind" not in item:
            item = {"apiVersion": version, **item, "kind": item_kind}
        yield item
        # The caller has read the item: free it now, not with the whole list.
        items[index] = None


def _key_and_source(document: dict[str, object], source: str) -> str:
    """Return `NAMESPACE/NAME (SOURCE)` of an object of any kind, for a message."""
    metadata = document.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    name = fields.get("name") or fields.get("generateName") or "without a name"
    namespace = fields.get("namespace") or DEFAULT_NAMESPACE
    return f"{_unquoted(namespace)}/{_unquoted(name)} ({source})"


def _unquoted(value: object) -> str:
    """Return a value as text, cut short, without the quotes that `cut_short` puts around a text."""
    return cut_short(value).strip('"')


def _first_keys(document: dict[str, object]) -> str:
    """Return the first keys of a document, by which an error identifies it."""
    shown = ", ".join(cut_short(key) for key in list(document)[:_KEYS_SHOWN])
    return f"{shown}, …" if len(document) > _KEYS_SHOWN else shown


def _has_pod_spec(document: object, depth: int = 0) -> bool:
    """Whether an object contains a list of containers with images, at any depth."""
    if depth > _POD_SPEC_DEPTH_MAX or not isinstance(document, dict):
        return False
    containers = document.get("containers")
    if isinstance(containers, list) and any(
        isinstance(each, dict) and "image" in each for each in containers
    ):
        return True
    return any(_has_pod_spec(each, depth + 1) for each in document.values())


def _duplicate(key: ObjectKey, document: dict[str, object], source: str, other: str) -> InputError:
    """Return the error for an object that was read before, from the source `other`."""
    kind, namespace, _ = key
    message = f"is already in {'this file' if other == source else other}"
    in_namespace = f" in namespace {cut_short(namespace)}" if namespace else ""
    return InputError(message, source=source, obj=describe(kind, document) + in_namespace)

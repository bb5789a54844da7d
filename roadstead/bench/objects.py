"""Objects of a benchmark, made from templates: nodes, pods, and claims with their volumes.

Upstream: test/utils/{runners,create_resources}.go, scheduler_perf/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from roadstead.bench.templates import Document, Template
from roadstead.facts.compile import compile_node, compile_pod
from roadstead.facts.compile_storage import BIND_COMPLETED, compile_claim, compile_volume
from roadstead.facts.node import HOSTNAME_LABEL, NAME_PLACEHOLDER, NodeFacts
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import ClaimFacts, ClaimReference, VolumeFacts
from roadstead.manifests.defaults import default_node, default_pod
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import (
    ApiObject,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    validate,
)
from roadstead.protocol.quantity import QuantityError

T = TypeVar("T", bound=ApiObject)
"""The type of the object to validate."""

DEFAULT_NODE = Template(
    "the default node",
    "{kind: Node, metadata: {generateName: scheduler-perf-}, "
    'status: {capacity: {pods: "110", cpu: "4", memory: 32Gi}}}',
)
DEFAULT_POD = Template(
    "the default pod",
    "{kind: Pod, metadata: {generateName: pod-}, spec: {containers: [{name: pause, "
    "image: registry.k8s.io/pause, resources: {requests: {cpu: 100m, memory: 500Mi}}}]}}",
)
CLAIM_VOLUME = "vol"
"""Name of the volume of a pod that refers to its claim, as upstream."""


def metadata_of(document: Document) -> Document:
    """The metadata of an object; {} if it is missing or not a map."""
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def fixed_name(document: Document) -> str:
    """The name that an object has in its template; "" if its name is generated."""
    found = metadata_of(document).get("name")
    return found if isinstance(found, str) else ""


def name_prefix(document: Document, default: str) -> str:
    """The prefix of generated names."""
    found = metadata_of(document).get("generateName")
    return found if isinstance(found, str) and found else default


def validated(kind: type[T], document: Document, source: str, **meta: object) -> T:
    """Validate an object whose metadata is overridden by `meta`. Raises InputError."""
    if document.get("kind") != kind.__name__:
        problem, value = f"must be {kind.__name__}", cut_short(document.get("kind"))
        raise InputError(problem, source=source, field="kind", value=value)
    named = {**document, "metadata": {**metadata_of(document), **meta}}
    found = validate(kind.__name__, named, source=source)
    assert isinstance(found, kind)
    return found


def node_class(
    document: Document, source: str, labels: Mapping[str, str], allocatable: Mapping[str, object]
) -> NodeFacts:
    """The common facts of the nodes of a template; each node's hostname label is its own name.

    labels, allocatable: added to those of the template.
    """
    if allocatable:
        document = _with_allocatable(document, allocatable)
    node = default_node(validated(Node, document, source, name="node"))
    facts = compile_node(node)
    own = dict(facts.labels) | dict(labels) | {HOSTNAME_LABEL: NAME_PLACEHOLDER}
    return replace(facts, name="", labels=tuple(sorted(own.items())))


def _with_allocatable(document: Document, more: Mapping[str, object]) -> Document:
    found = document.get("status")
    status = found if isinstance(found, dict) else {}
    own = status.get("allocatable") or status.get("capacity")
    allocatable = {**(own if isinstance(own, dict) else {}), **more}
    return {**document, "status": {**status, "allocatable": allocatable}}


def pod_class(
    document: Document, source: str, namespace: str, priorities: Mapping[str, PriorityClass]
) -> PodFacts:
    """The common facts of the pods of a template. priorities: the priority classes, by name.

    Raises InputError for invalid pods.
    """
    document = _go_keys(document)
    pod = validated(Pod, document, source, name=fixed_name(document) or "pod", namespace=namespace)
    try:
        return compile_pod(default_pod(pod, priorities, source=source))[1]
    except QuantityError as error:
        raise InputError(str(error), source=source, field="spec.containers") from error


def _go_keys(document: Document) -> Document:
    """Lower the first letter of keys: Go ignores case, and upstream writes NodeTaintsPolicy."""
    spec = document.get("spec")
    found = spec.get("topologySpreadConstraints") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(found, list):
        return document
    constraints = [
        {key[:1].lower() + key[1:]: value for key, value in each.items()}
        if isinstance(each, dict)
        else each
        for each in found
    ]
    return {**document, "spec": {**spec, "topologySpreadConstraints": constraints}}


def bound_volume(
    document: Document, source: str, number: int, namespace: str, claim: str
) -> VolumeFacts:
    """Volume `vol-number` of a template, bound to a claim."""
    name = f"vol-{number}"
    spec = document.get("spec")
    if isinstance(spec, dict):
        own = {
            field: {**spec[field], key: name}
            for field, key in (("csi", "volumeHandle"), ("awsElasticBlockStore", "volumeID"))
            if isinstance(spec.get(field), dict)
        }
        document = {**document, "spec": {**spec, **own}}
    volume = compile_volume(validated(PersistentVolume, document, source, name=name))
    return replace(volume, phase="Bound", claim=ClaimReference(namespace, claim))


def bound_claim(
    document: Document, source: str, name: str, namespace: str, volume: str
) -> ClaimFacts:
    """A claim of a template, bound to a volume."""
    notes = metadata_of(document).get("annotations")
    annotations = {**(notes if isinstance(notes, dict) else {}), BIND_COMPLETED: "true"}
    meta = {"name": name, "namespace": namespace, "annotations": annotations}
    claim = validated(PersistentVolumeClaim, document, source, **meta)
    return replace(compile_claim(claim), volume_name=volume, has_bind_completed=True)


def with_claim(facts: PodFacts, claim: str) -> PodFacts:
    """The pod with a volume of this claim."""
    volume = Volume(CLAIM_VOLUME, "persistentVolumeClaim", (("claimName", claim),))
    return replace(facts, volumes=(*facts.volumes, volume))

"""A pod from a template, and how pods and workloads know each other."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.protocol.objects import ApiObject, ObjectMeta, OwnerReference, Pod, PodTemplate

Workload = ApiObject
OwnerKey = tuple[str, str, str]
_NO_LABELS: Mapping[str, str] = {}
_API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


def object_key(each: ApiObject) -> tuple[str, str]:
    """(namespace, name)"""
    return each.metadata.namespace or DEFAULT_NAMESPACE, each.metadata.name


def workload_key(workload: Workload) -> OwnerKey:
    """(kind, namespace, name)"""
    return (type(workload).__name__, *object_key(workload))


def controller_key(each: ApiObject) -> OwnerKey:
    """The key of the workload that controls an object; empty parts where none does."""
    owner = each.metadata.controller
    if owner is None:
        return ("", "", "")
    return (owner.kind, each.metadata.namespace or DEFAULT_NAMESPACE, owner.name)


def controlled_by(owner: Workload, uid: str) -> OwnerReference:
    """The reference of an object to the workload that controls it."""
    kind = type(owner).__name__
    return OwnerReference(
        api_version=_API_VERSIONS.get(kind, "apps/v1"),
        kind=kind,
        name=owner.metadata.name,
        uid=uid,
        controller=True,
    )


def pod_of(
    owner: Workload, template: PodTemplate, name: str, labels: Mapping[str, str] = _NO_LABELS
) -> Pod:
    """A pod of a workload: the template's labels and spec, and the workload as its controller."""
    reference = controlled_by(owner, owner.metadata.uid or "/".join(workload_key(owner)))
    meta = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace or DEFAULT_NAMESPACE,
        labels={**template.metadata.labels, **labels},
        annotations=template.metadata.annotations,
        owner_references=(reference,),
    )
    return Pod(metadata=meta, spec=template.spec)

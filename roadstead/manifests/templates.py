"""Pods from templates, and the keys that relate pods and workloads."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.protocol.objects import ApiObject, ObjectMeta, OwnerReference, Pod, PodTemplate

Workload = ApiObject
"""An object whose controller creates pods."""

OwnerKey = tuple[str, str, str]
"""(kind, namespace, name) of a workload."""
_NO_LABELS: Mapping[str, str] = {}
# Of workloads that are not in apps/v1.
_API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


def namespaced_name(each: ApiObject) -> tuple[str, str]:
    """Return (namespace, name)."""
    return each.metadata.namespace or DEFAULT_NAMESPACE, each.metadata.name


def kind_and_name(workload: Workload) -> OwnerKey:
    """Return (kind, namespace, name)."""
    return (type(workload).__name__, *namespaced_name(workload))


def controller_key(each: ApiObject) -> OwnerKey:
    """Return the key of the workload that controls an object; ("", "", "") if none does."""
    owner = each.metadata.controller
    if owner is None:
        return ("", "", "")
    return (owner.kind, each.metadata.namespace or DEFAULT_NAMESPACE, owner.name)


def controlled_by(owner: Workload, uid: str) -> OwnerReference:
    """Return the owner reference of an object that the workload controls."""
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
    """Build a pod of a workload from the template's labels and spec; the workload controls it."""
    reference = controlled_by(owner, owner.metadata.uid or "/".join(kind_and_name(owner)))
    meta = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace or DEFAULT_NAMESPACE,
        labels={**template.metadata.labels, **labels},
        annotations=template.metadata.annotations,
        owner_references=(reference,),
    )
    return Pod(metadata=meta, spec=template.spec)

"""Extended resources of a pod that device classes serve on a node (DRAExtendedResource).

Resources that the node's device plugins serve need no claim; for the others `own_claims.py` makes
one, the pod's *own claim*.

Upstream: filterExtendedResources and createDeviceRequests in
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go of 1.34.1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roadstead.facts.devices import DeviceRequest
from roadstead.protocol.names import is_extended_resource

if TYPE_CHECKING:
    from roadstead.facts.devices import DeviceClassFacts
    from roadstead.facts.pod import ExtendedRequest

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class: its implicit resource."""


@dataclass(frozen=True, slots=True)
class ExtendedNeed:
    """Needs of a pod on a node. requests: of its own claim there; None if it needs no claim.

    missing: a resource that neither a class nor the node serves, so that the pod does not fit; or
    "".
    """

    requests: tuple[DeviceRequest, ...] | None = None
    missing: str = ""


def classes_by_resource(classes: Iterable[DeviceClassFacts]) -> dict[str, str]:
    """Return the class that serves each extended resource; of several classes, the last."""
    mapping: dict[str, str] = {}
    for each in classes:
        if each.extended_resource:
            mapping[each.extended_resource] = each.name
        mapping[CLASS_PREFIX + each.name] = each.name
    return mapping


def extended_need(
    resources: Mapping[str, int],
    container_requests: Iterable[ExtendedRequest],
    mapping: Mapping[str, str],
    allocatable: Container[str],
    *,
    has_claims: bool,
) -> ExtendedNeed:
    """Return which of a pod's extended resources need a claim on a node.

    resources: the pod's requests. Names in the domain of Kubernetes, such as those of implicit
    resources, are not extended resources for upstream's plugin and are ignored.
    container_requests: the requests of its containers, sorted by resource.
    mapping: `classes_by_resource`.
    allocatable: resources in the node's allocatable, which its device plugins serve.
    has_claims: the pod's spec names claims.
    """
    wanted = [
        name for name, amount in sorted(resources.items()) if amount and is_extended_resource(name)
    ]
    for name in wanted:
        if name not in mapping and name not in allocatable:
            return ExtendedNeed(missing=name)
    served = {name for name in wanted if name in mapping}
    if not has_claims and all(name in allocatable for name in served):
        return ExtendedNeed()
    # As upstream, once a claim is needed it also requests what device plugins serve.
    requests = (
        DeviceRequest(name=each.name, device_class=mapping[each.resource], count=each.count)
        for each in container_requests
        if each.resource in served
    )
    return ExtendedNeed(tuple(requests))


def is_served_by_class(resources: Mapping[str, int], mapping: Mapping[str, str]) -> bool:
    """Whether a pod requests an extended resource that a class serves."""
    return any(
        amount and name in mapping and is_extended_resource(name)
        for name, amount in resources.items()
    )

"""The claim of a pod for extended resources that device classes serve (DRAExtendedResource).

Upstream: filterExtendedResources and createDeviceRequests in
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go of 1.34.1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roadstead.facts.devices import DeviceRequest
from roadstead.protocol.names import is_extended_resource

if TYPE_CHECKING:
    from roadstead.facts.devices import DeviceClassFacts

CLAIM_NAME: Final = "<extended-resources>"
"""Name of a pod's own claim before it is written."""

CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

ContainerRequests = Sequence[Mapping[str, int | None]]
"""Requests of init containers, then containers: whole units by resource; None if fractional."""


@dataclass(frozen=True, slots=True)
class ExtendedNeed:
    """What a node has to serve. requests: of the pod's own claim on this node; None: no claim.

    missing: a resource that neither a class nor the node serves, or "": the pod does not fit.
    """

    requests: tuple[DeviceRequest, ...] | None = None
    missing: str = ""


def classes_by_resource(classes: Iterable[DeviceClassFacts]) -> dict[str, str]:
    """Return the class that serves each extended resource; of several the last."""
    mapping: dict[str, str] = {}
    for each in classes:
        if each.extended_resource:
            mapping[each.extended_resource] = each.name
        mapping[CLASS_PREFIX + each.name] = each.name
    return mapping


def extended_need(
    resources: Mapping[str, int],
    containers: ContainerRequests,
    mapping: Mapping[str, str],
    allocatable: Container[str],
    *,
    has_claims: bool,
) -> ExtendedNeed:
    """Return what a node has to serve of a pod's extended resources.

    resources: the pod's requests; names in the domain of Kubernetes, and so a class's implicit
    resource, are not extended resources for upstream's plugin and are ignored.
    mapping: `classes_by_resource`.
    allocatable: resources in the node's allocatable, which its device plugins serve.
    has_claims: the pod has claims of its own.
    """
    wanted = [
        name for name, amount in sorted(resources.items()) if amount and is_extended_resource(name)
    ]
    for name in wanted:
        if name not in mapping and name not in allocatable:
            return ExtendedNeed(missing=name)
    served = [name for name in wanted if name in mapping]
    if not has_claims and all(name in allocatable for name in served):
        return ExtendedNeed()
    # As upstream, once a claim is needed it also asks for what device plugins serve.
    requests = [
        DeviceRequest(
            name=f"container-{index}-request-{sorted(container).index(name)}",
            device_class=mapping[name],
            count=amount,
        )
        for name in served
        for index, container in enumerate(containers)
        if (amount := container.get(name))
    ]
    return ExtendedNeed(tuple(requests))


def is_served_by_class(resources: Mapping[str, int], mapping: Mapping[str, str]) -> bool:
    """Whether a pod requests an extended resource that a class serves."""
    return any(
        amount and name in mapping and is_extended_resource(name)
        for name, amount in resources.items()
    )

"""Checks of a pod's claims in PreFilter of DynamicResources, which depend on no node.

Upstream: PreFilter and validateDeviceClass in dynamicresources.go of 1.34.
"""

from __future__ import annotations

from roadstead.devices.state import DeviceState
from roadstead.facts.devices import DeviceClaimFacts, DeviceRequest
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import selector_error
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.status import SUCCESS, Status, error, unresolvable


def check_supported(devices: DeviceState, pod: PodFacts, plugin: str) -> None:
    """Raise UnsupportedError if the pod needs a claim and its facts lack its containers' requests.

    The claim for extended resources has a request for each container. Facts that were not compiled
    from a manifest, but from a recorded workload or a generator, have only the pod's total
    requests.
    """
    if not devices.gates.extended_resource or pod.extended_requests:
        return
    # `DeviceState.served`: the extended resources that a DeviceClass names.
    served = (name for name, amount in pod.requests if amount and name in devices.served)
    name = next(filter(is_extended_resource, served), "")
    if name:
        raise UnsupportedError(plugin, "", f"spec.containers: {name} with DRAExtendedResource")


def usable(devices: DeviceState, claim: DeviceClaimFacts) -> Status:
    """Return Success if a claim has an allocation that parses, or may be allocated."""
    if claim.is_in_flight:
        text = f"resource claim {claim.key} is in the process of being allocated"
        return unresolvable(text)
    if claim.allocation is not None:
        problem = selector_error(claim.allocation.node_terms or ())
        return error(problem) if problem else SUCCESS
    statuses = (_request_status(devices, claim, each) for each in claim.spec.requests)
    return next((each for each in statuses if each is not None), SUCCESS)


def _request_status(
    devices: DeviceState, claim: DeviceClaimFacts, request: DeviceRequest
) -> Status | None:
    """Return why a request cannot be decided; None if its classes exist."""
    where = f"resource claim {claim.key}, request {request.name}:"
    if request.alternatives and not devices.gates.prioritized_list:
        return unresolvable(f"{where} DRAPrioritizedList feature gate is disabled")
    if not (request.alternatives or request.device_class):
        return unresolvable(f"{where} unknown request type")
    alternatives = [(f"{request.name}/{each.name}", each) for each in request.alternatives]
    for name, exact in alternatives or [(request.name, request)]:
        if exact.device_class not in devices.classes:
            text = f"request {name}: device class {exact.device_class} does not exist"
            return unresolvable(text)
    return None

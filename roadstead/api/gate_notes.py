"""Notes on devices and claims of which parts are not used, because a feature gate is off.

An API server drops such fields while the gate is off, so a manifest that has them is of a cluster
in which it is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from roadstead.devices.gates import DeviceGates, gates_on
from roadstead.facts.devices import DeviceFacts, DeviceRequest, DevicesFacts, ExactRequest

_Count = Callable[[DevicesFacts], int]
"""Returns how many devices or claims of a cluster need a gate."""


def gate_notes(devices: DevicesFacts, gates: DeviceGates) -> Iterator[str]:
    """Yield a note for each gate that is off and that devices or claims of a cluster need."""
    on = gates_on(gates)
    for gate, uses in _NEEDS.items():
        if gate in on:
            continue
        for what, effect, count in uses:
            if needing := count(devices):
                yield f"featureGates: {what}: {needing:,}. Without {gate}: true, {effect}."


def _devices_that(matches: Callable[[DeviceFacts], bool]) -> _Count:
    return lambda facts: sum(matches(each) for one in facts.slices for each in one.devices)


def _claims_that(matches: Callable[[DeviceRequest], bool]) -> _Count:
    def count(facts: DevicesFacts) -> int:
        waiting = (each for each in facts.claims if each.allocation is None)
        return sum(any(map(matches, each.spec.requests)) for each in waiting)

    return count


def _exact_requests(request: DeviceRequest) -> Iterable[ExactRequest]:
    """Return a request, and its alternatives (firstAvailable)."""
    return (request, *request.alternatives)


def _requests_capacity(request: DeviceRequest) -> bool:
    return any(each.capacity is not None for each in _exact_requests(request))


_NOT_SCHEDULED = "their pods are not scheduled"
_NOT_USED = "they are not used"

_NEEDS: dict[str, tuple[tuple[str, str, _Count], ...]] = {
    "DRAPrioritizedList": (
        (
            "claims with firstAvailable",
            _NOT_SCHEDULED,
            _claims_that(lambda e: bool(e.alternatives)),
        ),
    ),
    "DRAAdminAccess": (
        ("claims with adminAccess", _NOT_SCHEDULED, _claims_that(lambda e: e.has_admin_access)),
    ),
    "DRAPartitionableDevices": (
        ("devices that consume counters", _NOT_USED, _devices_that(lambda e: bool(e.consumes))),
        (
            "slices with perDeviceNodeSelection",
            _NOT_USED,
            lambda facts: sum(each.placed_per_device is not None for each in facts.slices),
        ),
    ),
    "DRADeviceTaints": (
        (
            "devices with taints",
            "they are used as if they had none",
            _devices_that(lambda each: bool(each.taints)),
        ),
        ("DeviceTaintRules", "they have no effect", lambda facts: len(facts.taint_rules)),
    ),
    "DRAConsumableCapacity": (
        (
            "claims of devices that ask for a part of a capacity",
            _NOT_SCHEDULED,
            _claims_that(_requests_capacity),
        ),
        (
            "devices that several claims may share",
            "one claim has each",
            _devices_that(lambda each: each.allows_several),
        ),
    ),
    "DRAExtendedResource": (
        (
            "classes with extendedResourceName",
            "they serve no extended resources",
            lambda facts: sum(bool(each.extended_resource) for each in facts.classes),
        ),
    ),
    "DRADeviceBindingConditions": (
        (
            "devices with bindingConditions",
            _NOT_USED,
            _devices_that(lambda each: bool(each.binding_conditions)),
        ),
    ),
}
"""By gate: what needs it, what happens without it, and how many of a cluster need it."""

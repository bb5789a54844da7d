"""Feature gates that the allocator reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceGates:
    """Feature gates of devices with the defaults of kube-scheduler 1.34.

    DRAResourceClaimDeviceStatus is not among them: it is on, and selects the experimental variant
    of the allocator, which this package follows.

    prioritized_list: DRAPrioritizedList. admin_access: DRAAdminAccess.
    partitionable: DRAPartitionableDevices. taints: DRADeviceTaints.
    consumable_capacity: DRAConsumableCapacity. extended_resource: DRAExtendedResource.
    binding_conditions: DRADeviceBindingConditions.
    filter_timeout: DRASchedulerFilterTimeout; without it the search has no limit.
    """

    prioritized_list: bool = True
    admin_access: bool = True
    partitionable: bool = False
    taints: bool = False
    consumable_capacity: bool = False
    extended_resource: bool = False
    binding_conditions: bool = False
    filter_timeout: bool = True


_FIELDS = {
    "DRAPrioritizedList": "prioritized_list",
    "DRAAdminAccess": "admin_access",
    "DRAPartitionableDevices": "partitionable",
    "DRADeviceTaints": "taints",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRAExtendedResource": "extended_resource",
    "DRADeviceBindingConditions": "binding_conditions",
    "DRASchedulerFilterTimeout": "filter_timeout",
}

GATE_NAMES = tuple(_FIELDS)
"""kube-scheduler's names of the gates."""


def gates_of(named: Iterable[tuple[str, bool]]) -> DeviceGates:
    """Return gates by kube-scheduler's names; those that are absent have its defaults."""
    return DeviceGates(**{_FIELDS[name]: is_on for name, is_on in named if name in _FIELDS})


def gates_on(gates: DeviceGates) -> tuple[str, ...]:
    """Return kube-scheduler's names of the gates that are on."""
    return tuple(name for name, field in _FIELDS.items() if getattr(gates, field))

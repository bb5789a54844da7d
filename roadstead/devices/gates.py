"""Feature gates that the allocator reads."""

from __future__ import annotations

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
    """

    prioritized_list: bool = True
    admin_access: bool = True
    partitionable: bool = False
    taints: bool = False
    consumable_capacity: bool = False
    extended_resource: bool = False
    binding_conditions: bool = False

"""Whether an allocated claim waits for conditions of its devices, or may never meet them.

Upstream: dynamicresources.go (isClaimReadyForBinding, isClaimTimeout); gate
DRADeviceBindingConditions.
"""

from __future__ import annotations

from typing import Final

from roadstead.facts.devices import AllocatedDevice, DeviceClaimFacts

BINDING_TIMEOUT_MS: Final = 600_000
"""Time after an allocation until conditions that do not hold make it unusable."""


def has_failed(claim: DeviceClaimFacts, now_ms: int) -> bool:
    """Whether binding failed, or its conditions do not hold in time. now_ms: since 1970."""
    allocation = claim.allocation
    if allocation is None:
        return False
    is_late = (
        allocation.allocated_ms is not None
        and allocation.allocated_ms + BINDING_TIMEOUT_MS < now_ms
    )
    for device in allocation.results:
        if not device.binding_conditions:
            continue
        conditions = _conditions(claim, device)
        if conditions is None:
            return is_late
        if any(conditions.get(each) == "True" for each in device.binding_failure_conditions):
            return True
        if any(conditions.get(each) != "True" for each in device.binding_conditions):
            return is_late
    return False


def _conditions(claim: DeviceClaimFacts, device: AllocatedDevice) -> dict[str, str] | None:
    """Return the reported conditions of a device; None if its driver reported nothing."""
    for each in claim.statuses:
        if (each.driver, each.pool, each.device, each.share_id) == (*device.id, device.share_id):
            return dict(each.conditions)
    return None

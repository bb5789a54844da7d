"""Claims of devices of a pod that is removed in a simulated run."""

from __future__ import annotations

from dataclasses import replace

from roadstead.devices.state import DeviceState, deallocated, without_consumers
from roadstead.facts.devices import DeviceClaimFacts


def claims_without_pod(devices: DeviceState, uid: str) -> tuple[DeviceClaimFacts, ...]:
    """Return the claims of a pod as they would be without it.

    The pod is not among their consumers. A claim without a consumer has no allocation, and none is
    in flight (assumed, and not written yet).
    """
    return tuple(
        deallocated(without_consumers(replace(each, is_in_flight=False), frozenset({uid})))
        for each in devices.claims_of_pods([uid])
    )

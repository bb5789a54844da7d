"""The devices of claims at the end of a run, as rows of its result."""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.report.result import ClaimedDevice

PODS = "pods"


def claimed_devices(claims: Iterable[DeviceClaimFacts]) -> tuple[ClaimedDevice, ...]:
    """Return each device of the claims that have an allocation, sorted by claim."""
    return tuple(
        ClaimedDevice(
            claim.key,
            each.request,
            each.driver,
            each.pool,
            each.device,
            tuple(
                f"{claim.namespace}/{consumer.name}"
                for consumer in claim.reserved_for
                if consumer.resource == PODS
            ),
        )
        for claim in sorted(claims, key=lambda each: each.key)
        if claim.allocation is not None
        for each in claim.allocation.results
    )

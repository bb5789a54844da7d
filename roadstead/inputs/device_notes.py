"""A note on running pods whose devices are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.inputs.loaded import RunningPod
from roadstead.report.units import counted


def unknown_device_notes(
    running: Sequence[RunningPod], claims: Iterable[DeviceClaimFacts]
) -> Iterator[str]:
    """Yield a note on running pods with claims that are not given, or have no allocation."""
    allocated = {each.key for each in claims if each.allocation is not None}
    # Left out: claims that a pod does not need (`generated` is ""), and the claim for extended
    # resources, which the scheduler itself creates.
    keys = [
        identity.key
        for identity, facts, _ in running
        for each in facts.device_claims
        if not each.extended
        and each.generated != ""
        and f"{facts.namespace}/{each.claim_name or each.generated}" not in allocated
    ]
    if keys := list(dict.fromkeys(keys)):
        yield (
            f"Without devices: {counted(len(keys), 'running pod')} (first {keys[0]}) with claims "
            "that are not given, or have no allocation in their status. The devices of these "
            "claims count as free."
        )

"""Claims and volumes that commits changed, as the journal records them.

Claims of devices are among them: see `roadstead.storage.state`.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.storage import ClaimFacts, VolumeFacts


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """Claims, volumes and claims of devices as a commit left them.

    removed: names of volumes that it removed. removed_claims: keys of claims of devices that it
    removed.
    """

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()
    device_claims: tuple[DeviceClaimFacts, ...] = ()
    removed_claims: tuple[str, ...] = ()

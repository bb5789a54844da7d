"""Claims and volumes that commits changed, as the journal records them.

Claims of devices are among them: see `roadstead.storage.state`.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.storage import ClaimFacts, VolumeFacts


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """State of claims and volumes after a commit. removed: names of removed volumes.

    device_claims: claims of devices after the commit. removed_claims: keys of removed ones.
    """

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()
    device_claims: tuple[DeviceClaimFacts, ...] = ()
    removed_claims: tuple[str, ...] = ()

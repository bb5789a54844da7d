"""Claims and volumes that a commit of the binder changed, as the journal records them.

The binder commits a pod's bind together with the claims that it binds, and a pod's end with the
claims that it releases. Claims of devices (ResourceClaims) are recorded, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.storage import ClaimFacts, VolumeFacts


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """The claims, volumes and claims of devices that a commit changed, in their new state.

    removed: names of volumes that it removed. removed_claims: keys (`namespace/name`) of claims of
    devices that it removed.
    """

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()
    device_claims: tuple[DeviceClaimFacts, ...] = ()
    removed_claims: tuple[str, ...] = ()

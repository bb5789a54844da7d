"""Claims and volumes that commits changed, as the journal records them."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.storage import ClaimFacts, VolumeFacts


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """State of claims and volumes after a commit. removed: names of removed volumes."""

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()

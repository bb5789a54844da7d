"""What commits changed of claims and volumes, as a journal tells it."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.storage import ClaimFacts, VolumeFacts


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """Claims and volumes as they are from a commit on; removed: names of volumes that are gone."""

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()

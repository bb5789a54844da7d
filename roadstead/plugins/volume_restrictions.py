"""VolumeRestrictions: known by name and not there yet; see `roadstead.plugins.missing`."""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.plugins.missing import CLAIMS, DISKS, MissingPlugin, volume_of


class VolumeRestrictions(MissingPlugin):
    name = "VolumeRestrictions"

    def need(self, pod: PodFacts) -> str:
        return volume_of(pod, (*DISKS, *CLAIMS))

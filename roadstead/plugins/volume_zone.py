"""VolumeZone: known by name and not there yet; see `roadstead.plugins.missing`."""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.plugins.missing import CLAIMS, MissingPlugin, volume_of


class VolumeZone(MissingPlugin):
    name = "VolumeZone"

    def need(self, pod: PodFacts) -> str:
        return volume_of(pod, CLAIMS)

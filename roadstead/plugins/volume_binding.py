"""VolumeBinding: known by name and not there yet; see `roadstead.plugins.missing`."""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.plugins.missing import CLAIMS, MissingPlugin, NothingReserved, volume_of


class VolumeBinding(MissingPlugin, NothingReserved):
    name = "VolumeBinding"

    def need(self, pod: PodFacts) -> str:
        return volume_of(pod, CLAIMS)

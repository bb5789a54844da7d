"""NodeVolumeLimits: known by name and not there yet; see `roadstead.plugins.missing`."""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.plugins.missing import CLAIMS, DISKS, MissingPlugin, volume_of


class NodeVolumeLimits(MissingPlugin):
    name = "NodeVolumeLimits"

    def need(self, pod: PodFacts) -> str:
        migrated = ("azureDisk", "azureFile", "cinder", "portworxVolume", "vsphereVolume", "csi")
        return volume_of(pod, (*DISKS[:2], *CLAIMS, *migrated))

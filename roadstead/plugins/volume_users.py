"""VolumeUsers: an index of the pod classes that use a claim or a disk.

A disk is a volume of an in-tree type that pods on one node cannot share at will.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.storage.claims import CLAIM, claim_keys

_ID_FIELDS: Mapping[str, str] = {
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "iscsi": "iqn",
    "rbd": "image",
}
"""Volume type (the manifest's field name) → the field with an ID of the disk."""
DISKS = tuple(_ID_FIELDS)


def disk_identity(kind: str, source: Mapping[str, str]) -> tuple[str, str]:
    """Return (kind, ID) of a disk. Different disks may have equal IDs, equal disks always do."""
    return kind, source.get(_ID_FIELDS[kind], "")


class VolumeUsers:
    """An index over the classes of a process; new classes are added before each lookup."""

    def __init__(self, classes: PodClasses) -> None:
        self._classes = classes
        # How many classes the index has.
        self._indexed = 0
        # By key of a claim, without and with the claims of ephemeral volumes; and by disk.
        self._of_claim: dict[str, list[PodClass]] = {}
        self._of_any_claim: dict[str, list[PodClass]] = {}
        self._of_disk: dict[tuple[str, str], list[PodClass]] = {}

    def of_claim(self, key: str) -> Sequence[PodClass]:
        """Return the classes that name a claim (`namespace/name`), without ephemeral volumes."""
        self._catch_up()
        return self._of_claim.get(key, ())

    def of_any_claim(self, key: str) -> Sequence[PodClass]:
        """Return the classes that use a claim, ephemeral volumes included."""
        self._catch_up()
        return self._of_any_claim.get(key, ())

    def of_disk(self, identity: tuple[str, str]) -> Sequence[PodClass]:
        """Return the classes that mount a disk of this identity."""
        self._catch_up()
        return self._of_disk.get(identity, ())

    def _catch_up(self) -> None:
        pod_classes = self._classes.pod_classes
        for index in range(self._indexed, len(pod_classes)):
            if pod_classes[index].facts.volumes:
                self._add(pod_classes[index])
        self._indexed = len(pod_classes)

    def _add(self, pod_class: PodClass) -> None:
        namespace = pod_class.facts.namespace
        named: dict[str, None] = {}
        disks: dict[tuple[str, str], None] = {}
        for volume in pod_class.facts.volumes:
            source = dict(volume.source)
            if volume.kind == CLAIM:
                named[f"{namespace}/{source['claimName']}"] = None
            elif volume.kind in DISKS:
                disks[disk_identity(volume.kind, source)] = None
        for key in dict.fromkeys(claim_keys(pod_class.facts)):
            self._of_any_claim.setdefault(key, []).append(pod_class)
        for key in named:
            self._of_claim.setdefault(key, []).append(pod_class)
        for identity in disks:
            self._of_disk.setdefault(identity, []).append(pod_class)

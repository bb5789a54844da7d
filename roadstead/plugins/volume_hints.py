"""Queueing hints of the volume plugins.

They look at the volumes of the waiting pod and at the object that changed, seldom at the listers.
Upstream: the isSchedulableAfter… functions of pkg/scheduler/framework/plugins/{volumebinding/
volume_binding.go, volumerestrictions/volume_restrictions.go, volumezone/volume_zone.go,
nodevolumelimits/csi.go} (1.34).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.csi_migration import DRIVERS, PLUGIN_OF, MigrationError, inline_handle
from roadstead.facts.node import REGION_LABELS, ZONE_LABELS
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    CsiDriverFacts,
    CsiNodeFacts,
    StorageClassFacts,
    VolumeFacts,
)
from roadstead.framework.events import (
    ActionType,
    Change,
    EventResource,
    HintError,
    QueueingHint,
    RegisteredEvent,
    SeenPod,
    on,
)
from roadstead.framework.plugin import EnqueueExtensions

CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"
_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE
_NODE_ADD_OR_LABEL = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
_TOPOLOGY_LABELS = (*ZONE_LABELS, *REGION_LABELS)


class VolumeBindingHints(EnqueueExtensions):
    """Claims of the pod, new storage of any kind, and storage that grew or opened up."""

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(EventResource.STORAGE_CLASS, _ADD_OR_UPDATE, self.after_class_change),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, self.after_claim_change),
            on(EventResource.PERSISTENT_VOLUME, _ADD_OR_UPDATE),
            on(EventResource.NODE, _NODE_ADD_OR_LABEL),
            on(EventResource.CSI_NODE, _ADD_OR_UPDATE, self.after_csi_node_change),
            on(EventResource.CSI_DRIVER, ActionType.UPDATE, self.after_csi_driver_change),
            on(EventResource.CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE, self.after_capacity_change),
        )

    def after_class_change(
        self, pod: PodFacts, change: Change[StorageClassFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A class came, or may be provisioned elsewhere than before."""
        assert change.new is not None
        before = change.old and change.old.allowed_topologies
        return QueueingHint.when(change.old is None or before != change.new.allowed_topologies)

    def after_claim_change(
        self, pod: PodFacts, change: Change[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A claim of the pod, be it of an ephemeral volume, came or changed."""
        return QueueingHint.when(_uses(pod, change.new, (CLAIM, EPHEMERAL)))

    def after_csi_node_change(
        self, pod: PodFacts, change: Change[CsiNodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Drivers of a node became known, or other in-tree plugins have moved to CSI there."""
        assert change.new is not None
        return QueueingHint.when(change.old is None or change.old.migrated != change.new.migrated)

    def after_csi_driver_change(
        self, pod: PodFacts, change: Change[CsiDriverFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Free storage of a driver that makes a volume of the pod no longer counts."""
        assert change.old is not None
        assert change.new is not None
        wanted = ("driver", change.new.name)
        used = any(wanted in volume.source for volume in pod.volumes if volume.kind == "csi")
        opened = change.old.tracks_capacity and not change.new.tracks_capacity
        return QueueingHint.when(used and opened)

    def after_capacity_change(
        self, pod: PodFacts, change: Change[CapacityFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Free storage became known, or larger volumes can be made of it."""
        assert change.new is not None
        if change.old is None:
            return QueueingHint.QUEUE
        before, after = change.old.limit_bytes, change.new.limit_bytes
        return QueueingHint.when(after is not None and (before is None or after > before))


class VolumeRestrictionsHints(EnqueueExtensions):
    """Pods that held a disk or a claim of this one, and claims that were missing."""

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),
            on(EventResource.NODE, ActionType.ADD),
            on(claim, ActionType.ADD, self.after_claim_added),
        )

    def after_pod_deleted(
        self, pod: PodFacts, change: Change[SeenPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """A pod of the namespace shared a claim, or kept one of the disks from others.

        How the claim may be accessed is not looked up.
        """
        assert change.old is not None
        gone = change.old.facts
        if gone.namespace != pod.namespace:
            return QueueingHint.QUEUE_SKIP
        mine, theirs = ({*_claim_names(each, (CLAIM,))} for each in (pod, gone))
        return QueueingHint.when(bool(mine & theirs) or _share_disk(pod, gone))

    def after_claim_added(
        self, pod: PodFacts, change: Change[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A claim came that the pod names."""
        return QueueingHint.when(_uses(pod, change.new, (CLAIM,)))


class VolumeZoneHints(EnqueueExtensions):
    """Claims of the pod, volumes and classes that came, and volumes that moved."""

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(EventResource.STORAGE_CLASS, ActionType.ADD, self.after_class_added),
            on(EventResource.NODE, _NODE_ADD_OR_LABEL),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, self.after_claim_change),
            on(EventResource.PERSISTENT_VOLUME, _ADD_OR_UPDATE, self.after_volume_change),
        )

    def after_class_added(
        self, pod: PodFacts, change: Change[StorageClassFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Claims of the class may stay unbound until a pod needs them."""
        assert change.new is not None
        return QueueingHint.when(change.new.waits)

    def after_claim_change(
        self, pod: PodFacts, change: Change[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A claim that the pod names came or changed."""
        return QueueingHint.when(_uses(pod, change.new, (CLAIM,)))

    def after_volume_change(
        self, pod: PodFacts, change: Change[VolumeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A volume came, or lies in other zones or regions."""
        assert change.new is not None
        return QueueingHint.when(
            change.old is None or _topologies(change.old) != _topologies(change.new)
        )


class NodeVolumeLimitsHints(EnqueueExtensions):
    """Volumes that were detached, limits that rose, and claims that were missing."""

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        attachment = EventResource.VOLUME_ATTACHMENT
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, self.after_csi_node_updated),
            on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),
            on(claim, ActionType.ADD, self.after_claim_added),
            on(attachment, ActionType.DELETE, self.after_attachment_deleted),
        )

    def after_csi_node_updated(
        self, pod: PodFacts, change: Change[CsiNodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A driver takes more volumes; one without a limit counts as one that takes none."""
        assert change.old is not None
        assert change.new is not None
        before = {each.name: each.limit or 0 for each in change.old.drivers}
        return QueueingHint.when(
            any((each.limit or 0) > before.get(each.name, 0) for each in change.new.drivers)
        )

    def after_pod_deleted(
        self, pod: PodFacts, change: Change[SeenPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """A pod that held, or was nominated to, a node had a volume that counts."""
        assert change.old is not None
        gone = change.old.facts
        counted = any(volume.kind in (CLAIM, EPHEMERAL, *PLUGIN_OF) for volume in gone.volumes)
        held = change.old.assigned or bool(gone.nominated_node_name)
        return QueueingHint.when(held and counted)

    def after_claim_added(
        self, pod: PodFacts, change: Change[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A claim of the pod, be it of an ephemeral volume, came."""
        return QueueingHint.when(_uses(pod, change.new, (CLAIM, EPHEMERAL)))

    def after_attachment_deleted(
        self, pod: PodFacts, change: Change[AttachmentFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A volume was detached: the pod names a claim, or has a volume of that very driver.

        HintError where a volume in the pod cannot be translated for its CSI driver.
        """
        assert change.old is not None
        for volume in pod.volumes:
            if volume.kind == CLAIM or _driver(volume) == change.old.attacher:
                return QueueingHint.QUEUE
        return QueueingHint.QUEUE_SKIP


def _claim_names(pod: PodFacts, kinds: tuple[str, ...]) -> Iterator[str]:
    for volume in pod.volumes:
        if volume.kind in kinds:
            yield dict(volume.source).get("claimName", "")


def _uses(pod: PodFacts, claim: ClaimFacts | None, kinds: tuple[str, ...]) -> bool:
    """Whether a claim is one that volumes of these kinds stand for."""
    assert claim is not None
    return claim.namespace == pod.namespace and claim.name in _claim_names(pod, kinds)


def _driver(volume: Volume) -> str | None:
    """The CSI driver that took over an in-tree volume of a pod; None for other volumes."""
    plugin = PLUGIN_OF.get(volume.kind)
    if plugin is None:
        return None
    try:
        inline_handle(volume.kind, dict(volume.source))
    except MigrationError as error:
        text = f"converting volume({volume.name}) from inline to csi: {error}"
        raise HintError(text) from error
    return DRIVERS[plugin]


def _topologies(volume: VolumeFacts) -> Mapping[str, frozenset[str]]:
    """Zones and regions by label; a label with an empty zone does not parse and is left out."""
    labels = dict(volume.labels)
    found = {}
    for key in _TOPOLOGY_LABELS:
        zones = [zone.strip() for zone in labels[key].split("__")] if key in labels else []
        if zones and all(zones):
            found[key] = frozenset(zones)
    return found


def _share_disk(pod: PodFacts, other: PodFacts) -> bool:
    pairs = ((mine, theirs) for mine in pod.volumes for theirs in other.volumes)
    return any(mine.kind == theirs.kind and _same_disk(mine, theirs) for mine, theirs in pairs)


def _same_disk(mine: Volume, theirs: Volume) -> bool:
    """Whether two pods cannot mount these on one node (isVolumeConflict)."""
    parts = _IDENTITY.get(mine.kind)
    if parts is None:
        return False
    ours, others = dict(mine.source), dict(theirs.source)
    if any(ours.get(part, "") != others.get(part, "") for part in parts):
        return False
    if mine.kind == "rbd" and not _monitors(mine) & _monitors(theirs):
        return False
    both_read = "readOnly" in ours and "readOnly" in others
    return mine.kind == "awsElasticBlockStore" or not both_read


_IDENTITY = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("iqn",),
    "rbd": ("pool", "image"),
}
"""Per kind of disk the fields that tell one from another; rbd also shares a monitor."""


def _monitors(volume: Volume) -> set[str]:
    return {value for key, value in volume.source if key == "monitors"}

"""The CSI volumes attached to each node, updated when pods are added and removed.

A `CsiSource` is one volume: a CSI driver and the driver's handle. Each row has the volumes of its
pods and of VolumeAttachments; a volume that several pods share is counted once. The counts per
driver are kept current, so that a filter reads one array. In-tree volumes count as volumes of the
CSI driver that replaced their plugin, on nodes where the plugin is migrated.

Upstream: plugins/nodevolumelimits/csi.go (filterAttachableVolumes, getNodeVolumeAttachmentInfo).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from roadstead.facts.csi_migration import (
    CSI_DRIVER_OF,
    IN_TREE_PLUGIN_OF,
    MigrationError,
    counts_as_csi_volume,
    inline_handle,
)
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import ClaimFacts, CsiNodeFacts, CsiSource
from roadstead.nodes.columns import I64, Columns
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.view import Rows
from roadstead.plugins.volume_users import VolumeUsers
from roadstead.storage.claims import CLAIM, EPHEMERAL, ClaimError, check_owner, not_found
from roadstead.storage.state import StorageState

NO_LIMIT = -1
"""In place of a limit, on a node that reports none for a driver."""


def is_attachable(volume: Volume) -> bool:
    """Whether a volume of a pod may count: a claim, or an in-tree volume with a CSI driver."""
    return volume.kind in (CLAIM, EPHEMERAL) or volume.kind in IN_TREE_PLUGIN_OF


def attachables(
    storage: StorageState, pod: PodFacts, node: CsiNodeFacts | None, *, is_new: bool
) -> Iterator[CsiSource]:
    """Yield the CSI volumes of a pod on a node.

    is_new: the pod is to be placed. Raises ClaimError if a claim has another owner, or if a claim
    of a new pod does not exist (with `is_missing`). A missing claim of a running pod is skipped.
    """
    for volume in pod.volumes:
        if volume.kind in IN_TREE_PLUGIN_OF:
            yield from _inline(volume, node)
        if volume.kind not in (CLAIM, EPHEMERAL):
            continue
        name = dict(volume.source).get("claimName", "")
        claim = storage.claims.get(f"{pod.namespace}/{name}")
        if claim is not None:
            check_owner(pod, volume, claim)
            yield from _claim_volume(storage, claim, node)
        elif is_new:
            text = f"looking up PVC {pod.namespace}/{name}: {not_found(name)}"
            raise ClaimError(text, is_missing=True)


def _inline(volume: Volume, node: CsiNodeFacts | None) -> Iterator[CsiSource]:
    plugin = IN_TREE_PLUGIN_OF[volume.kind]
    if not _is_migrated(plugin, node):
        return
    try:
        yield CsiSource(CSI_DRIVER_OF[plugin], inline_handle(volume.kind, dict(volume.source)))
    except MigrationError as problem:
        raise ClaimError(
            f"converting volume({volume.name}) from inline to csi: {problem}"
        ) from None


def _is_migrated(plugin: str, node: CsiNodeFacts | None) -> bool:
    return node is not None and counts_as_csi_volume(plugin, node.migrated)


def _claim_volume(
    storage: StorageState, claim: ClaimFacts, node: CsiNodeFacts | None
) -> Iterator[CsiSource]:
    """Yield a claim's volume; for an unbound claim, a placeholder of its storage class's driver."""
    volume = storage.volumes.get(claim.volume_name)
    if volume is None:
        yield from _unbound_placeholder(storage, claim, node)
        return
    source = volume.csi
    if source is None and _is_migrated(volume.in_tree, node):
        source = volume.migrated
    if source is not None and source.driver and source.handle:
        yield source


def _unbound_placeholder(
    storage: StorageState, claim: ClaimFacts, node: CsiNodeFacts | None
) -> Iterator[CsiSource]:
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None or not storage_class.provisioner:
        return
    provisioner = storage_class.provisioner
    driver = CSI_DRIVER_OF.get(provisioner)
    if driver is None:
        yield CsiSource(provisioner, f"unbound {claim.key}")
    elif _is_migrated(provisioner, node):
        yield CsiSource(driver, f"unbound {claim.key}")


class AttachedVolumes:
    """The volumes on the rows of one table's columns, for the current storage state.

    users: the pod classes that use each claim. row_groups: the rows on which the same in-tree
    plugins are migrated. The key is a CsiNodeFacts with these plugins and nothing else; None for
    nodes without a CSINode.
    """

    def __init__(self, storage: StorageState, users: VolumeUsers, columns: Columns) -> None:
        self._storage = storage
        self._users = users
        self.columns = columns
        # As of the last `catch_up`: node names by row; the version of each row, int64[row], and of
        # the storage state, which grow with each change.
        self._names: list[str] = []
        self._versions: I64 = np.zeros(0, dtype=np.int64)
        self._storage_version = -1
        # By row: its volumes, and its pod classes with volumes.
        self._volumes_on: dict[int, dict[CsiSource, None]] = {}
        self._classes_on: dict[int, tuple[PodClass, ...]] = {}
        # The rows of each volume that a pod uses, and of each pod class with volumes.
        self._rows_of: dict[CsiSource, set[int]] = {}
        self._rows_with: dict[PodClass, set[int]] = {}
        # By driver: int64[row].
        self._limits: dict[str, I64] = {}
        self._counts: dict[str, I64] = {}
        self.row_groups: dict[CsiNodeFacts | None, Rows] = {}

    def catch_up(self) -> None:
        """Apply the changes of rows and storage since the last call."""
        size = self.columns.size
        versions = self.columns.version[:size]
        if self._names != self.columns.names:
            self._reset()
            changed = np.arange(size)
        else:
            changed = np.flatnonzero(versions != self._versions)
        rows = set(changed.tolist())
        if self._storage_version != self._storage.version:
            rows |= self._rows_of_changed_claims()
            self._storage_version = self._storage.version
        for row in rows:
            self._recount_row(row)
        self._versions = versions.copy()

    def limit(self, driver: str) -> I64 | None:
        """Return a driver's limits: int64[row], NO_LIMIT for none; None if no row has a limit."""
        return self._limits.get(driver)

    def count(self, driver: str) -> I64:
        """Return the number of volumes of a driver on each row: int64[row]."""
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = np.zeros(self.columns.size, dtype=np.int64)
        return counts

    def rows_of(self, source: CsiSource) -> Iterable[int]:
        """Return the rows with a pod that uses a volume, not those with only an attachment."""
        return self._rows_of.get(source, ())

    def _reset(self) -> None:
        """Forget all rows: the nodes changed, so rows may be of other nodes."""
        self._names = list(self.columns.names)
        for cached in (self._volumes_on, self._rows_of, self._rows_with, self._classes_on):
            cached.clear()
        self._counts.clear()
        self._limits.clear()
        self._storage_version = self._storage.version
        groups: dict[CsiNodeFacts | None, list[int]] = {}
        for row, name in enumerate(self._names):
            node = self._storage.csi_nodes.get(name)
            migrated = CsiNodeFacts("", migrated=node.migrated) if node is not None else None
            groups.setdefault(migrated, []).append(row)
            self._set_limits(row, node)
        self.row_groups = {
            migrated: np.array(rows, dtype=np.intp) for migrated, rows in groups.items()
        }

    def _set_limits(self, row: int, node: CsiNodeFacts | None) -> None:
        for driver in node.drivers if node is not None else ():
            if driver.limit is not None:
                limits = self._limits.get(driver.name)
                if limits is None:
                    limits = np.full(len(self._names), NO_LIMIT, dtype=np.int64)
                    self._limits[driver.name] = limits
                limits[row] = driver.limit

    def _rows_of_changed_claims(self) -> set[int]:
        """Return the rows whose pods use a changed claim.

        All rows with volumes, if it is not known which claims changed.
        """
        keys = self._storage.claims_changed_since(self._storage_version)
        if keys is None:
            return set(self._volumes_on)
        pod_classes = {pod_class for key in keys for pod_class in self._users.of_any_claim(key)}
        return {row for pod_class in pod_classes for row in self._rows_with.get(pod_class, ())}

    def _recount_row(self, row: int) -> None:
        for source in self._volumes_on.pop(row, ()):
            self.count(source.driver)[row] -= 1
            self._rows_of.get(source, set()).discard(row)
        for pod_class in self._classes_on.pop(row, ()):
            self._rows_with[pod_class].discard(row)
        pod_classes = tuple(
            pod_class for pod_class in self.columns.pods[row] if pod_class.facts.volumes
        )
        attachments = self._storage.attachments.get(self._names[row], ())
        if not pod_classes and not attachments:
            return
        node = self._storage.csi_nodes.get(self._names[row])
        self._classes_on[row] = pod_classes
        volumes: dict[CsiSource, None] = {}
        for pod_class in pod_classes:
            self._rows_with.setdefault(pod_class, set()).add(row)
            for source in self._volumes_of_pod(pod_class.facts, node):
                volumes[source] = None
                self._rows_of.setdefault(source, set()).add(row)
        for attachment in attachments:
            for source in self._attached_volumes(attachment.volume_name, node):
                volumes[source] = None
        for source in volumes:
            self.count(source.driver)[row] += 1
        self._volumes_on[row] = volumes

    def _volumes_of_pod(self, pod: PodFacts, node: CsiNodeFacts | None) -> list[CsiSource]:
        """Return the volumes of a running pod: those before its first unusable claim."""
        volumes: list[CsiSource] = []
        try:
            for source in attachables(self._storage, pod, node, is_new=False):
                volumes.append(source)
        except ClaimError:
            return volumes
        return volumes

    def _attached_volumes(self, name: str, node: CsiNodeFacts | None) -> Iterator[CsiSource]:
        volume = self._storage.volumes.get(name)
        if volume is None:
            return
        if volume.csi is not None:
            yield volume.csi
        elif volume.migrated is not None and _is_migrated(volume.in_tree, node):
            yield volume.migrated


def by_driver(sources: Iterable[CsiSource]) -> Mapping[str, list[CsiSource]]:
    """Group volumes by driver, without duplicates."""
    of_driver: dict[str, list[CsiSource]] = {}
    for source in dict.fromkeys(sources):
        of_driver.setdefault(source.driver, []).append(source)
    return of_driver

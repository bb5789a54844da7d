"""NodeVolumeLimits: a node has no more volumes of a CSI driver than its CSINode allows.

A volume counts once per node, however many pods share it; VolumeAttachments count with the pods'
volumes. In-tree volumes count for the CSI driver that replaced their plugin (EBS, GCE PD, Azure
disk, Cinder; Portworx if it is migrated on the node). An unbound claim counts as a volume of the
provisioner of its storage class. A pod's volume is attachable if it may count: a claim, or an
in-tree volume with such a driver.

    attached + new > limit    refuses, for any driver of the pod's new volumes

Upstream: pkg/scheduler/framework/plugins/nodevolumelimits/{csi,utils}.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.csi_migration import (
    CSI_DRIVER_OF,
    IN_TREE_PLUGIN_OF,
    MigrationError,
    inline_handle,
)
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import AttachmentFacts, ClaimFacts, CsiNodeFacts, CsiSource
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    HintError,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    ON_NONE,
    Effect,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.attached_volumes import (
    NO_LIMIT,
    AttachedVolumes,
    attachables,
    by_driver,
    is_attachable,
)
from roadstead.plugins.volume_users import VolumeUsers
from roadstead.protocol.status import SKIP, Status, error, unresolvable, unschedulable
from roadstead.storage.binding import candidates
from roadstead.storage.claims import CLAIM, ClaimError, claim_keys, unbound_keys

_EXCEEDED = unschedulable("node(s) exceed max volume count")
MIN_CACHED_ROWS = 64
"""For smaller tables nothing is cached: they would replace the two large tables in the cache."""


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = "NodeVolumeLimits"
    reads = Reads.CLUSTER
    shares_by_shape = True

    def __init__(self, handle: Handle) -> None:
        self._storage = handle.storage
        self._users = VolumeUsers(handle.classes)
        # For the largest table, which has all nodes, and for one other.
        self._attached_volumes: list[AttachedVolumes] = []

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        return PreFilterResult() if _attachable(pod.facts) else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        attached = self._attached(table)
        codes = np.zeros(attached.columns.size, dtype=np.int32)
        statuses: list[Status] = [_EXCEEDED]
        for csi_node, rows in attached.row_groups.items():
            result = self._check_rows(pod.facts, csi_node, attached, rows)
            if isinstance(result, Status):
                statuses.append(result)
                codes[rows] = len(statuses)
            else:
                codes[rows[result]] = 1
        # So far there is a code for each row of the columns; a view has only some of these rows.
        codes = codes[table.row_index]
        return FilterResult(codes, tuple(statuses)) if codes.any() else ALL_PASS

    def _check_rows(
        self, pod: PodFacts, csi_node: CsiNodeFacts | None, attached: AttachedVolumes, rows: Rows
    ) -> Bools | Status:
        """Return which rows would exceed a limit: bool[rows]; or one status if a claim is unusable.

        csi_node: has only the in-tree plugins that are migrated on these rows; None: nodes without
        a CSINode.
        """
        try:
            new = by_driver(attachables(self._storage, pod, csi_node, is_new=True))
        except ClaimError as problem:
            text = str(problem)
            return unresolvable(text) if problem.is_missing else error(text)
        refused: Bools = np.zeros(len(rows), dtype=np.bool_)
        for driver, sources in new.items():
            limit_of_row = attached.limit(driver)
            if limit_of_row is not None:
                added = _new_volumes(sources, attached)[rows]
                limits = limit_of_row[rows]
                exceeded = attached.count(driver)[rows] + added > limits
                # Even a node over its limit accepts a pod whose volumes it has already.
                refused |= (limits != NO_LIMIT) & (added > 0) & exceeded
        return refused

    def _attached(self, table: Table) -> AttachedVolumes:
        """Return the attached volumes of a table's columns, up to date."""
        columns = table.columns
        attached = next((each for each in self._attached_volumes if each.columns is columns), None)
        if attached is None:
            attached = AttachedVolumes(self._storage, self._users, columns)
            if columns.size >= MIN_CACHED_ROWS:
                # A dry run of preemption reads one copy of rows after another; keep the last one.
                others = sorted(self._attached_volumes, key=lambda each: each.columns.size)
                self._attached_volumes = [attached, *others[-1:]]
        attached.catch_up()
        return attached

    def state_version(self, pod: PodClass) -> Hashable:
        return self._storage.version if _attachable(pod.facts) else None

    def effect(self, placed: PodClass) -> Effect:
        if not placed.facts.volumes:
            return ON_NONE
        # Placing the pod binds these claims.
        to_bind = unbound_keys(self._storage, placed.facts)
        return Effect(to_bind, partial(self._may_change, to_bind))

    def _may_change(self, to_bind: Iterable[str], pod: PodClass) -> bool:
        """Whether binding the claims `to_bind` may change the volumes that are counted for a pod.

        Nothing changes for a claim of other pods whose volume is provisioned by a CSI driver: the
        volume counts for the same driver as the unbound claim did before.
        """
        if not _attachable(pod.facts):
            return False
        own_claims = set(claim_keys(pod.facts))
        claims = (self._storage.claims.get(key) for key in to_bind)
        return any(
            claim is not None and not claim.is_bound and self._may_change_volumes(claim, own_claims)
            for claim in claims
        )

    def _may_change_volumes(self, claim: ClaimFacts, own_claims: set[str]) -> bool:
        storage_class = self._storage.classes.get(claim.storage_class)
        if claim.key in own_claims:
            return True
        # An in-tree provisioner counts for a CSI driver only where its plugin is migrated.
        if storage_class is not None and storage_class.provisioner in CSI_DRIVER_OF:
            return True
        # Volumes to which the claim may be bound, instead of one that is provisioned.
        _, free_volumes = candidates(self._storage, claim)
        return bool(free_volumes)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        claims, attachments = (
            EventResource.PERSISTENT_VOLUME_CLAIM,
            EventResource.VOLUME_ATTACHMENT,
        )
        return (
            on(EventResource.CSI_NODE, ActionType.ADD),
            on(EventResource.CSI_NODE, ActionType.UPDATE, self.after_csi_node_updated),
            on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),
            on(claims, ActionType.ADD, self.after_claim_added),
            on(attachments, ActionType.DELETE, self.after_attachment_deleted),
        )

    def after_csi_node_updated(
        self, pod: PodFacts, change: ObjectChange[CsiNodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a driver's limit is higher than before; a missing limit counts as 0."""
        assert change.old is not None
        assert change.new is not None
        before = {each.name: each.limit or 0 for each in change.old.drivers}
        return QueueingHint.when(
            any((each.limit or 0) > before.get(each.name, 0) for each in change.new.drivers)
        )

    def after_pod_deleted(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the deleted pod had a node or a nomination, and a volume that may count."""
        assert change.old is not None
        deleted = change.old.facts
        counted = any(map(is_attachable, deleted.volumes))
        had_node = change.old.assigned or bool(deleted.nominated_node_name)
        return QueueingHint.when(had_node and counted)

    def after_claim_added(
        self, pod: PodFacts, change: ObjectChange[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the added claim is one of the pod's, named or for an ephemeral volume."""
        assert change.new is not None
        return QueueingHint.when(change.new.key in claim_keys(pod))

    def after_attachment_deleted(
        self, pod: PodFacts, change: ObjectChange[AttachmentFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod names any claim, or has an in-tree volume of the attachment's driver.

        Raises HintError if an in-tree volume of the pod cannot be translated for its CSI driver.
        """
        assert change.old is not None
        for volume in pod.volumes:
            if volume.kind == CLAIM or _driver(volume) == change.old.attacher:
                return QueueingHint.QUEUE
        return QueueingHint.QUEUE_SKIP

    def sign(self, pod: PodFacts) -> Hashable:
        volumes = tuple((each.kind, each.source) for each in _attachable(pod))
        # A volume names its claim without the namespace, which is the pod's.
        return (pod.namespace if claim_keys(pod) else "", volumes)


def _attachable(pod: PodFacts) -> list[Volume]:
    return [volume for volume in pod.volumes if is_attachable(volume)]


def _new_volumes(sources: list[CsiSource], attached: AttachedVolumes) -> I64:
    """Return how many of the volumes are not on a row yet: int64[row of the columns]."""
    # Each volume that a row already has is subtracted from the number of all.
    added = np.full(attached.columns.size, len(sources), dtype=np.int64)
    for row in _rows_with(sources, attached):
        added[row] -= 1
    return added


def _rows_with(sources: list[CsiSource], attached: AttachedVolumes) -> Iterator[int]:
    for source in sources:
        yield from attached.rows_of(source)


def _driver(volume: Volume) -> str | None:
    """Return the CSI driver that replaced an in-tree volume's plugin; None for other volumes."""
    plugin = IN_TREE_PLUGIN_OF.get(volume.kind)
    if plugin is None:
        return None
    try:
        inline_handle(volume.kind, dict(volume.source))
    except MigrationError as error:
        text = f"converting volume({volume.name}) from inline to csi: {error}"
        raise HintError(text) from error
    return CSI_DRIVER_OF[plugin]

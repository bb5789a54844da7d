"""VolumeRestrictions: disks that two pods must not share, and claims that only one pod may use.

PreFilter: finds the pod's ReadWriteOncePod claims that pods anywhere in the cluster use; skips a
pod with none in use and without in-tree disks.
Filter; the first of these that holds is the reason of a refusal:
    disks    a pod on the node mounts the same GCE PD, iSCSI target or RBD image, and not both
             read-only; or the same EBS volume
    claims   a ReadWriteOncePod claim of the pod is in use, on whichever node

Upstream: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import READ_WRITE_ONCE_POD, ClaimFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
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
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.plugins.volume_users import DISKS, VolumeUsers, disk_identity
from roadstead.protocol.status import SKIP, unresolvable, unschedulable
from roadstead.storage.claims import CLAIM, not_found

_STATUSES = (
    unschedulable("node(s) had no available disk"),
    unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    ),
)
_NO_DISK, _IN_USE = 1, 2


@dataclass(frozen=True, slots=True)
class ClaimUses:
    """The ReadWriteOncePod claims of a pod that are in use.

    in_use: their sorted names. moved: uses by pods that were added (`with_pods_moved`), less those
    of removed pods. As upstream: `in_use` counts a claim once, even if several pods use it; `moved`
    counts each use.
    """

    in_use: tuple[str, ...]
    moved: int = 0

    @property
    def conflicts(self) -> int:
        """The number of uses that conflict with the pod; it may be negative after moves."""
        return len(self.in_use) + self.moved


class VolumeRestrictions(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = "VolumeRestrictions"
    reads = Reads.CLUSTER
    shares_by_shape = True
    unprepared = 'cannot read "PreFilterVolumeRestrictions" from cycleState'

    def __init__(self, handle: Handle) -> None:
        self._storage = handle.storage
        # The pod classes by the claims and disks that they use.
        self._users = VolumeUsers(handle.classes)

    def _uses(self, pod: PodClass, table: Table) -> ClaimUses:
        counts = table.class_counts
        found = []
        for name in sorted(self._exclusive_claims(pod.facts)):
            users = self._users.of_claim(f"{pod.facts.namespace}/{name}")
            if any(pod_class in counts for pod_class in users):
                found.append(name)
        return ClaimUses(tuple(found))

    def with_pods_moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        """Count the claims of moved pods; as upstream by their names, in any namespace."""
        exclusive = self._exclusive_claims(pod.facts)
        change = sum(
            times * sum(name in exclusive for name in _claim_names(other.facts))
            for other, times in moves.items()
        )
        assert isinstance(prepared, ClaimUses)
        return replace(prepared, moved=prepared.moved + change) if change else prepared

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        for name in _claim_names(pod.facts):
            if f"{pod.facts.namespace}/{name}" not in self._storage.claims:
                return PreFilterResult(unresolvable(str(not_found(name))))
        uses = self._uses(pod, table)
        if not uses.in_use and not _disks(pod.facts):
            return PreFilterResult(SKIP)
        state.write(self.name, uses)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        in_use = state.read(self.name, ClaimUses).conflicts > 0
        codes = np.full(len(table), _IN_USE if in_use else 0, dtype=np.int32)
        # Pod classes with a conflicting disk; `class_counts` has the classes that are on nodes.
        conflicting = {
            pod_class
            for disk in _disks(pod.facts)
            for pod_class in self._users.of_disk(_identity(disk))
            if pod_class in table.class_counts
            and any(_conflict(disk, mounted) for mounted in _disks(pod_class.facts))
        }
        if conflicting:
            for row in range(len(table)):
                if not conflicting.isdisjoint(table.pods(row)):
                    codes[row] = _NO_DISK
        return FilterResult(codes, _STATUSES) if codes.any() else ALL_PASS

    def state_version(self, pod: PodClass) -> Hashable:
        claims = (f"{pod.facts.namespace}/{name}" for name in _claim_names(pod.facts))
        return tuple(claim in self._storage.claims for claim in claims) or None

    def effect(self, placed: PodClass) -> Effect:
        if not placed.facts.volumes:
            return ON_NONE
        exclusive = placed.facts.namespace, frozenset(self._exclusive_claims(placed.facts))
        return Effect(exclusive, partial(self._uses_claim, *exclusive))

    def _uses_claim(self, namespace: str, names: frozenset[str], pod: PodClass) -> bool:
        """Whether a pod of this namespace uses one of the named claims."""
        return pod.facts.namespace == namespace and not names.isdisjoint(_claim_names(pod.facts))

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        claim = EventResource.PERSISTENT_VOLUME_CLAIM
        return (
            on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),
            on(EventResource.NODE, ActionType.ADD),
            on(claim, ActionType.ADD, self.after_claim_added),
        )

    def after_pod_deleted(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the deleted pod of the same namespace had the same claim or a conflicting disk.

        The claim's access modes are not read.
        """
        assert change.old is not None
        deleted = change.old.facts
        if deleted.namespace != pod.namespace:
            return QueueingHint.QUEUE_SKIP
        shared = set(_claim_names(pod)).intersection(_claim_names(deleted))
        pairs = ((wanted, freed) for wanted in _disks(pod) for freed in _disks(deleted))
        return QueueingHint.when(bool(shared) or any(_conflict(*pair) for pair in pairs))

    def after_claim_added(
        self, pod: PodFacts, change: ObjectChange[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod names the added claim."""
        claim = change.new
        assert claim is not None
        in_namespace = claim.namespace == pod.namespace
        return QueueingHint.when(in_namespace and claim.name in _claim_names(pod))

    def sign(self, pod: PodFacts) -> Hashable:
        names = tuple(_claim_names(pod))
        disks = tuple((each.kind, each.source) for each in _disks(pod))
        return (pod.namespace if names else "", names, disks)

    def _exclusive_claims(self, pod: PodFacts) -> set[str]:
        """Return the names of the pod's ReadWriteOncePod claims."""
        found = set()
        for name in _claim_names(pod):
            claim = self._storage.claims.get(f"{pod.namespace}/{name}")
            if claim is not None and READ_WRITE_ONCE_POD in claim.access_modes:
                found.add(name)
        return found


def _claim_names(pod: PodFacts) -> list[str]:
    """Return the names of the pod's claims; as upstream, without those of ephemeral volumes."""
    return [dict(each.source)["claimName"] for each in pod.volumes if each.kind == CLAIM]


def _disks(pod: PodFacts) -> Sequence[Volume]:
    return [each for each in pod.volumes if each.kind in DISKS]


def _identity(disk: Volume) -> tuple[str, str]:
    return disk_identity(disk.kind, dict(disk.source))


def _conflict(wanted: Volume, mounted: Volume) -> bool:
    """Whether two pods must not mount these disks on one node (isVolumeConflict)."""
    if _identity(wanted) != _identity(mounted):
        return False
    if wanted.kind == "awsElasticBlockStore":
        return True
    if _is_read_only(wanted) and _is_read_only(mounted):
        return False
    if wanted.kind != "rbd":
        return True
    pools = {dict(each.source).get("pool", "") for each in (wanted, mounted)}
    return len(pools) == 1 and not _monitors(wanted).isdisjoint(_monitors(mounted))


def _is_read_only(disk: Volume) -> bool:
    return ("readOnly", "true") in disk.source


def _monitors(disk: Volume) -> set[str]:
    return {value for name, value in disk.source if name == "monitors"}

"""VolumeBinding: a node must reach the volumes of the pod's claims, or allow to provision them.

PreFilter: every claim must exist, must not be lost or terminating, and must be bound unless its
class is WaitForFirstConsumer; a pod without claims is skipped.
Filter; the status has all reasons of a node:
    bound claims      the node reaches their volumes (node affinity)
    waiting claims    there is a volume for each unbound claim, or one can be provisioned: the
                      storage class allows the node and the driver has free storage
Score is used only with the feature gate StorageCapacityScoring, which is off: PreScore skips.

Upstream's Reserve assumes volumes for the waiting claims. Here the cache does this when it assumes
the pod (see `roadstead.storage.assumed_claims`), and Filter reads the result.

Upstream: pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.storage import (
    CapacityFacts,
    ClaimFacts,
    CsiDriverFacts,
    CsiNodeFacts,
    StorageClassFacts,
)
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
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
    Feasible,
    FilterPlugin,
    FilterResult,
    Handle,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
    only_succeeds,
)
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.plugins.volume_matching import REASONS, VolumeMatching
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable
from roadstead.storage.binding import candidates
from roadstead.storage.claims import (
    ClaimError,
    PodClaims,
    claim_keys,
    claim_volumes,
    grouped_by_state,
    unbound_keys,
    usable_claims,
)

# A claim of a class that is not WaitForFirstConsumer is bound without the scheduler.
_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_STATUSES = tuple(
    unresolvable(*(reason for bit, reason in enumerate(REASONS) if bits >> bit & 1))
    for bits in range(1, 1 << len(REASONS))
)
"""One status for each combination of REASONS, so that bits can serve as `FilterResult.codes`."""

_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE


class VolumeBinding(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name = "VolumeBinding"
    reads = Reads.CLUSTER
    shares_by_shape = True
    unprepared = "not found"
    # The cache binds the claims of a pod that it assumes.
    binds_volumes = True

    def __init__(self, handle: Handle) -> None:
        self._storage = handle.storage

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        try:
            claims = usable_claims(self._storage, pod.facts)
        except ClaimError as problem:
            return PreFilterResult(unresolvable(str(problem)))
        if not claims:
            return PreFilterResult(SKIP)
        try:
            grouped = grouped_by_state(self._storage, claims)
        except ClaimError as problem:
            return PreFilterResult(error(str(problem)))
        if grouped.immediate:
            return PreFilterResult(_IMMEDIATE)
        state.write(self.name, grouped)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        claims = state.read(self.name, PodClaims)
        reasons = VolumeMatching(self._storage, table).reason_bits(claims)
        return FilterResult(reasons, _STATUSES) if reasons.any() else ALL_PASS

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        return np.zeros(len(table), dtype=np.int64)

    @only_succeeds
    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    @only_succeeds
    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        return None

    @only_succeeds
    def pre_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    def state_version(self, pod: PodClass) -> Hashable:
        return self._storage.version if claim_keys(pod.facts) else None

    def effect(self, placed: PodClass) -> Effect:
        if not placed.facts.volumes:
            return ON_NONE
        # Placing the pod binds these claims.
        to_bind = unbound_keys(self._storage, placed.facts)
        return Effect(to_bind, partial(self._may_change, to_bind))

    def _may_change(self, to_bind: Iterable[str], pod: PodClass) -> bool:
        """Whether binding the claims `to_bind` may change which volumes a pod's claims can have."""
        own_claims = set(claim_keys(pod.facts))
        if not own_claims:
            return False
        storage_classes = {
            claim.storage_class
            for key in own_claims
            if (claim := self._storage.claims.get(key)) is not None and not claim.is_bound
        }
        return any(self._may_use_volume(key, own_claims, storage_classes) for key in to_bind)

    def _may_use_volume(self, key: str, own_claims: set[str], storage_classes: set[str]) -> bool:
        """Whether binding a claim may use a volume that the pod's claims could have.

        storage_classes: those of the pod's unbound claims.
        """
        claim = self._storage.claims.get(key)
        if claim is None or claim.is_bound:
            return False
        if key in own_claims:
            return True
        if claim.storage_class not in storage_classes:
            return False
        # Without free volumes that fit the claim, one is provisioned for it.
        _, free_volumes = candidates(self._storage, claim)
        return bool(free_volumes)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(EventResource.STORAGE_CLASS, _ADD_OR_UPDATE, self.after_class_change),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, self.after_claim_change),
            on(EventResource.PERSISTENT_VOLUME, _ADD_OR_UPDATE),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            on(EventResource.CSI_NODE, _ADD_OR_UPDATE, self.after_csi_node_change),
            on(EventResource.CSI_DRIVER, ActionType.UPDATE, self.after_csi_driver_change),
            on(EventResource.CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE, self.after_capacity_change),
        )

    def after_class_change(
        self, pod: PodFacts, change: ObjectChange[StorageClassFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a class was added, or its allowedTopologies changed."""
        assert change.new is not None
        before = change.old and change.old.allowed_topologies
        return QueueingHint.when(change.old is None or before != change.new.allowed_topologies)

    def after_claim_change(
        self, pod: PodFacts, change: ObjectChange[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a claim of the pod was added or changed, also for an ephemeral volume."""
        assert change.new is not None
        return QueueingHint.when(change.new.key in claim_keys(pod))

    def after_csi_node_change(
        self, pod: PodFacts, change: ObjectChange[CsiNodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a CSINode was added, or its migrated in-tree plugins changed."""
        assert change.new is not None
        return QueueingHint.when(change.old is None or change.old.migrated != change.new.migrated)

    def after_csi_driver_change(
        self, pod: PodFacts, change: ObjectChange[CsiDriverFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the driver of a CSI volume of the pod no longer tracks free storage."""
        assert change.old is not None
        assert change.new is not None
        wanted = ("driver", change.new.name)
        used = any(wanted in volume.source for volume in pod.volumes if volume.kind == "csi")
        tracks_no_longer = change.old.tracks_capacity and not change.new.tracks_capacity
        return QueueingHint.when(used and tracks_no_longer)

    def after_capacity_change(
        self, pod: PodFacts, change: ObjectChange[CapacityFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a capacity was added, or it allows larger volumes than before."""
        assert change.new is not None
        if change.old is None:
            return QueueingHint.QUEUE
        before, after = change.old.limit_bytes, change.new.limit_bytes
        return QueueingHint.when(after is not None and (before is None or after > before))

    def sign(self, pod: PodFacts) -> Hashable:
        found = tuple((each.kind, each.source) for each, _ in claim_volumes(pod))
        return (pod.namespace, found) if found else ()

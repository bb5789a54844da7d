"""VolumeZone: nodes must have the zone and region labels of the pod's bound volumes.

PreFilter: collects these labels of the volumes of all claims, except unbound claims whose class is
WaitForFirstConsumer; a pod for which no label is found is skipped.
Filter: a node without any zone or region label passes; other nodes must have every such label of
every volume (or, for a beta label, its newer name). The node's value must be one of those that the
volume's label joins, as in `a__b`.

Upstream: pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.csi_migration import (
    BETA_REGION,
    BETA_ZONE,
    MULTI_ZONE_DELIMITER,
    REGION,
    ZONE,
)
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import Requirement
from roadstead.facts.storage import ClaimFacts, StorageClassFacts, VolumeFacts
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
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import SKIP, Status, unresolvable
from roadstead.storage.claims import CLAIM, not_found

_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""Beta label → its present name."""
_CONFLICT = unresolvable("node(s) had no available volume zone")

Topology = tuple[str, tuple[str, ...]]
"""A label key of a volume and the values that it allows."""
_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE


class VolumeZone(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = "VolumeZone"
    # It also reads the pod's claims and volumes, whose changes change `state_version`.
    reads = Reads.NODE
    shares_by_shape = True

    def __init__(self, handle: Handle) -> None:
        self._storage = handle.storage

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        topologies: list[Topology] = []
        for name in _claim_names(pod.facts):
            found = self._volume(pod.facts.namespace, name)
            if isinstance(found, Status):
                return PreFilterResult(found)
            if found is not None:
                topologies += topologies_of(found)
        if not topologies:
            return PreFilterResult(SKIP)
        state.write(self.name, tuple(topologies))
        return PreFilterResult()

    def _volume(self, namespace: str, name: str) -> VolumeFacts | Status | None:
        """Return a claim's volume, a refusal, or None for a claim that is bound with the pod."""
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = self._storage.claims.get(f"{namespace}/{name}")
        if claim is None:
            return unresolvable(str(not_found(name)))
        if claim.volume_name:
            volume = self._storage.volumes.get(claim.volume_name)
            text = f'persistentvolume "{claim.volume_name}" not found'
            return unresolvable(text) if volume is None else volume
        return self._refusal_of_unbound(claim.storage_class)

    def _refusal_of_unbound(self, name: str) -> Status | None:
        """Refuse an unbound claim of a storage class, unless the claim is bound with the pod."""
        if not name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._storage.classes.get(name)
        if found is None:
            return unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
        if not found.binding_mode:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        return None if found.waits else unresolvable("PersistentVolume had no name")

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        if not state.has(self.name):
            # PreFilter is not enabled. Its Skip then passes all nodes.
            status = self.pre_filter(state, pod, table).status
            if not status.is_success:
                refused_everywhere = np.full(len(table), not status.is_skip)
                return FilterResult.refuse(refused_everywhere, status)
        has_zone = np.zeros(len(table), dtype=np.bool_)
        for key in _KEYS:
            has_zone |= table.match(Requirement(key, "Exists"))
        refused = np.zeros(len(table), dtype=np.bool_)
        for key, values in state.read(self.name, tuple):
            refused |= ~_matching(table, key, values)
        return FilterResult.refuse(has_zone & refused, _CONFLICT)

    def state_version(self, pod: PodClass) -> Hashable:
        found = []
        for name in _claim_names(pod.facts):
            claim = self._storage.claims.get(f"{pod.facts.namespace}/{name}")
            volume_name = claim.volume_name if claim is not None else ""
            found.append((claim is None, volume_name, volume_name in self._storage.volumes))
        return tuple(found) or None

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(EventResource.STORAGE_CLASS, ActionType.ADD, self.after_class_added),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            on(EventResource.PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE, self.after_claim_change),
            on(EventResource.PERSISTENT_VOLUME, _ADD_OR_UPDATE, self.after_volume_change),
        )

    def after_class_added(
        self, pod: PodFacts, change: ObjectChange[StorageClassFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the added class is WaitForFirstConsumer."""
        assert change.new is not None
        return QueueingHint.when(change.new.waits)

    def after_claim_change(
        self, pod: PodFacts, change: ObjectChange[ClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod names the added or changed claim."""
        claim = change.new
        assert claim is not None
        in_namespace = claim.namespace == pod.namespace
        return QueueingHint.when(in_namespace and claim.name in _claim_names(pod))

    def after_volume_change(
        self, pod: PodFacts, change: ObjectChange[VolumeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a volume was added, or its zones or regions changed."""
        assert change.new is not None
        return QueueingHint.when(
            change.old is None or topologies_of(change.old) != topologies_of(change.new)
        )

    def sign(self, pod: PodFacts) -> Hashable:
        names = tuple(_claim_names(pod))
        return (pod.namespace, names) if names else ()


def _claim_names(pod: PodFacts) -> list[str]:
    return [dict(each.source).get("claimName", "") for each in pod.volumes if each.kind == CLAIM]


def topologies_of(volume: VolumeFacts) -> list[Topology]:
    """Return the zone and region labels of a volume; labels with invalid values are ignored."""
    labels = dict(volume.labels)
    found = []
    for key in _KEYS:
        if key in labels:
            values = [value.strip() for value in labels[key].split(MULTI_ZONE_DELIMITER)]
            if all(values):
                found.append((key, tuple(sorted(set(values)))))
    return found


def _matching(table: Table, key: str, values: tuple[str, ...]) -> Bools:
    """Return the rows whose label of this key, or else of its newer name, has one of the values."""
    matching = table.match(Requirement(key, "In", values))
    newer = _NEWER.get(key)
    if newer is None:
        return matching
    lacking = table.match(Requirement(key, "DoesNotExist"))
    return matching | (lacking & table.match(Requirement(newer, "In", values)))

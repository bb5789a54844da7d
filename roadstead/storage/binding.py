"""The volumes that a pod's claims would be bound to on one node.

    static     the smallest volume that fits and that the node can reach; or the one whose
               claimRef names the claim already
    provision  a new volume, if the class allows one on the node

Upstream: plugins/volumebinding/binder.go (FindPodVolumes, AssumePodVolumes) and
component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), for one node. There is no
volume controller and no provisioner: what they would write after the decision is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.facts.csi_migration import CSI_DRIVER_OF
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.storage import (
    NO_PROVISIONER,
    ClaimFacts,
    ClaimReference,
    CsiSource,
    NodeTerms,
    StorageClassFacts,
    VolumeFacts,
)
from roadstead.storage.claims import claims_of
from roadstead.storage.state import StorageChange, StorageState


@dataclass(frozen=True, slots=True)
class Binding:
    """A claim and its volume, both in their state after the binding."""

    claim: ClaimFacts
    volume: VolumeFacts

    @property
    def change(self) -> StorageChange:
        return StorageChange((self.claim,), (self.volume,))


def reaches(terms: NodeTerms, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels can reach a volume; as upstream, by labels only."""
    return terms is None or any(term.matches(labels, "") for term in terms)


def is_volume_bound_to_claim(volume: VolumeFacts, claim: ClaimFacts) -> bool:
    """Whether a volume's claimRef names this claim (IsVolumeBoundToClaim)."""
    return (
        volume.claim is not None
        and (volume.claim.namespace, volume.claim.name) == (claim.namespace, claim.name)
        and volume.claim.uid in ("", claim.uid)
    )


def candidates(
    storage: StorageState, claim: ClaimFacts
) -> tuple[VolumeFacts | None, list[VolumeFacts]]:
    """Return (volume whose claimRef names the claim, free volumes that fit it), on any node."""
    min_bytes, modes = claim.requested_bytes or 0, frozenset(claim.access_modes)
    for volume in storage.index.volumes_naming(claim):
        is_usable = volume.capacity_bytes >= min_bytes and not volume.is_terminating
        if is_usable and _has_same_modes(volume, claim) and is_volume_bound_to_claim(volume, claim):
            return volume, []
    large_enough = (
        storage.volumes[name] for name in storage.index.free(claim.storage_class, min_bytes)
    )
    fits = [v for v in large_enough if modes.issubset(v.access_modes) and _has_same_modes(v, claim)]
    if claim.selector is None:
        return None, fits
    matches = claim.selector.matches
    return None, [volume for volume in fits if matches(dict(volume.labels))]


def _has_same_modes(volume: VolumeFacts, claim: ClaimFacts) -> bool:
    """Return whether a volume has the mode and the attributes class that a claim requests."""
    return (
        volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
    )


def by_size(claims: Iterable[ClaimFacts]) -> list[ClaimFacts]:
    """Sort claims in the order in which volumes are chosen for them: smallest first."""
    return sorted(claims, key=lambda claim: claim.requested_bytes or 0)


def may_provision(storage_class: StorageClassFacts | None) -> bool:
    """Whether volumes of a class can be provisioned at all."""
    return storage_class is not None and storage_class.provisioner not in ("", NO_PROVISIONER)


def bindings_on(
    storage: StorageState, pod: PodFacts, node: NodeFacts
) -> tuple[Binding, ...] | None:
    """Return the bindings of a pod's waiting claims on a node; None if they cannot be bound there.

    A waiting claim is unbound and of a class with WaitForFirstConsumer.
    Raises ClaimError if a claim cannot be used. Whether the node reaches the volumes of bound
    claims is not checked here; Filter does that.
    """
    waiting = claims_of(storage, pod).waiting
    labels = dict(node.labels)
    # By name: no other claim of the pod may get the same volume.
    chosen: dict[str, VolumeFacts] = {}
    bindings: list[Binding] = []
    for claim in by_size(waiting):
        if claim.selected_node not in (None, node.name):
            return None
        volume = None
        if claim.selected_node is None:
            volume = _static(storage, claim, labels, chosen)
        if volume is None:
            volume = provisioned(storage, claim, node)
        if volume is None:
            return None
        # Two volumes of a pod may name one claim, which is bound once.
        if volume.name not in chosen and all(each.claim.key != claim.key for each in bindings):
            bindings.append(_bound(claim, volume))
        chosen[volume.name] = volume
    return tuple(bindings)


def _static(
    storage: StorageState,
    claim: ClaimFacts,
    labels: Mapping[str, str],
    chosen: Mapping[str, VolumeFacts],
) -> VolumeFacts | None:
    """Return the existing volume that a claim gets; None if no free one is reached."""
    named_volume, free_volumes = candidates(storage, claim)
    if named_volume is not None:
        return named_volume if reaches(named_volume.node_terms, labels) else None
    return next(
        (v for v in free_volumes if v.name not in chosen and reaches(v.node_terms, labels)),
        None,
    )


def _bound(claim: ClaimFacts, volume: VolumeFacts) -> Binding:
    owner = ClaimReference(claim.namespace, claim.name, claim.uid)
    return Binding(
        replace(claim, volume_name=volume.name, has_bind_completed=True),
        replace(volume, claim=owner, phase="Bound"),
    )


def provisioned(storage: StorageState, claim: ClaimFacts, node: NodeFacts) -> VolumeFacts | None:
    """Return the volume that would be provisioned for a claim on a node; None if none can be."""
    storage_class = storage.classes.get(claim.storage_class)
    labels = dict(node.labels)
    if (
        storage_class is None
        or not may_provision(storage_class)
        or not topology_allows(storage_class, labels)
    ):
        return None
    if not has_capacity(storage, storage_class, claim, labels):
        return None
    driver = CSI_DRIVER_OF.get(storage_class.provisioner, storage_class.provisioner)
    name = f"pvc-{claim.uid or f'{claim.namespace}-{claim.name}'}"
    # A volume of this name exists already.
    if name in storage.volumes:
        return None
    return VolumeFacts(
        name=name,
        storage_class=storage_class.name,
        capacity_bytes=claim.requested_bytes or 0,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        attributes_class=claim.attributes_class,
        node_terms=_topology(storage, storage_class, driver, node),
        csi=CsiSource(driver, name),
    )


def _topology(
    storage: StorageState, storage_class: StorageClassFacts, driver: str, node: NodeFacts
) -> NodeTerms:
    """Return the node affinity of a new volume: the node's own values of the topology keys.

    The keys are those that the driver names in the node's CSINode, else those of the class.
    """
    labels = dict(node.labels)
    csi_node = storage.csi_nodes.get(node.name)
    keys: Sequence[str] = [
        key
        for each in (csi_node.drivers if csi_node else ())
        if each.name in (driver, storage_class.provisioner)
        for key in each.topology_keys
    ] or sorted({key for term in storage_class.allowed_topologies for key, _ in term})
    requirements = tuple(Requirement(key, "In", (labels[key],)) for key in keys if key in labels)
    return (NodeSelectorTerm(requirements),) if requirements else None


def topology_allows(storage_class: StorageClassFacts, labels: Mapping[str, str]) -> bool:
    """Whether a class may provision volumes for a node (MatchTopologySelectorTerms)."""
    if not storage_class.allowed_topologies:
        return True
    return any(
        bool(term) and all(labels.get(key) in values for key, values in term)
        for term in storage_class.allowed_topologies
    )


def has_capacity(
    storage: StorageState,
    storage_class: StorageClassFacts,
    claim: ClaimFacts,
    labels: Mapping[str, str],
) -> bool:
    """Whether the driver has enough free storage for a claim near a node.

    True if the driver does not publish its free storage (CSIStorageCapacity).
    """
    if not counts_capacity(storage, storage_class, claim):
        return True
    return any(
        each.selector is not None
        and each.limit_bytes is not None
        and each.limit_bytes >= (claim.requested_bytes or 0)
        and each.selector.matches(labels)
        for each in storage.capacities.get(storage_class.name, ())
    )


def counts_capacity(
    storage: StorageState, storage_class: StorageClassFacts, claim: ClaimFacts
) -> bool:
    """Whether the driver publishes its free storage, and the claim requests a size."""
    driver = storage.csi_drivers.get(storage_class.provisioner)
    return claim.requested_bytes is not None and driver is not None and driver.tracks_capacity

"""Which volumes a pod's claims get on one node, and what that changes.

    static     the smallest volume that fits, of those that the node reaches; or the one that is
               the claim's already
    provision  a new volume, where the class allows it on the node

Upstream: plugins/volumebinding/binder.go (FindPodVolumes, AssumePodVolumes) and
component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume), for one node. What the volume
controller and the provisioners do afterwards is done here, too: see decision 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.facts.csi_migration import DRIVERS
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
    """A claim and the volume that becomes its own; both as they are afterwards."""

    claim: ClaimFacts
    volume: VolumeFacts

    @property
    def change(self) -> StorageChange:
        return StorageChange((self.claim,), (self.volume,))


def reaches(terms: NodeTerms, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels reaches a volume; upstream looks at labels alone."""
    return terms is None or any(term.matches(labels, "") for term in terms)


def is_claims(volume: VolumeFacts, claim: ClaimFacts) -> bool:
    """Whether a volume says that it is this claim's (IsVolumeBoundToClaim)."""
    return (
        volume.claim is not None
        and (volume.claim.namespace, volume.claim.name) == (claim.namespace, claim.name)
        and volume.claim.uid in ("", claim.uid)
    )


def candidates(
    storage: StorageState, claim: ClaimFacts
) -> tuple[VolumeFacts | None, list[VolumeFacts]]:
    """(the volume that is the claim's already, the free ones that fit it), nodes aside."""
    least, modes = claim.requested_bytes or 0, frozenset(claim.access_modes)
    for volume in storage.index.naming(claim):
        big_enough = volume.capacity_bytes >= least and not volume.is_terminating
        if big_enough and _is_like(volume, claim) and is_claims(volume, claim):
            return volume, []
    found = (storage.volumes[name] for name in storage.index.free(claim.storage_class, least))
    fits = [v for v in found if modes.issubset(v.access_modes) and _is_like(v, claim)]
    if claim.selector is None:
        return None, fits
    matches = claim.selector.matches
    return None, [volume for volume in fits if matches(dict(volume.labels))]


def _is_like(volume: VolumeFacts, claim: ClaimFacts) -> bool:
    return (
        volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
    )


def by_size(claims: Iterable[ClaimFacts]) -> list[ClaimFacts]:
    """Claims in the order in which they look for volumes: small ones first."""
    return sorted(claims, key=lambda claim: claim.requested_bytes or 0)


def may_provision(found: StorageClassFacts | None) -> bool:
    """Whether volumes of a class can be made at all."""
    return found is not None and found.provisioner not in ("", NO_PROVISIONER)


def bindings_on(
    storage: StorageState, pod: PodFacts, node: NodeFacts
) -> tuple[Binding, ...] | None:
    """What binding a pod's claims on a node comes to; None where they cannot be bound there.

    Raises ClaimError where a claim cannot be used. Claims that are bound already must have
    volumes that the node reaches, which is Filter's business.
    """
    waiting = claims_of(storage, pod).waiting
    labels = dict(node.labels)
    chosen: dict[str, VolumeFacts] = {}
    made: list[Binding] = []
    for claim in by_size(waiting):
        if claim.selected_node not in (None, node.name):
            return None
        found = None
        if claim.selected_node is None:
            found = _static(storage, claim, labels, chosen)
        if found is None:
            found = provisioned(storage, claim, node)
        if found is None:
            return None
        if found.name not in chosen and all(each.claim.key != claim.key for each in made):
            made.append(_bound(claim, found))
        chosen[found.name] = found
    return tuple(made)


def _static(
    storage: StorageState,
    claim: ClaimFacts,
    labels: Mapping[str, str],
    chosen: Mapping[str, VolumeFacts],
) -> VolumeFacts | None:
    own, free = candidates(storage, claim)
    if own is not None:
        return own if reaches(own.node_terms, labels) else None
    return next(
        (v for v in free if v.name not in chosen and reaches(v.node_terms, labels)),
        None,
    )


def _bound(claim: ClaimFacts, volume: VolumeFacts) -> Binding:
    owner = ClaimReference(claim.namespace, claim.name, claim.uid)
    return Binding(
        replace(claim, volume_name=volume.name, has_bind_completed=True),
        replace(volume, claim=owner, phase="Bound"),
    )


def provisioned(storage: StorageState, claim: ClaimFacts, node: NodeFacts) -> VolumeFacts | None:
    """The volume that the class's provisioner makes for a claim on a node; None if it cannot."""
    found = storage.classes.get(claim.storage_class)
    labels = dict(node.labels)
    if found is None or not may_provision(found) or not topology_allows(found, labels):
        return None
    if not has_capacity(storage, found, claim, labels):
        return None
    driver = DRIVERS.get(found.provisioner, found.provisioner)
    name = f"pvc-{claim.uid or f'{claim.namespace}-{claim.name}'}"
    if name in storage.volumes:
        return None
    return VolumeFacts(
        name=name,
        storage_class=found.name,
        capacity_bytes=claim.requested_bytes or 0,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        attributes_class=claim.attributes_class,
        node_terms=_topology(storage, found, driver, node),
        csi=CsiSource(driver, name),
    )


def _topology(
    storage: StorageState, found: StorageClassFacts, driver: str, node: NodeFacts
) -> NodeTerms:
    """Where a new volume can be reached from: the node's own values of the topology keys.

    The keys are those that the driver names on the node, else those of the class.
    """
    labels = dict(node.labels)
    csi_node = storage.csi_nodes.get(node.name)
    keys: Sequence[str] = [
        key
        for each in (csi_node.drivers if csi_node else ())
        if each.name in (driver, found.provisioner)
        for key in each.topology_keys
    ] or sorted({key for term in found.allowed_topologies for key, _ in term})
    wanted = tuple(Requirement(key, "In", (labels[key],)) for key in keys if key in labels)
    return (NodeSelectorTerm(wanted),) if wanted else None


def topology_allows(found: StorageClassFacts, labels: Mapping[str, str]) -> bool:
    """Whether a class may make volumes for a node (MatchTopologySelectorTerms)."""
    if not found.allowed_topologies:
        return True
    return any(
        bool(term) and all(labels.get(key) in values for key, values in term)
        for term in found.allowed_topologies
    )


def has_capacity(
    storage: StorageState,
    found: StorageClassFacts,
    claim: ClaimFacts,
    labels: Mapping[str, str],
) -> bool:
    """Whether a driver that publishes its free storage has enough for a claim near a node."""
    if not counts_capacity(storage, found, claim):
        return True
    return any(
        each.selector is not None
        and each.limit_bytes is not None
        and each.limit_bytes >= (claim.requested_bytes or 0)
        and each.selector.matches(labels)
        for each in storage.capacities.get(found.name, ())
    )


def counts_capacity(storage: StorageState, found: StorageClassFacts, claim: ClaimFacts) -> bool:
    """Whether free storage is published, and the claim asks for any."""
    driver = storage.csi_drivers.get(found.provisioner)
    return claim.requested_bytes is not None and driver is not None and driver.tracks_capacity

"""Volumes and claims at one point of a journal, and the rules for volumes bound before the pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.csi_migration import translates_topology
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    CsiDriverFacts,
    CsiNodeFacts,
    NodeTerms,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.invariants.world import label_value, meets

CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"
# Prefixes of the topology labels: the deprecated ones, and those of today.
_BETA = "failure-domain.beta.kubernetes.io/"
_STABLE = "topology.kubernetes.io/"
_TOPOLOGY_LABELS = tuple(
    prefix + label for prefix in (_BETA, _STABLE) for label in ("zone", "region")
)


@dataclass(slots=True)
class Storage:
    """Claims by `namespace/name`, other objects by name.

    users: node name → uid → pod with volumes.
    """

    claims: dict[str, ClaimFacts] = field(default_factory=dict)
    volumes: dict[str, VolumeFacts] = field(default_factory=dict)
    classes: dict[str, StorageClassFacts] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNodeFacts] = field(default_factory=dict)
    csi_drivers: dict[str, CsiDriverFacts] = field(default_factory=dict)
    capacities: tuple[CapacityFacts, ...] = ()
    attachments: tuple[AttachmentFacts, ...] = ()
    users: dict[str, dict[str, PodFacts]] = field(default_factory=dict)

    def begin(self, facts: StorageFacts) -> None:
        """Set the storage of the cluster."""
        self.claims = {each.key: each for each in facts.claims}
        self.volumes = {each.name: each for each in facts.volumes}
        self.classes = {each.name: each for each in facts.classes}
        self.csi_nodes = {each.name: each for each in facts.csi_nodes}
        self.csi_drivers = {each.name: each for each in facts.csi_drivers}
        self.capacities, self.attachments = facts.capacities, facts.attachments

    def change(self, change: BoundClaims) -> None:
        """Apply the claims and volumes of a record."""
        self.claims.update((each.key, each) for each in change.claims)
        # Removals first: a volume that is in both fields of a record exists afterwards.
        for name in change.removed:
            self.volumes.pop(name, None)
        self.volumes.update((each.name, each) for each in change.volumes)

    def put(self, uid: str, node_name: str, facts: PodFacts) -> None:
        """Add a pod to a node."""
        if facts.volumes:
            self.users.setdefault(node_name, {})[uid] = facts

    def remove(self, uid: str, node_name: str) -> None:
        """Remove a pod from a node."""
        self.users.get(node_name, {}).pop(uid, None)

    def claims_of(self, pod: PodFacts) -> Iterator[tuple[Volume, str, ClaimFacts | None]]:
        """Yield (volume, key of its claim, the claim) of a pod's volumes that refer to claims."""
        for volume in pod.volumes:
            if volume.kind in (CLAIM, EPHEMERAL):
                key = f"{pod.namespace}/{dict(volume.source).get('claimName', '')}"
                yield volume, key, self.claims.get(key)

    def waits(self, claim: ClaimFacts) -> bool:
        """Whether a claim is bound together with the first pod that uses it."""
        storage_class = self.classes.get(claim.storage_class)
        return not claim.volume_name and storage_class is not None and storage_class.waits


def reaches(terms: NodeTerms, node: NodeFacts) -> bool:
    """Whether a node has the labels that a volume requires; upstream ignores the terms' fields."""
    labels = dict(node.labels)
    return terms is None or any(
        not term.error
        and bool(term.expressions or term.fields)
        and all(meets(labels.get(each.key), each) for each in term.expressions)
        for term in terms
    )


def unusable_claim(storage: Storage, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: each claim exists and is usable; the node can reach the volume of each bound one."""
    for volume, key, claim in storage.claims_of(pod):
        if claim is None:
            yield f"claim {key} is not there"
        elif claim.is_lost or claim.is_terminating:
            yield f"claim {key} is {'lost' if claim.is_lost else 'being deleted'}"
        elif is_of_another(volume, claim):
            yield f"claim {key} belongs to another object"
        elif claim.is_bound:
            yield from _unreached(storage, claim, node)
        elif not storage.waits(claim):
            yield f"claim {key} is not bound, and does not wait for a pod"


def is_of_another(volume: Volume, claim: ClaimFacts) -> bool:
    """Whether the claim of an ephemeral volume belongs to another object than its pod."""
    uid = dict(volume.source).get("podUID", "")
    return volume.kind == EPHEMERAL and claim.owner_uid != uid


def _unreached(storage: Storage, claim: ClaimFacts, node: NodeFacts) -> Iterator[str]:
    volume = storage.volumes.get(claim.volume_name)
    if volume is None:
        yield f"volume {claim.volume_name} of claim {claim.key} is not there"
        return
    csi_node = storage.csi_nodes.get(node.name)
    is_migrated = csi_node is not None and translates_topology(volume.in_tree, csi_node.migrated)
    if not reaches(volume.migrated_terms if is_migrated else volume.node_terms, node):
        yield f"the node does not reach volume {volume.name} of claim {claim.key}"


def another_zone(storage: Storage, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: if a node has zone or region labels, they are among those that the volume's labels list.

    For a claim of another type than that, `unusable_claim` compares the volume's node terms.
    """
    for volume, key, claim in storage.claims_of(pod):
        if volume.kind != CLAIM:
            continue
        if claim is None or not (claim.volume_name or storage.waits(claim)):
            yield f"claim {key} has no volume"
        elif claim.volume_name:
            bound = storage.volumes.get(claim.volume_name)
            if bound is None:
                yield f"volume {claim.volume_name} of claim {key} is not there"
            elif any(label_value(node, label) is not None for label in _TOPOLOGY_LABELS):
                yield from _zone_mismatches(bound, node)


def _zone_mismatches(volume: VolumeFacts, node: NodeFacts) -> Iterator[str]:
    for label, values in volume.labels:
        wanted = [each.strip() for each in values.split("__")]
        if label not in _TOPOLOGY_LABELS or not all(wanted):
            continue
        has = label_value(node, label)
        if has is None and label.startswith(_BETA):
            has = label_value(node, label.replace(_BETA, _STABLE))
        if has not in wanted:
            yield f"volume {volume.name} is in {label} {values}, the node is not"

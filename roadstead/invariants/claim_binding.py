"""Claims of volumes and devices that wait for a pod: they are bound in the commit of the pod.

A commit writes its binds first, then records of the claims that they bound (`BoundClaims`). So the
rules for volumes and devices are checked after the last record of the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.csi_migration import CSI_DRIVER_OF
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.storage import (
    NO_PROVISIONER,
    ClaimFacts,
    ClaimReference,
    StorageClassFacts,
    VolumeFacts,
)
from roadstead.invariants.devices import Devices, is_of_devices
from roadstead.invariants.storage import Storage, another_zone, reaches, unusable_claim
from roadstead.invariants.volume_limits import too_many_volumes
from roadstead.invariants.world import selects
from roadstead.journal.records import JournalRecord

StorageRule = Callable[[Storage, PodFacts, NodeFacts], Iterator[str]]

STORAGE_RULES: tuple[tuple[str, str, StorageRule], ...] = (
    ("I2", "VolumeBinding", unusable_claim),
    ("I1", "NodeVolumeLimits", too_many_volumes),
    ("I2", "VolumeZone", another_zone),
)
"""As `checker.RULES`, on the storage before the pod's own claims were bound."""

Bind = tuple[JournalRecord, NodeFacts, tuple[str, ...] | None]
"""(record, node, filters of the pod's profile; None for all)."""

RecordViolation = tuple[JournalRecord, str, str]
"""(record, invariant, text)."""


@dataclass(slots=True)
class ClaimBinding:
    """Collect the records of one commit, and check them when it is complete.

    bound: number of claims that were bound with their pods. _binds: the binds of the commit that is
    being collected, of pods with claims. _changes: its records of bound claims. _ended: records of
    pods that were deleted or evicted; the records of their claims, which end or are freed, may
    still follow.
    """

    storage: Storage = field(default_factory=Storage)
    devices: Devices = field(default_factory=Devices)
    _binds: list[Bind] = field(default_factory=list)
    _changes: list[JournalRecord] = field(default_factory=list)
    _ended: list[JournalRecord] = field(default_factory=list)
    bound: int = 0

    def bind(
        self, record: JournalRecord, node: NodeFacts, filters: tuple[str, ...] | None
    ) -> Iterator[RecordViolation]:
        """Add a bind; if it begins another commit, yield the violations of the one before."""
        if self._changes:
            yield from self.flush()
        facts = record.facts
        if facts is not None and facts.may_bind_claims:
            self._binds.append((record, node, filters))

    def change(self, record: JournalRecord) -> Iterator[RecordViolation]:
        """Add a record of bound claims; one of a snapshot (lsn 0) is applied without a check."""
        if record.lsn:
            self._changes.append(record)
        else:
            self.storage.change(_claims_in(record))
            # `change` is a generator, which applies the change only when it is iterated; what it
            # finds is not reported.
            for _ in self.devices.change(_claims_in(record)):
                pass
        yield from ()

    def end(self, record: JournalRecord) -> None:
        """Add a pod that was deleted or evicted; the records of its claims follow."""
        if record.lsn:
            self._ended.append(record)

    def check_ended(self) -> Iterator[RecordViolation]:
        """Check the claims of pods that ended, after the last record of these claims."""
        if not self._ended:
            return
        yield from self.flush()
        ended, self._ended = self._ended, []
        for record in ended:
            for text in self.devices.claims_left_by(record.uid):
                yield record, "I5", text

    def flush(self) -> Iterator[RecordViolation]:
        """Check the commit, after its last record."""
        binds, changes = self._binds, self._changes
        self._binds, self._changes = [], []
        nodes = _nodes_of_claims(binds) if changes else {}
        # Claims of devices are changed first: the pods of the commit are checked against the
        # allocations that it contains.
        for change in [each for each in changes if is_of_devices(_claims_in(each))]:
            changes.remove(change)
            yield from self._change_devices(change, nodes)
        for record, node, filters in binds:
            assert record.facts is not None
            for invariant, plugin, rule in STORAGE_RULES:
                if filters is None or plugin in filters:
                    for text in rule(self.storage, record.facts, node):
                        yield record, invariant, text
            if filters is None or "VolumeBinding" in filters:
                yield from self._bind_claims(record, node, changes)
            if filters is None or "DynamicResources" in filters:
                for text in self.devices.pod_errors(record.facts, record.uid, node):
                    yield record, "I2", text
            # So the pod counts in the volume limits for the other pods of the commit.
            self.storage.put(record.uid, record.node_name, record.facts)
        for change in changes:
            keys = ", ".join(each.key for each in _claims_in(change).claims)
            yield change, "I2", f"claim {keys} is bound, and no pod of the commit waited for it"
            self.storage.change(_claims_in(change))

    def _change_devices(
        self, change: JournalRecord, nodes: Mapping[str, NodeFacts]
    ) -> Iterator[RecordViolation]:
        """Check and apply a change of claims. nodes: as `Devices.claim_errors` needs them."""
        claims = _claims_in(change).device_claims
        before = [self.devices.claims.get(each.key) for each in claims]
        for text in self.devices.change(_claims_in(change)):
            yield change, "I1", text
        for claim_before, claim in zip(before, claims, strict=True):
            for text in self.devices.claim_errors(claim_before, claim, nodes):
                yield change, "I2", text

    def _bind_claims(
        self, record: JournalRecord, node: NodeFacts, changes: list[JournalRecord]
    ) -> Iterator[RecordViolation]:
        """Check the changes of a pod's own claims, apply them, and remove them from `changes`."""
        assert record.facts is not None
        waiting = {
            key: claim
            for _, key, claim in self.storage.claims_of(record.facts)
            if claim is not None and self.storage.waits(claim)
        }
        for key, claim in waiting.items():
            of_claim = [each for each in changes if key in [c.key for c in _claims_in(each).claims]]
            if not of_claim:
                yield record, "I2", f"claim {key} was not bound with the pod"
            for each in of_claim:
                for text in binding_errors(self.storage, claim, _claims_in(each), node):
                    yield each, "I2", text
                self.storage.change(_claims_in(each))
                changes.remove(each)
                self.bound += 1


def _nodes_of_claims(binds: Iterable[Bind]) -> dict[str, NodeFacts]:
    """Return the nodes of a commit's pods, by the keys of their claims of devices, and by UID."""
    nodes: dict[str, NodeFacts] = {}
    for record, node, _ in binds:
        assert record.facts is not None
        nodes[record.uid] = node
        for each in record.facts.device_claims:
            # If several pods share a claim, it was allocated for the first of them.
            name = each.claim_name or each.generated
            nodes.setdefault(f"{record.facts.namespace}/{name}", node)
    return nodes


def _claims_in(record: JournalRecord) -> BoundClaims:
    assert isinstance(record.subject, BoundClaims), f"record {record.lsn} has no claims"
    return record.subject


def binding_errors(
    storage: Storage, claim: ClaimFacts, change: BoundClaims, node: NodeFacts
) -> Iterator[str]:
    """Yield why an unbound claim must not be bound to the volume of a change on a node.

    change.removed: names of removed volumes; binding a claim removes none.
    """
    if len(change.claims) != 1 or len(change.volumes) != 1 or change.removed:
        yield f"claim {claim.key}: not one claim with one volume"
        return
    (after,), (volume,) = change.claims, change.volumes
    if after != replace(claim, volume_name=volume.name, has_bind_completed=True):
        yield f"claim {claim.key} is not as it was before, but for its volume {volume.name}"
    if volume.claim != ClaimReference(claim.namespace, claim.name, claim.uid):
        yield f"volume {volume.name} does not name claim {claim.key}"
    for other in storage.claims.values():
        if other.volume_name == volume.name and other.key != claim.key:
            yield f"volume {volume.name} is that of claim {other.key}"
    if claim.selected_node not in (None, node.name):
        yield f"claim {claim.key} is to be bound on node {claim.selected_node}"
    if not reaches(volume.node_terms, node):
        yield f"the node does not reach volume {volume.name} of claim {claim.key}"
    for rule in (_mismatches, _unavailable, _not_provisionable):
        yield from rule(storage, claim, volume, node)


def _mismatches(
    storage: Storage, claim: ClaimFacts, volume: VolumeFacts, node: NodeFacts
) -> Iterator[str]:
    """Yield how the volume differs from the claim's request."""
    requested_bytes = claim.requested_bytes or 0
    for what, has, wanted in (
        ("class", volume.storage_class, claim.storage_class),
        ("mode", volume.volume_mode, claim.volume_mode),
        ("attributes class", volume.attributes_class, claim.attributes_class),
    ):
        if has != wanted:
            yield f"volume {volume.name} has {what} {has}, claim {claim.key} wants {wanted}"
    if volume.capacity_bytes < requested_bytes:
        yield f"volume {volume.name} has {volume.capacity_bytes} of {requested_bytes} bytes"


def _unavailable(
    storage: Storage, claim: ClaimFacts, volume: VolumeFacts, node: NodeFacts
) -> Iterator[str]:
    """Yield why an existing volume was neither free nor reserved for the claim."""
    before = storage.volumes.get(volume.name)
    # A volume that did not exist was provisioned; `_not_provisionable` checks those.
    if before is None:
        return
    if replace(before, claim=volume.claim, phase=volume.phase) != volume:
        yield f"volume {volume.name} is not as it was before, but for its claim"
    if before.is_terminating:
        yield f"volume {volume.name} is being deleted"
    owner = before.claim
    if owner is not None:
        # A reference without a UID reserves the volume for any claim of this name.
        is_own = (owner.namespace, owner.name) == (claim.namespace, claim.name)
        if not is_own or owner.uid not in ("", claim.uid):
            yield f"volume {volume.name} is that of claim {owner.namespace}/{owner.name}"
        return
    if before.phase != "Available":
        yield f"volume {volume.name} is {before.phase or 'not available'}"
    if not set(claim.access_modes) <= set(before.access_modes):
        yield f"volume {volume.name} lacks an access mode of claim {claim.key}"
    if claim.selected_node is not None:
        yield f"claim {claim.key} waits for a volume to be made"
    if claim.selector is not None and not selects(claim.selector, dict(before.labels)):
        yield f"volume {volume.name} is not one that claim {claim.key} selects"


def _not_provisionable(
    storage: Storage, claim: ClaimFacts, volume: VolumeFacts, node: NodeFacts
) -> Iterator[str]:
    """Yield why a new volume could not have been made by the provisioner of the claim's class."""
    if volume.name in storage.volumes:
        return
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        yield f"volume {volume.name} is not there, and its class makes none"
        return
    if tuple(volume.access_modes) != tuple(claim.access_modes):
        yield f"volume {volume.name} has not the access modes of claim {claim.key}"
    provisioner = storage_class.provisioner
    # A migrated in-tree provisioner leaves the work to the CSI driver that replaces it.
    if volume.csi is None or volume.csi.driver not in (provisioner, CSI_DRIVER_OF.get(provisioner)):
        yield f"volume {volume.name} was not made by {provisioner}"
    labels = dict(node.labels)
    terms = storage_class.allowed_topologies
    # As upstream, a term without requirements matches no node.
    if terms and not any(
        bool(term) and all(labels.get(key) in values for key, values in term) for term in terms
    ):
        yield f"class {storage_class.name} makes no volumes for the node"
    if not _has_free_storage(storage, storage_class, claim, labels):
        name = storage_class.name
        yield f"no storage of class {name} has room for claim {claim.key} near the node"


def _has_free_storage(
    storage: Storage, storage_class: StorageClassFacts, claim: ClaimFacts, labels: dict[str, str]
) -> bool:
    driver = storage.csi_drivers.get(storage_class.provisioner)
    if driver is None or not driver.tracks_capacity or claim.requested_bytes is None:
        return True
    return any(
        each.storage_class == storage_class.name
        and each.limit_bytes is not None
        and each.limit_bytes >= claim.requested_bytes
        and selects(each.selector, labels)
        for each in storage.capacities
    )

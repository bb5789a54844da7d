"""StorageState: the storage objects of a cluster by name, and their changes.

There is one per process. A change holds objects in their new state, so applying it is idempotent;
`version` grows with each change of claims and volumes. These change when pods are placed (see
`assumed_claims`); the other objects never change. Claims of devices are bound and released at the
same times, so changes contain them, too; `devices` has their state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.devices.ahead import DevicesAhead
from roadstead.devices.state import DeviceState
from roadstead.facts.csi_migration import translates_topology
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.protocol.fast_init import fast_init
from roadstead.storage.volume_index import VolumeIndex

MAX_CHANGES_REMEMBERED = 4096
"""Number of changes in the log of `claims_changed_since`."""


@fast_init
@dataclass(frozen=True, slots=True)
class StorageChange:
    """Claims and volumes in their new state. removed: names of deleted volumes.

    device_claims: claims of devices in their new state. removed_claims: keys of deleted ones.
    """

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()
    device_claims: tuple[DeviceClaimFacts, ...] = ()
    removed_claims: tuple[str, ...] = ()

    @property
    def changes_only_devices(self) -> bool:
        """Whether only claims of devices change, and none is deleted."""
        return not (self.claims or self.volumes or self.removed or self.removed_claims)


class StorageState:
    """Storage objects: claims by `namespace/name`, all others by name.

    ahead: allocations of devices to pods that this scheduler has placed, which the cache has not
    assumed yet. capacities: by storage class. attachments: by node name.
    """

    def __init__(
        self, facts: StorageFacts | None = None, devices: DeviceState | None = None
    ) -> None:
        facts = facts or StorageFacts()
        self.devices = devices or DeviceState()
        self.ahead = DevicesAhead(self.devices)
        self.version = 0
        self.claims = {each.key: each for each in facts.claims}
        self.volumes = {each.name: each for each in facts.volumes}
        self.classes = {each.name: each for each in facts.classes}
        self.csi_nodes = {each.name: each for each in facts.csi_nodes}
        self.csi_drivers = {each.name: each for each in facts.csi_drivers}
        self.migrated_plugins = {p for each in facts.csi_nodes for p in each.migrated}
        self._migrated_nodes: dict[str, frozenset[str]] = {}
        self.capacities: dict[str, list[CapacityFacts]] = {}
        for capacity in facts.capacities:
            self.capacities.setdefault(capacity.storage_class, []).append(capacity)
        self.attachments: dict[str, list[AttachmentFacts]] = {}
        for attachment in facts.attachments:
            self.attachments.setdefault(attachment.node_name, []).append(attachment)
        self.index = VolumeIndex(facts.volumes)
        # (version, keys of the claims that changed) of the last changes.
        self._changed: deque[tuple[int, tuple[str, ...]]] = deque(maxlen=MAX_CHANGES_REMEMBERED)

    def migrated_nodes(self, plugin: str) -> frozenset[str]:
        """Return nodes that translate the affinity of an in-tree plugin's volumes to CSI."""
        migrated = self._migrated_nodes.get(plugin)
        if migrated is None:
            nodes = self.csi_nodes.values()
            names = (each.name for each in nodes if translates_topology(plugin, each.migrated))
            migrated = self._migrated_nodes[plugin] = frozenset(names)
        return migrated

    def claims_changed_since(self, version: int) -> set[str] | None:
        """Return the keys of claims that changed after a version; None if the log is too short."""
        if self._changed and self._changed[0][0] > version + 1:
            return None
        return {key for changed_at, keys in self._changed if changed_at > version for key in keys}

    def catch_up(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes in order; undo allocations that were made ahead and are not among them."""
        accepted = 0
        for change in changes:
            # `accept` applies a change that `ahead` has made already, and returns whether it did.
            # Most changes repeat allocations of `ahead`. To undo these and apply them again would
            # count their nodes as changed, and every class would have to compare them.
            if not (change.changes_only_devices and self.ahead.accept(change.device_claims)):
                break
            accepted += 1
        self.ahead.undo()
        for change in changes[accepted:]:
            self.apply(change)

    def apply(self, change: StorageChange) -> StorageChange:
        """Apply a change; return the change that undoes it. First `ahead` is undone."""
        self.ahead.undo()
        devices_before, created_claims = self.devices.apply(
            change.device_claims, change.removed_claims
        )
        if not (change.claims or change.volumes or change.removed):
            return StorageChange(device_claims=devices_before, removed_claims=created_claims)
        claims = tuple(self.claims[each.key] for each in change.claims if each.key in self.claims)
        assert len(claims) == len(change.claims), "a claim that does not exist cannot change"
        names = (*(each.name for each in change.volumes), *change.removed)
        volumes = tuple(self.volumes[name] for name in names if name in self.volumes)
        created = tuple(each.name for each in change.volumes if each.name not in self.volumes)
        for claim in change.claims:
            self.claims[claim.key] = claim
        for name in change.removed:
            self._drop(name)
        for volume in change.volumes:
            self._drop(volume.name)
            self.volumes[volume.name] = volume
            self.index.add(volume)
        self.version += 1
        self._changed.append((self.version, tuple(each.key for each in change.claims)))
        # To undo the change is to remove the objects that it created.
        return StorageChange(
            claims,
            volumes,
            removed=created,
            device_claims=devices_before,
            removed_claims=created_claims,
        )

    def _drop(self, name: str) -> None:
        volume = self.volumes.pop(name, None)
        if volume is not None:
            self.index.remove(volume)

    def validate(self) -> None:
        """Assert that no two claims name one volume, and that the free-volume index is current."""
        self.devices.validate()
        owner: dict[str, str] = {}
        for claim in self.claims.values():
            if claim.volume_name:
                other = owner.setdefault(claim.volume_name, claim.key)
                assert other == claim.key, f"{claim.volume_name} is {other}'s and {claim.key}'s"
        rebuilt = VolumeIndex(self.volumes.values())
        for name in {each.storage_class for each in self.volumes.values()}:
            assert self.index.free(name, 0) == rebuilt.free(name, 0), f"class {name} is stale"

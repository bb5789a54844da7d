"""StorageState: the storage objects of a cluster, looked up by name, and their changes.

One per process. A change holds objects as they are after it, so that applying one twice is the same
as once; `version` grows with each. Claims and volumes change when pods are placed (see `ledger`);
the other objects stay as they were listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    NodeTerms,
    StorageFacts,
    VolumeFacts,
)

MAX_CHANGES_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class StorageChange:
    """Claims and volumes as they are from now on; removed: names of volumes that are gone."""

    claims: tuple[ClaimFacts, ...] = ()
    volumes: tuple[VolumeFacts, ...] = ()
    removed: tuple[str, ...] = ()


class StorageState:
    """Claims by `namespace/name`, everything else by name."""

    def __init__(self, facts: StorageFacts | None = None) -> None:
        facts = facts or StorageFacts()
        self.version = 0
        self.claims = {each.key: each for each in facts.claims}
        self.volumes = {each.name: each for each in facts.volumes}
        self.classes = {each.name: each for each in facts.classes}
        self.csi_nodes = {each.name: each for each in facts.csi_nodes}
        self.csi_drivers = {each.name: each for each in facts.csi_drivers}
        self.migrated_plugins = {p for each in facts.csi_nodes for p in each.migrated}
        self.capacities: dict[str, list[CapacityFacts]] = {}
        for capacity in facts.capacities:
            self.capacities.setdefault(capacity.storage_class, []).append(capacity)
        self.attachments: dict[str, list[AttachmentFacts]] = {}
        for attachment in facts.attachments:
            self.attachments.setdefault(attachment.node_name, []).append(attachment)
        self._of_class: dict[str, dict[str, VolumeFacts]] = {}
        for volume in facts.volumes:
            self._of_class.setdefault(volume.storage_class, {})[volume.name] = volume
        self._sorted: dict[str, tuple[VolumeFacts, ...]] = {}
        self._only_label: dict[str, tuple[str, str] | None] = {}
        self._changed: deque[tuple[int, tuple[str, ...]]] = deque(maxlen=MAX_CHANGES_REMEMBERED)

    def claims_changed_since(self, version: int) -> set[str] | None:
        """Keys of claims that changed after a version; None where that is not known any more."""
        if self._changed and self._changed[0][0] > version + 1:
            return None
        return {key for at, keys in self._changed if at > version for key in keys}

    def volumes_of_class(self, name: str) -> tuple[VolumeFacts, ...]:
        """The volumes of a class, smallest first, equal ones by name.

        Upstream's order among equal ones is that of a Go map.
        """
        found = self._sorted.get(name)
        if found is None:
            volumes: Sequence[VolumeFacts] = tuple(self._of_class.get(name, {}).values())
            found = tuple(sorted(volumes, key=lambda each: (each.capacity_bytes, each.name)))
            self._sorted[name] = found
        return found

    def only_label(self, volume: VolumeFacts) -> tuple[str, str] | None:
        """(key, value) where a volume is reached from nodes with one value of one label."""
        try:
            return self._only_label[volume.name]
        except KeyError:
            found = self._only_label[volume.name] = _only_label(volume.node_terms)
            return found

    def apply(self, change: StorageChange) -> StorageChange:
        """Makes a change; returns the one that undoes it."""
        claims = tuple(self.claims[each.key] for each in change.claims if each.key in self.claims)
        assert len(claims) == len(change.claims), "a claim that is not there cannot change"
        names = (*(each.name for each in change.volumes), *change.removed)
        volumes = tuple(self.volumes[name] for name in names if name in self.volumes)
        made = tuple(each.name for each in change.volumes if each.name not in self.volumes)
        for claim in change.claims:
            self.claims[claim.key] = claim
        for name in change.removed:
            self._drop(name)
        for volume in change.volumes:
            self._drop(volume.name)
            self.volumes[volume.name] = volume
            self._of_class.setdefault(volume.storage_class, {})[volume.name] = volume
            self._sorted.pop(volume.storage_class, None)
        self.version += 1
        self._changed.append((self.version, tuple(each.key for each in change.claims)))
        return StorageChange(claims, volumes, made)

    def _drop(self, name: str) -> None:
        self._only_label.pop(name, None)
        known = self.volumes.pop(name, None)
        if known is not None:
            self._of_class[known.storage_class].pop(name)
            self._sorted.pop(known.storage_class, None)

    def validate(self) -> None:
        """Asserts that no volume is two claims' and that bound claims and volumes agree."""
        owner: dict[str, str] = {}
        for claim in self.claims.values():
            if claim.volume_name:
                other = owner.setdefault(claim.volume_name, claim.key)
                assert other == claim.key, f"{claim.volume_name} is {other}'s and {claim.key}'s"
        for name, volumes in self._of_class.items():
            assert all(self.volumes[n] is v for n, v in volumes.items()), f"class {name} is stale"
        assert sum(map(len, self._of_class.values())) == len(self.volumes), "a volume has no class"


def _only_label(terms: NodeTerms) -> tuple[str, str] | None:
    """(key, value) of terms that come to one label with one value."""
    if terms is None or len(terms) != 1:
        return None
    term = terms[0]
    if term.error or term.fields or len(term.expressions) != 1:
        return None
    only = term.expressions[0]
    return (only.key, only.values[0]) if only.operator == "In" and len(only.values) == 1 else None

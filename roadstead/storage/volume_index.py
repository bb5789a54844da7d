"""VolumeIndex: free volumes of each class by size, and volumes by the claim that they name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from roadstead.facts.storage import ClaimFacts, NodeTerms, VolumeFacts

_Key = tuple[int, str]
"""Size in bytes, and name of a volume."""

Label = tuple[str, str]
"""Key and value."""


class VolumeIndex:
    """An index of volumes. A volume is free if it is Available and names no claim.

    _free: class → (size, name), sorted. _claimed: (class, namespace and name of a claim) → volumes
    by name. _only_label: cached results by volume.
    """

    def __init__(self, volumes: Iterable[VolumeFacts]) -> None:
        self._free: dict[str, list[_Key]] = {}
        self._claimed: dict[tuple[str, str, str], dict[str, VolumeFacts]] = {}
        self._only_label: dict[str, Label | None] = {}
        by_name = {each.name: each for each in volumes}
        for volume in by_name.values():
            if _is_free(volume):
                self._free.setdefault(volume.storage_class, []).append(_key(volume))
            self._add_claimed(volume)
        for keys in self._free.values():
            keys.sort()

    def add(self, volume: VolumeFacts) -> None:
        """Add a volume whose name is not in the index."""
        if _is_free(volume):
            insort(self._free.setdefault(volume.storage_class, []), _key(volume))
        self._add_claimed(volume)

    def remove(self, volume: VolumeFacts) -> None:
        """Remove a volume, which must be in the state in which it was added."""
        self._only_label.pop(volume.name, None)
        if _is_free(volume):
            keys = self._free[volume.storage_class]
            del keys[bisect_left(keys, _key(volume))]
        if volume.claim is not None:
            key = (volume.storage_class, volume.claim.namespace, volume.claim.name)
            volumes = self._claimed[key]
            del volumes[volume.name]
            if not volumes:
                del self._claimed[key]

    def _add_claimed(self, volume: VolumeFacts) -> None:
        if volume.claim is not None:
            key = (volume.storage_class, volume.claim.namespace, volume.claim.name)
            self._claimed.setdefault(key, {})[volume.name] = volume

    def free(self, storage_class: str, min_bytes: int) -> Sequence[str]:
        """Return the names of a class's free volumes of at least this size, smallest first.

        Volumes of one size are sorted by name; upstream's order among them is that of a Go map.
        """
        keys = self._free.get(storage_class, [])
        return [name for _, name in keys[bisect_left(keys, (min_bytes, "")) :]]

    def volumes_naming(self, claim: ClaimFacts) -> list[VolumeFacts]:
        """Return the volumes of a claim's class that name it, with any UID, smallest first."""
        key = (claim.storage_class, claim.namespace, claim.name)
        return sorted(self._claimed.get(key, {}).values(), key=_key)

    def only_label(self, volume: VolumeFacts) -> Label | None:
        """Return (key, value) if all that a volume requires of nodes is one label value."""
        try:
            return self._only_label[volume.name]
        except KeyError:
            label = self._only_label[volume.name] = _only_label(volume.node_terms)
            return label


def _key(volume: VolumeFacts) -> _Key:
    return volume.capacity_bytes, volume.name


def _is_free(volume: VolumeFacts) -> bool:
    return volume.claim is None and volume.phase == "Available" and not volume.is_terminating


def _only_label(terms: NodeTerms) -> Label | None:
    if terms is None or len(terms) != 1:
        return None
    term = terms[0]
    if term.error or term.fields or len(term.expressions) != 1:
        return None
    (label,) = term.expressions
    if label.operator != "In" or len(label.values) != 1:
        return None
    return label.key, label.values[0]

"""DevicesAhead: claims of pods that a batch has placed, allocated before the cache does it.

A scheduler decides the next pods of its batch on them. They are undone before any change of the
cache is applied: the cache allocates the same devices when it assumes the pods, or refuses them.
"""

from __future__ import annotations

from roadstead.devices.assumed import ClaimChange, allocated_on, names_of
from roadstead.devices.claims import PodClaimError
from roadstead.devices.errors import AllocationError
from roadstead.devices.state import DeviceState
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts


class DevicesAhead:
    """Allocations of a scheduler that the cache has not made yet."""

    def __init__(self, devices: DeviceState) -> None:
        self._devices = devices
        self._undos: list[ClaimChange] = []
        self._keys: set[str] = set()

    def reserve(self, pod: PodFacts, node: NodeFacts) -> bool:
        """Allocate a placed pod's claims; return whether that was possible."""
        try:
            found = allocated_on(self._devices, pod, node)
        except (PodClaimError, AllocationError):
            return False
        if found is None:
            return False
        self._undos.append(self._devices.apply(found))
        self._keys.update(each.key for each in found)
        return True

    def concerns(self, pod: PodFacts) -> bool:
        """Whether a pod names a claim that is allocated here: it is in flight until the cache's."""
        return any(f"{pod.namespace}/{name}" in self._keys for name in names_of(pod))

    def undo(self) -> None:
        """Undo all allocations."""
        for claims, made in reversed(self._undos):
            self._devices.apply(claims, made)
        self._undos.clear()
        self._keys.clear()

"""DevicesAhead: claims of pods that a batch has placed, allocated before the cache does it.

    reserve ──► ALLOCATED AHEAD ── the cache allocates the same ──► part of the state
                      └── undo, before any other change of an allocation ──► as before

The scheduler counts their devices as in use when it decides the next pods of its batch. The cache
allocates the same devices when it assumes the pods, or refuses the pods.
"""

from __future__ import annotations

from collections import deque

from roadstead.devices.assumed import ClaimChange, DeviceClaims, allocated_on, names_of
from roadstead.devices.claims import PodClaimError
from roadstead.devices.errors import AllocationError
from roadstead.devices.state import DeviceState
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts


class DevicesAhead:
    """Allocations of a scheduler that the cache has not made yet.

    _made: (claims in their new state, the change that undoes it) for each pod, in order.
    """

    def __init__(self, devices: DeviceState) -> None:
        self._devices = devices
        self._made: deque[tuple[DeviceClaims, ClaimChange]] = deque()
        self._keys: set[str] = set()

    def reserve(self, pod: PodFacts, node: NodeFacts) -> bool:
        """Allocate a placed pod's claims; return whether that was possible."""
        try:
            found = allocated_on(self._devices, pod, node)
        except (PodClaimError, AllocationError):
            return False
        if found is None:
            return False
        if found:
            self._made.append((found, self._devices.apply(found)))
            self._keys.update([each.key for each in found])
        return True

    def concerns(self, pod: PodFacts) -> bool:
        """Whether a pod names a claim that is allocated here, but not by the cache yet."""
        return any(f"{pod.namespace}/{name}" in self._keys for name in names_of(pod))

    def accept(self, claims: DeviceClaims) -> bool:
        """Apply a change of the cache, if that is possible without `undo`; return whether it was.

        It is if the change is the oldest allocation made here, or if it is of other claims, which
        stay allocated.
        """
        if self._made and claims == self._made[0][0]:
            made, _ = self._made.popleft()
            self._keys.difference_update([each.key for each in made])
            return True
        known = self._devices.claims
        for each in claims:
            before = known.get(each.key)
            if each.key in self._keys or before is None:
                return False
            if each.allocation is None or before.allocation != each.allocation:
                return False
        self._devices.apply(claims)
        return True

    def undo(self) -> None:
        """Undo all allocations."""
        while self._made:
            _, undo = self._made.pop()
            self._devices.apply(*undo)
        self._keys.clear()

"""The devices that a search has chosen, and their effect on constraints, counters and capacities.

Upstream: allocateDevice in allocator_experimental.go. Where it refuses a device without undoing all
that it recorded, so does this: later results depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roadstead.devices import capacity
from roadstead.devices.capacity import Consumed, Quantities
from roadstead.devices.constraints import Constraint, constraint_of
from roadstead.devices.counters import SharedCounters
from roadstead.devices.errors import AllocationError, AllocatorPanic
from roadstead.devices.pools import PoolDevice
from roadstead.facts.taints import tolerated

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.plans import Choice, ClaimPlan, Plan
    from roadstead.devices.pools import DeviceId

Place = tuple[int, int]
"""Index of a pool in the node's pools, and position of a device in it."""

NO_PLACE: Final = (-1, -1)
"""Before all places; of a device that was not chosen among candidates."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device chosen for a request. consumed: of its capacities; None if it is not shared."""

    choice: Choice
    device: PoolDevice
    consumed: Quantities | None
    place: Place = NO_PLACE


class ChosenDevices:
    """The chosen devices of each claim. claim: always the index of a claim in the plan."""

    def __init__(self, plan: Plan, in_use: DevicesInUse, gates: DeviceGates) -> None:
        self._plan = plan
        self._in_use = in_use
        self._gates = gates
        self._constraints = [_constraints_of(claim) for claim in plan.claims]
        self._counters = SharedCounters(in_use)
        # By device: the claims that have chosen it, and the capacities consumed if it is shared.
        self._claims_of: dict[DeviceId, set[int]] = {}
        self._consumed: dict[DeviceId, Consumed] = {}
        self.chosen: list[list[Chosen]] = [[] for _ in plan.claims]

    def is_chosen(self, device: PoolDevice, choice: Choice, claim: int) -> bool:
        """Whether this search has chosen a device; under admin access, only for the same claim."""
        claims = self._claims_of.get(device.id)
        if not claims:
            return False
        return not choice.facts.has_admin_access or claim in claims

    def has_capacity(self, choice: Choice, device: PoolDevice) -> bool:
        """Whether the device's capacities suffice for the request.

        Besides what allocations in use and earlier requests of this search consume of them.
        """
        return capacity.fits(
            device.facts,
            choice.facts.capacity,
            self._in_use.consumed(device.id),
            self._consumed.get(device.id) or {},
        )

    def choose(
        self,
        claim: int,
        number: int,
        choice: Choice,
        device: PoolDevice,
        *,
        is_required: bool = False,
        place: Place = NO_PLACE,
    ) -> Chosen | None:
        """Choose a device if counters, taints and constraints allow it.

        number: how many devices the request has already. is_required: the request wants all
        devices: this one was not checked to be free, and none can replace it. place: where it was
        found.

        As upstream, the counters stay consumed if taints or constraints refuse the device.

        Raises:
            AllocationError: a constraint is violated although the device is required.
        """
        if is_required and self._is_occupied(device, choice, claim):
            return None
        if device.facts.consumes and not self._consume_counters(device):
            return None
        if self._gates.taints and not all(
            tolerated(taint, choice.facts.tolerations) for taint in device.facts.taints
        ):
            return None
        if not self._add_to_constraints(claim, choice, device):
            if is_required:
                name = self._plan.claims[claim].facts.key
                raise AllocationError(
                    f"claim {name}, request {choice.facts.name}: cannot add device "
                    f"{'/'.join(device.id)} because a claim constraint would not be satisfied"
                )
            return None
        return self._record(claim, number, Chosen(choice, device, None, place))

    def _consume_counters(self, device: PoolDevice) -> bool:
        return self._gates.partitionable and self._counters.consume(device)

    def _is_occupied(self, device: PoolDevice, choice: Choice, claim: int) -> bool:
        if choice.facts.has_admin_access:
            return not self._is_shared(device) and self.is_chosen(device, choice, claim)
        return device.id in self._in_use or self.is_chosen(device, choice, claim)

    def _is_shared(self, device: PoolDevice) -> bool:
        return self._gates.consumable_capacity and device.facts.allows_several

    def _add_to_constraints(self, claim: int, choice: Choice, device: PoolDevice) -> bool:
        names = (choice.base_name, choice.alternative)
        added: list[Constraint] = []
        for constraint in self._constraints[claim]:
            if not constraint.add(*names, device):
                for each in added:
                    each.remove(*names, device)
                return False
            added.append(constraint)
        return True

    def _record(self, claim: int, number: int, chosen: Chosen) -> Chosen | None:
        """Record a chosen device; None if its capacity does not suffice.

        As upstream, the device then stays recorded in `_claims_of` and the constraints.
        """
        device, choice = chosen.device, chosen.choice
        is_shared = self._is_shared(device)
        if not is_shared:
            self._claims_of.setdefault(device.id, set()).add(claim)
        if self._gates.consumable_capacity:
            if not self.has_capacity(choice, _compared_by_upstream(device, number)):
                return None
            if is_shared:
                consumed = capacity.consumption(device.facts, choice.facts.capacity)
                self._consumed.setdefault(device.id, Consumed()).add(consumed)
                chosen = replace(chosen, consumed=consumed)
        self.chosen[claim].append(chosen)
        return chosen

    def undo(self, claim: int, chosen: Chosen) -> None:
        """Undo the choice of the last device of a claim."""
        device, choice = chosen.device, chosen.choice
        for constraint in self._constraints[claim]:
            constraint.remove(choice.base_name, choice.alternative, device)
        if device.id in self._claims_of:
            self._claims_of[device.id].discard(claim)
        if chosen.consumed is not None:
            self._consumed[device.id].subtract(chosen.consumed)
        elif self._gates.partitionable and device.facts.consumes:
            self._counters.give_back(device)
        self.chosen[claim].pop()


def _constraints_of(claim: ClaimPlan) -> list[Constraint]:
    constraints = map(constraint_of, claim.constraints)
    return [each for each in constraints if each is not None]


def _compared_by_upstream(device: PoolDevice, number: int) -> PoolDevice:
    """Return the device whose capacity upstream compares, which is not always the chosen one.

    Upstream takes the number of devices that the request has for an index into the slice's devices.
    """
    devices = device.slice.devices
    if number >= len(devices):
        text = f"runtime error: index out of range [{number}] with length {len(devices)}"
        raise AllocatorPanic(text)
    facts = devices[number]
    return PoolDevice((*device.id[:2], facts.name), facts, device.slice)

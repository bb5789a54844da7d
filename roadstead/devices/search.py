"""The search for devices: depth first over claims, requests, alternatives and devices.

Claims are allocated in the pod's order, requests in the claim's, and the devices of a request one
after another; the first full solution is the answer. Upstream: allocateOne and allocateDevice in
allocator_experimental.go, whose peculiarities are kept where results depend on them.

Upstream recurses. Here every level of the recursion is a generator: it yields the next position and
is sent the outcome of the search from there. So no number of claims can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from roadstead.devices.bits import positions_of
from roadstead.devices.chosen_devices import NO_PLACE, Chosen, ChosenDevices, Place
from roadstead.devices.errors import AllocationAborted, AllocationError
from roadstead.devices.plans import RESULTS_MAX
from roadstead.devices.shared_capacity import lacks_capacity

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.plans import Choice, Plan
    from roadstead.devices.pools import Pool, PoolDevice
    from roadstead.devices.views import VisiblePools


class Outcome(Enum):
    """Outcome of the search from a position.

    DEAD_END: no devices. TOO_MANY: no devices, and only because a claim would get too many.
    """

    DONE = 0
    DEAD_END = 1
    TOO_MANY = 2


@dataclass(frozen=True, slots=True)
class Position:
    """The next device to find, by index: of the claim, request, choice, and device in the choice.

    in_choice: the alternative of the request is decided; otherwise all are tried.
    """

    claim: int
    request: int = 0
    choice: int = 0
    device: int = 0
    in_choice: bool = False


_Level = Generator[Position, Outcome, Outcome]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Number of devices that a choice wants. devices: those themselves if it wants all matches."""

    number: int
    devices: tuple[PoolDevice, ...] = ()


class Search:
    """One search for the devices of a pod's claims on one node.

    view: the pools that the node sees. is_over: called before each step; returns whether the time
    is over.
    """

    def __init__(
        self,
        plan: Plan,
        view: VisiblePools,
        in_use: DevicesInUse,
        gates: DeviceGates,
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._view = view
        self._in_use = in_use
        self._gates = gates
        self._is_over = is_over
        # By index of claim, request and choice.
        self._wanted: dict[tuple[int, int, int], _Wanted] = {}
        self._devices = ChosenDevices(plan, in_use, gates)
        self.selected: dict[tuple[int, int], int] = {}
        """Index of the chosen alternative, by index of claim and request."""

    @property
    def chosen(self) -> list[list[Chosen]]:
        """The devices chosen so far, by claim."""
        return self._devices.chosen

    def run(self) -> bool:
        """Search; return whether all claims got their devices, which are in `chosen`.

        Raises:
            AllocationError: upstream's error for these claims on this node.
            AllocationAborted: the time was over.
        """
        for index in range(len(self._plan.claims)):
            self._count_wanted(index)
        if self._gates.consumable_capacity and lacks_capacity(self._plan, self._view, self._in_use):
            return False
        levels = [self._level(Position(0))]
        outcome: Outcome | None = None
        while levels:
            try:
                next_position = levels[-1].send(outcome)  # type: ignore[arg-type]
            except StopIteration as end:
                outcome = end.value
                levels.pop()
            else:
                outcome = None
                levels.append(self._level(next_position))
        if outcome is Outcome.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        return outcome is Outcome.DONE

    # --- before the search ---

    def _count_wanted(self, index: int) -> None:
        """Set how many devices each choice of a claim wants; raise the errors of the claim."""
        claim = self._plan.claims[index]
        least = 0
        for number, request in enumerate(claim.requests):
            if request.error:
                raise AllocationError(request.error)
            counts = []
            for choice_index, choice in enumerate(request.choices):
                if choice.error:
                    raise AllocationError(choice.error)
                wanted = _Wanted(choice.facts.count)
                if choice.is_all:
                    # As upstream, whose cache of selector results mixes up the first two
                    # alternatives: the second gets the results of the first.
                    is_mixed_up = choice_index == 1 and request.choices[0].is_all
                    matched = request.choices[0] if is_mixed_up else choice
                    devices = tuple(self._all_devices(index, choice, matched))
                    wanted = _Wanted(len(devices), devices)
                self._wanted[index, number, choice_index] = wanted
                counts.append(wanted.number)
            least += min(counts)
        if least > RESULTS_MAX:
            raise AllocationError(
                f"claim {claim.facts.key}: number of requested devices {least} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
        if claim.error:
            raise AllocationError(claim.error)

    def _all_devices(self, index: int, choice: Choice, matched: Choice) -> Iterator[PoolDevice]:
        """Yield all devices for a choice that wants all. matched: the choice with the selectors."""
        claim = self._plan.claims[index].facts
        where = f"claim {claim.key}, request {choice.facts.name}: asks for all devices"
        for pool in self._view.pools:
            if pool.is_incomplete:
                text = f"{where}, but resource pool {pool} is currently being updated"
                raise AllocationError(text)
            if pool.invalid:
                raise AllocationError(f"{where}, but resource pool {pool} is currently invalid")
            for position in positions_of(self._view.candidates(pool, matched)):
                if self._view.is_selectable(claim, matched, pool, position):
                    device = pool.devices[position]
                    if not self._gates.consumable_capacity or self._devices.has_capacity(
                        choice, device
                    ):
                        yield device

    # --- levels of the search ---

    def _level(self, at: Position) -> _Level:
        """Find the device of a position and of all later positions."""
        if self._is_over():
            raise AllocationAborted("filter operation aborted: context deadline exceeded")
        if at.claim >= len(self._plan.claims):
            return Outcome.DONE
        requests = self._plan.claims[at.claim].requests
        if at.request >= len(requests):
            outcome = yield Position(at.claim + 1)
            # Not TOO_MANY, which would end the search: other devices for this claim may leave the
            # next one more choice.
            return Outcome.DEAD_END if outcome is Outcome.TOO_MANY else outcome
        request = requests[at.request]
        if request.has_alternatives and not at.in_choice:
            return (yield from self._try_alternatives(at, len(request.choices)))
        choice = request.choices[at.choice]
        wanted = self._wanted[at.claim, at.request, at.choice]
        if choice.is_all and not wanted.devices:
            return Outcome.DEAD_END
        if at.device >= wanted.number:
            return (yield Position(at.claim, at.request + 1))
        if len(self.chosen[at.claim]) + wanted.number - at.device > RESULTS_MAX:
            return Outcome.TOO_MANY
        if choice.is_all:
            return (yield from self._add_next(at, choice, wanted.devices[at.device]))
        return (yield from self._try_devices(at, choice))

    def _try_alternatives(self, at: Position, count: int) -> _Level:
        outcome = Outcome.TOO_MANY
        for index in range(count):
            ended = yield replace(at, choice=index, in_choice=True)
            if ended is Outcome.DONE:
                self.selected[at.claim, at.request] = index
                return ended
            if ended is not Outcome.TOO_MANY:
                outcome = Outcome.DEAD_END
        return outcome

    def _add_next(self, at: Position, choice: Choice, device: PoolDevice) -> _Level:
        """Add the next device of a choice that wants all: the order of these does not matter."""
        chosen = self._devices.choose(at.claim, at.device, choice, device, is_required=True)
        if chosen is None:
            return Outcome.DEAD_END
        # As upstream, the search continues with the first alternative, even within another one.
        outcome = yield replace(at, choice=0, device=at.device + 1)
        if outcome is not Outcome.DONE:
            self._devices.undo(at.claim, chosen)
        return outcome

    def _try_devices(self, at: Position, choice: Choice) -> _Level:
        if self._has_too_few(at, choice):
            return Outcome.DEAD_END
        for place, device in self._candidates(at, choice):
            chosen = self._devices.choose(at.claim, at.device, choice, device, place=place)
            if chosen is None:
                continue
            outcome = yield replace(at, device=at.device + 1)
            if outcome is Outcome.DONE:
                return outcome
            self._devices.undo(at.claim, chosen)
            if outcome is Outcome.TOO_MANY:
                return outcome
        return Outcome.DEAD_END

    # --- devices ---

    def _candidates(self, at: Position, choice: Choice) -> Iterator[tuple[Place, PoolDevice]]:
        """Yield the free devices that match a choice, in order, with their places."""
        claim = self._plan.claims[at.claim].facts
        for index, pool, free in self._free_after(self._last_place(at, choice), choice):
            if pool.invalid:
                raise AllocationError(f"pool {pool.name} is invalid: {pool.invalid}")
            for position in positions_of(free):
                device = pool.devices[position]
                if self._devices.is_chosen(device, choice, at.claim):
                    continue
                if not self._view.is_selectable(claim, choice, pool, position):
                    continue
                if not self._gates.consumable_capacity or self._devices.has_capacity(
                    choice, device
                ):
                    yield (index, position), device

    def _has_too_few(self, at: Position, choice: Choice) -> bool:
        """Whether fewer devices are left than a choice still wants, and no error is possible."""
        last = self._last_place(at, choice)
        if last == NO_PLACE:
            return False
        # All are evaluated: with only those that earlier searches have evaluated, the number of
        # steps, and so the answer at the limit of steps, would depend on these searches.
        self._view.evaluate_all(choice)
        missing = self._wanted[at.claim, at.request, at.choice].number - at.device
        for _, pool, free in self._free_after(last, choice):
            missing -= free.bit_count()
            if missing <= 0 or pool.invalid or self._view.may_fail(pool, choice, free):
                return False
        return True

    def _last_place(self, at: Position, choice: Choice) -> Place:
        """Return the place of the last chosen device of a choice; earlier places need not be tried.

        Devices there were tried before that one, and the result for a set of devices does not
        depend on their order. With counters or capacities the result depends on the order, as
        upstream, so all are tried.
        """
        if not at.device or self._gates.consumable_capacity or self._gates.partitionable:
            return NO_PLACE
        last = self.chosen[at.claim][-1]
        return last.place if last.choice is choice else NO_PLACE

    def _free_after(self, last: Place, choice: Choice) -> Iterator[tuple[int, Pool, int]]:
        """Yield (index of the pool, pool, bits of its devices) of free devices that may match.

        Only devices after the place `last`.
        """
        first, after = last
        for index, pool in enumerate(self._view.pools):
            if index < first:
                continue
            free = self._view.candidates(pool, choice)
            if not choice.facts.has_admin_access:
                free &= ~self._in_use.bits(pool)
            # `-2 << after` has all bits above `after`.
            yield index, pool, free & (-2 << after) if index == first else free

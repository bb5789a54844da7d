"""The devices that one node sees, and whether they match."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from roadstead.devices.bits import bits_of, positions_of
from roadstead.devices.errors import AllocationError
from roadstead.devices.pools import Matches, reaches
from roadstead.devices.selectors import SelectorFailure

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.plans import Choice
    from roadstead.devices.pools import DeviceId, Labels, Pool, PoolDevice
    from roadstead.devices.selectors import Query, SelectorResults
    from roadstead.facts.devices import Allocation, DeviceClaimFacts, DeviceFacts


CODES_MAX: Final = 4096
KNOWN_MAX: Final = 65_536

NOT_ALIKE: Final = -1
"""Code of pools that share no results with others."""


class PoolMatcher:
    """Answers which devices of pools match a query; the answers are cached in the pools.

    Pools with equal devices, as those of nodes of one type, are evaluated once.
    """

    def __init__(self, results: SelectorResults, gates: DeviceGates) -> None:
        self._results = results
        self._gates = gates
        self._codes: dict[Hashable, int] = {}
        # By driver and identity of the devices: nodes of one type often share these.
        self._codes_by_id: dict[tuple[str, int], tuple[tuple[DeviceFacts, ...], int]] = {}
        self._next_code = count()
        self._known: dict[tuple[Query, int], Matches] = {}

    def code_of(self, pool: Pool) -> int:
        """Return a number that pools share with equal devices in equal order; NOT_ALIKE if none.

        A pool whose nodes are selected by labels shares none: its allocations may differ.
        """
        if pool.alike is None:
            places = [each.placement for each in pool.slices]
            if all(place.node_name or place.all_nodes for place in places):
                pool.alike = self._shared_code_of(pool)
            else:
                pool.alike = NOT_ALIKE
        return pool.alike

    def _shared_code_of(self, pool: Pool) -> int:
        if len(pool.slices) > 1:
            return self._code_of_devices(pool)
        devices = pool.slices[0].devices
        key = pool.driver, id(devices)
        known = self._codes_by_id.get(key)
        if known is None:
            if len(self._codes_by_id) >= CODES_MAX:
                self._codes_by_id.clear()
            # The devices are kept, so that no others get their id.
            known = self._codes_by_id[key] = devices, self._code_of_devices(pool)
        return known[1]

    def _code_of_devices(self, pool: Pool) -> int:
        if len(self._codes) >= CODES_MAX:
            # Together: equal devices must not have two codes.
            self._codes.clear()
            self._codes_by_id.clear()
        facts = tuple(device.facts for device in pool.devices)
        devices = pool.driver, facts, self._parts(pool)
        code = self._codes.get(devices)
        if code is None:
            code = self._codes[devices] = next(self._next_code)
        return code

    def _parts(self, pool: Pool) -> tuple[int, ...]:
        """Return the numbers of devices in slices, which decide on consumable capacity alone."""
        if not self._gates.consumable_capacity:
            return ()
        return tuple(len(each.devices) for each in pool.slices)

    def matches(self, pool: Pool, query: Query) -> Matches:
        """Return what is known of a query in a pool."""
        found = pool.matches.get(query)
        if found is None:
            bits = (1 << len(pool.devices)) - 1
            found = pool.matches[query] = Matches(bits)
            if not self._gates.binding_conditions:
                for position, device in enumerate(pool.devices):
                    if device.facts.binding_conditions:
                        found.candidates &= ~(1 << position)
                        found.known |= 1 << position
        return found

    def evaluate(self, pool: Pool, query: Query, position: int) -> bool | SelectorFailure:
        """Return whether a device matches, or its failure."""
        matches = self.matches(pool, query)
        bit = 1 << position
        if not matches.known & bit:
            device = pool.devices[position]
            outcome = self._results.evaluate(query, device.id[0], device.facts)
            matches.known |= bit
            if isinstance(outcome, SelectorFailure):
                matches.failures[position] = outcome
            elif not outcome:
                matches.candidates &= ~bit
        if not matches.candidates & bit:
            return False
        return matches.failures.get(position, True)

    def all_known(self, pool: Pool, query: Query) -> Matches:
        """Return the matches of a query in a pool with every device evaluated."""
        matches = self.matches(pool, query)
        everything = (1 << len(pool.devices)) - 1
        if matches.known == everything:
            return matches
        code = self.code_of(pool)
        known = self._known.get((query, code))
        if known is not None:
            matches.candidates, matches.failures = known.candidates, known.failures
            matches.known = everything
            return matches
        refused = []
        for position in positions_of(everything & ~matches.known):
            device = pool.devices[position]
            outcome = self._results.evaluate(query, device.id[0], device.facts)
            if isinstance(outcome, SelectorFailure):
                matches.failures[position] = outcome
            elif not outcome:
                refused.append(position)
        matches.candidates &= ~bits_of(refused, len(pool.devices))
        matches.known = everything
        if code != NOT_ALIKE:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[query, code] = matches
        return matches


class NodeView:
    """The pools that one node sees, during one search."""

    def __init__(
        self, name: str, labels: Labels, pools: tuple[Pool, ...], matcher: PoolMatcher
    ) -> None:
        self.name = name
        self.pools = pools
        self._labels = dict(labels)
        self._matcher = matcher
        self._placed: dict[DeviceId, bool] = {}

    def candidates(self, pool: Pool, choice: Choice) -> int:
        """Return the bits of devices that match, or that are not yet known not to."""
        return self._matcher.matches(pool, choice.query).candidates

    def evaluate_all(self, choice: Choice) -> None:
        """Evaluate every device of all pools; from then on `candidates` are those that match."""
        for pool in self.pools:
            self._matcher.all_known(pool, choice.query)

    def may_fail(self, pool: Pool, choice: Choice, bits: int) -> bool:
        """Whether a selector fails on one of the given devices; after `evaluate_all`."""
        failures = self._matcher.matches(pool, choice.query).failures
        return any(bits >> position & 1 for position in failures)

    def is_selectable(
        self, claim: DeviceClaimFacts, choice: Choice, pool: Pool, position: int
    ) -> bool:
        """Whether a device matches the selectors and, placed on its own, reaches the node.

        Raises:
            AllocationError: a selector fails on the device, or its node selector does not parse.
        """
        outcome = self._matcher.evaluate(pool, choice.query, position)
        if isinstance(outcome, SelectorFailure):
            name = claim.key
            if outcome.is_of_class and choice.device_class is not None:
                name = choice.device_class.name
            kind = "class" if outcome.is_of_class else "claim"
            text = f"{kind} {name}: selector #{outcome.index}: {outcome.text}"
            raise AllocationError(text)
        device = pool.devices[position]
        return outcome and (not device.is_placed_alone or self._is_placed_here(device))

    def _is_placed_here(self, device: PoolDevice) -> bool:
        placed = self._placed.get(device.id)
        if placed is None:
            placed = reaches(device.placement, self.name, self._labels)
            self._placed[device.id] = placed
        return placed


class ProposedView(NodeView):
    """As if a node's pools had only the devices of some allocations; with all for mode All."""

    def __init__(
        self,
        name: str,
        labels: Labels,
        pools: tuple[Pool, ...],
        matcher: PoolMatcher,
        allocations: Iterable[Allocation],
    ) -> None:
        super().__init__(name, labels, pools, matcher)
        proposed = {result.id for each in allocations for result in each.results}
        self._proposed = {
            (pool.driver, pool.name): bits_of(
                (position for position, device in enumerate(pool.devices) if device.id in proposed),
                len(pool.devices),
            )
            for pool in pools
        }

    def candidates(self, pool: Pool, choice: Choice) -> int:
        """Return the bits of devices that match, or that are not yet known not to."""
        found = super().candidates(pool, choice)
        return found if choice.is_all else found & self._proposed[pool.driver, pool.name]

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
"""Maximum number of cached codes of pools; beyond it all are dropped, and equal pools get a new
code."""

KNOWN_MAX: Final = 65_536
"""Maximum number of cached evaluations, each of one query in all pools with equal devices."""

UNSHARED: Final = -1
"""Code of pools that share no results with others."""


class PoolMatcher:
    """Evaluate which devices of pools match a query, and cache the results in the pools.

    Pools with equal devices, such as those of nodes of one type, are evaluated once.
    """

    def __init__(self, results: SelectorResults, gates: DeviceGates) -> None:
        self._results = results
        self._gates = gates
        # By devices (`_code_of_devices`).
        self._codes: dict[Hashable, int] = {}
        # By driver and id of the devices: pools of nodes of one type often share the tuple.
        self._codes_by_id: dict[tuple[str, int], tuple[tuple[DeviceFacts, ...], int]] = {}
        self._next_code = count()
        self._matches_by_code: dict[tuple[Query, int], Matches] = {}

    def devices_code_of(self, pool: Pool) -> int:
        """Return a number that is equal for pools with equal devices in equal order.

        UNSHARED for a pool whose nodes are selected by labels: node selectors become part of an
        allocation, so that allocations from pools with equal devices may differ.
        """
        if pool.devices_code is None:
            placements = [each.placement for each in pool.slices]
            if all(place.node_name or place.all_nodes for place in placements):
                pool.devices_code = self._shared_code_of(pool)
            else:
                pool.devices_code = UNSHARED
        return pool.devices_code

    def _shared_code_of(self, pool: Pool) -> int:
        if len(pool.slices) > 1:
            return self._code_of_devices(pool)
        devices = pool.slices[0].devices
        key = pool.driver, id(devices)
        known = self._codes_by_id.get(key)
        if known is None:
            if len(self._codes_by_id) >= CODES_MAX:
                self._codes_by_id.clear()
            # The devices are kept, so that no other tuple gets their id.
            known = self._codes_by_id[key] = devices, self._code_of_devices(pool)
        return known[1]

    def _code_of_devices(self, pool: Pool) -> int:
        if len(self._codes) >= CODES_MAX:
            # Both, because equal devices must not have two codes.
            self._codes.clear()
            self._codes_by_id.clear()
        facts = tuple(device.facts for device in pool.devices)
        devices = pool.driver, facts, self._slice_sizes(pool)
        code = self._codes.get(devices)
        if code is None:
            code = self._codes[devices] = next(self._next_code)
        return code

    def _slice_sizes(self, pool: Pool) -> tuple[int, ...]:
        """Return the number of devices in each slice; only consumable capacity depends on it."""
        if not self._gates.consumable_capacity:
            return ()
        return tuple(len(each.devices) for each in pool.slices)

    def matches(self, pool: Pool, query: Query) -> Matches:
        """Return the matches of a query in a pool, as far as they are evaluated."""
        found = pool.matches.get(query)
        if found is None:
            bits = (1 << len(pool.devices)) - 1
            found = pool.matches[query] = Matches(bits)
            # Without the gate, devices with binding conditions match nothing.
            if not self._gates.binding_conditions:
                for position, device in enumerate(pool.devices):
                    if device.facts.binding_conditions:
                        found.candidates &= ~(1 << position)
                        found.known |= 1 << position
        return found

    def evaluate(self, pool: Pool, query: Query, position: int) -> bool | SelectorFailure:
        """Return whether a device matches a query, or the failure of a selector on it."""
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
        code = self.devices_code_of(pool)
        # `UNSHARED` is not in this cache.
        known = self._matches_by_code.get((query, code))
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
        if code != UNSHARED:
            if len(self._matches_by_code) >= KNOWN_MAX:
                self._matches_by_code.clear()
            self._matches_by_code[query, code] = matches
        return matches


class VisiblePools:
    """The pools that one node sees, during one search."""

    def __init__(
        self, name: str, labels: Labels, pools: tuple[Pool, ...], matcher: PoolMatcher
    ) -> None:
        self.name = name
        self.pools = pools
        self._labels = dict(labels)
        self._matcher = matcher
        self._reaches_node: dict[DeviceId, bool] = {}

    def candidates(self, pool: Pool, choice: Choice) -> int:
        """Return the bits of devices that match or are not evaluated yet."""
        return self._matcher.matches(pool, choice.query).candidates

    def evaluate_all(self, choice: Choice) -> None:
        """Evaluate every device of all pools; then all `candidates` match, or a selector fails."""
        for pool in self.pools:
            self._matcher.all_known(pool, choice.query)

    def may_fail(self, pool: Pool, choice: Choice, bits: int) -> bool:
        """Whether a selector fails on one of the given devices; call `evaluate_all` before."""
        failures = self._matcher.matches(pool, choice.query).failures
        return any(bits >> position & 1 for position in failures)

    def is_selectable(
        self, claim: DeviceClaimFacts, choice: Choice, pool: Pool, position: int
    ) -> bool:
        """Whether a device matches, and the node reaches it if it has its own placement.

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
        return outcome and (not device.has_own_placement or self._is_reached(device))

    def _is_reached(self, device: PoolDevice) -> bool:
        placed = self._reaches_node.get(device.id)
        if placed is None:
            placed = reaches(device.placement, self.name, self._labels)
            self._reaches_node[device.id] = placed
        return placed


class ProposedView(VisiblePools):
    """A view of only the devices of some allocations; requests for all devices see all of them."""

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
        """Return the bits of proposed devices that match or are not evaluated yet."""
        found = super().candidates(pool, choice)
        return found if choice.is_all else found & self._proposed[pool.driver, pool.name]

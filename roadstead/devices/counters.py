"""Counters that devices of a slice share (gate DRAPartitionableDevices).

Upstream: checkAvailableCounters in allocator_experimental.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.protocol.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.pools import PoolDevice
    from roadstead.facts.devices import CounterSetFacts, SliceFacts

CounterKey = tuple[str, str]
"""Counter set and counter."""

_NONE = Quantity(0)


class SharedCounters:
    """Counters of slices during one search: available, and consumed by its devices."""

    def __init__(self, in_use: DevicesInUse) -> None:
        self._in_use = in_use
        self._available: dict[str, dict[CounterKey, Quantity]] = {}
        self._consumed: dict[str, dict[CounterKey, Quantity]] = {}

    def consume(self, device: PoolDevice) -> bool:
        """Consume the counters of a device; False, and nothing consumed, if they are short.

        All counters of the slice are compared, as upstream, not only those of the device.
        """
        available = self._available_of(device.slice)
        consumed = self._consumed.setdefault(device.slice.name, {})
        for key, amount in _amounts(device.facts.consumes):
            consumed[key] = consumed.get(key, _NONE).add(amount)
        if any(amount.cmp(consumed.get(key, _NONE)) < 0 for key, amount in available.items()):
            self.give_back(device)
            return False
        return True

    def give_back(self, device: PoolDevice) -> None:
        """Undo `consume`."""
        consumed = self._consumed[device.slice.name]
        for key, amount in _amounts(device.facts.consumes):
            consumed[key] = consumed[key].sub(amount)

    def _available_of(self, facts: SliceFacts) -> dict[CounterKey, Quantity]:
        available = self._available.get(facts.name)
        if available is None:
            available = dict(_amounts(facts.shared_counters))
            for device in facts.devices:
                if (
                    not device.consumes
                    or (facts.driver, facts.pool, device.name) not in self._in_use
                ):
                    continue
                for key, amount in _amounts(device.consumes):
                    if key in available:
                        available[key] = available[key].sub(amount)
            self._available[facts.name] = available
        return available


def _amounts(sets: tuple[CounterSetFacts, ...]) -> list[tuple[CounterKey, Quantity]]:
    return [
        ((each.name, name), parse_quantity(text)) for each in sets for name, text in each.counters
    ]

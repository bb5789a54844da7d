"""Devices that allocations use, and what they consume of devices that several may use.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go and
structured/internal/allocatedstate.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from roadstead.devices.bits import bits_of
from roadstead.devices.capacity import Consumed, parsed
from roadstead.devices.change_log import ChangeLog
from roadstead.devices.pools import DeviceId, Pool

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.facts.devices import Allocation, Amounts

_instance_numbers = count(1)
"""Numbers of `DevicesInUse` objects: a pool's cached bits are valid for one of them."""

PoolKey = tuple[str, str]
"""Driver and pool."""


@dataclass(slots=True)
class _PoolUse:
    """Names of a pool's devices in use, and the log of names that were added or removed."""

    names: set[str] = field(default_factory=set)
    log: ChangeLog[str] = field(default_factory=ChangeLog)


class DevicesInUse:
    """Devices in use by allocations, without those under admin access.

    Like upstream's set, it does not count how many allocations use a device; only the consumed
    capacities of shared devices add up.
    """

    def __init__(self, gates: DeviceGates) -> None:
        self._counts_shares = gates.consumable_capacity
        self._pools: dict[PoolKey, _PoolUse] = {}
        self._consumed: dict[DeviceId, Consumed] = {}
        # By pool: names of the devices in `_consumed`.
        self._shared: dict[PoolKey, set[str]] = {}
        # By pool, until its use changes: results of `consumption_key`.
        self._consumption_keys: dict[PoolKey, Hashable] = {}
        self._instance = next(_instance_numbers)
        self._watchers: list[Callable[[PoolKey], None]] = []

    def watch(self, on_change: Callable[[PoolKey], None]) -> None:
        """Call `on_change` with the pool after each change of its devices in use or consumed."""
        self._watchers.append(on_change)

    def add(self, allocation: Allocation) -> None:
        """Count the devices of a new allocation as used."""
        for result in allocation.results:
            if result.has_admin_access:
                continue
            if self._counts_shares and result.share_id is not None:
                self._consumed.setdefault(result.id, Consumed()).add(parsed(result.consumed or ()))
                self._shared.setdefault((result.driver, result.pool), set()).add(result.device)
                self._notify((result.driver, result.pool))
            else:
                self._set(result.driver, result.pool, result.device, used=True)

    def remove(self, allocation: Allocation) -> None:
        """Count the devices of a removed allocation as free."""
        for result in allocation.results:
            if result.has_admin_access:
                continue
            if self._counts_shares and result.share_id is not None:
                consumed = self._consumed.get(result.id)
                if consumed is not None:
                    consumed.subtract(parsed(result.consumed or ()))
                    self._notify((result.driver, result.pool))
            else:
                self._set(result.driver, result.pool, result.device, used=False)

    def __contains__(self, device: DeviceId) -> bool:
        use = self._pools.get(device[:2])
        return use is not None and device[2] in use.names

    def ids(self) -> frozenset[DeviceId]:
        """Return all devices in use that are not shared."""
        return frozenset((*key, name) for key, use in self._pools.items() for name in use.names)

    def consumed(self, device: DeviceId) -> Consumed:
        """Return what allocations consume of a shared device."""
        return self._consumed.get(device) or Consumed()

    def consumption_key(self, pool: Pool) -> Hashable:
        """Return the consumption of a pool's shared devices: (device, amounts by capacity).

        Devices that only some nodes reach are included.
        """
        if not self._counts_shares:
            return None
        key = pool.driver, pool.name
        found = self._consumption_keys.get(key)
        if found is None:
            found = self._consumption_keys[key] = tuple(
                (name, amounts)
                for name in sorted(self._shared.get(key, ()))
                if (amounts := self._amounts((*key, name)))
            )
        return found

    def _amounts(self, device: DeviceId) -> Amounts:
        consumed = self.consumed(device)
        return tuple(sorted((name, str(each)) for name, each in consumed.items() if each.sign))

    def bits(self, pool: Pool) -> int:
        """Return the bits of a pool's devices in use, by position; cached in the pool."""
        use = self._pools.get((pool.driver, pool.name))
        if use is None:
            return 0
        # seen: the position in the log up to which the cached bits have its changes.
        owner, seen = pool.in_use_at
        if owner == self._instance and seen == use.log.end:
            return pool.in_use
        changed = use.log.since(seen) if owner == self._instance else None
        # None: another object computed the bits, or the log no longer has all changes since then.
        if changed is None:
            known = (pool.positions.get(name) for name in use.names)
            positions = (position for position in known if position is not None)
            pool.in_use = bits_of(positions, len(pool.devices))
        else:
            for name in changed:
                position = pool.positions.get(name)
                if position is not None:
                    bit = 1 << position
                    pool.in_use = pool.in_use | bit if name in use.names else pool.in_use & ~bit
        pool.in_use_at = (self._instance, use.log.end)
        return pool.in_use

    def _set(self, driver: str, pool: str, device: str, *, used: bool) -> None:
        use = self._pools.get((driver, pool))
        if use is None:
            use = self._pools[driver, pool] = _PoolUse()
        if (device in use.names) == used:
            return
        if used:
            use.names.add(device)
        else:
            use.names.discard(device)
        use.log.add(device)
        self._notify((driver, pool))

    def _notify(self, pool: PoolKey) -> None:
        self._consumption_keys.pop(pool, None)
        for each in self._watchers:
            each(pool)

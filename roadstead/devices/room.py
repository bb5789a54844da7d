"""Room of shared devices: whether counters and capacities suffice for new allocations.

The binder's check. The allocator of another process has counted the same, but on another state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from roadstead.devices.capacity import Consumed, parsed
from roadstead.devices.counters import SharedCounters
from roadstead.devices.in_use import DevicesInUse
from roadstead.devices.pools import DeviceId, PoolDevice
from roadstead.facts.devices import AllocatedDevice, SliceFacts
from roadstead.protocol.quantity import Quantity, parse_quantity

PoolKey = tuple[str, str]
"""Driver and pool."""


class DeviceRoom:
    """The slices of all pools, of the newest generation of each."""

    def __init__(self, slices: Iterable[SliceFacts]) -> None:
        found: dict[PoolKey, list[SliceFacts]] = defaultdict(list)
        for each in slices:
            known = found[each.driver, each.pool]
            if known and known[0].generation < each.generation:
                known.clear()
            if not known or known[0].generation == each.generation:
                known.append(each)
        self._slices: Mapping[PoolKey, list[SliceFacts]] = found

    def suffices(self, results: Iterable[AllocatedDevice], in_use: DevicesInUse) -> bool:
        """Whether no counter and no capacity is overdrawn once these devices are in use, too.

        Devices under admin access consume nothing.
        """
        # taken: by device, the capacities that the results before consume of it.
        counters, taken = SharedCounters(in_use), defaultdict[DeviceId, Consumed](Consumed)
        for each in results:
            if each.has_admin_access:
                continue
            device = self._device(each)
            if device is None:
                return False
            if each.share_id is None:
                if device.facts.consumes and not counters.consume(device):
                    return False
                continue
            taken[each.id].add(parsed(each.consumed or ()))
            if not _has_capacity(device, in_use.consumed(each.id), taken[each.id]):
                return False
        return True

    def _device(self, found: AllocatedDevice) -> PoolDevice | None:
        for each in self._slices.get((found.driver, found.pool), ()):
            for facts in each.devices:
                if facts.name == found.device:
                    return PoolDevice(found.id, facts, each)
        return None


def _has_capacity(device: PoolDevice, consumed: Consumed, taken: Consumed) -> bool:
    zero = Quantity(0)
    amounts = {each.name: parse_quantity(each.amount) for each in device.facts.capacity}
    return all(
        name in amounts and amount.add(consumed.get(name, zero)).cmp(amounts[name]) <= 0
        for name, amount in taken.items()
    )

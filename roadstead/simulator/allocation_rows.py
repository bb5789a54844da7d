"""Rows of the tables `devices` and `allocations`: devices, and the claims and pods that use them.

A claim in flight (its allocation is assumed, not written) is recorded when its pod is bound: until
then the allocation may be undone.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from roadstead.facts.devices import (
    AllocatedDevice,
    CounterSetFacts,
    DeviceClaimFacts,
    DeviceFacts,
    SliceFacts,
)
from roadstead.simulator.recording import RecordedWorld
from roadstead.simulator.tables import Row

ALLOCATED: Final = "allocated"
DEALLOCATED: Final = "deallocated"
RESERVED: Final = "reserved"
UNRESERVED: Final = "unreserved"

_NO_DEVICE: Final = (None,) * 7
"""The columns of `_device_columns` in rows without a device: RESERVED, UNRESERVED."""


def device_rows(slices: Iterable[SliceFacts]) -> Iterator[Row]:
    """Yield a row for each device of the newest generation of each pool."""
    newest: defaultdict[tuple[str, str], list[SliceFacts]] = defaultdict(list)
    for each in slices:
        of_pool = newest[each.driver, each.pool]
        if of_pool and of_pool[0].generation < each.generation:
            of_pool.clear()
        if not of_pool or of_pool[0].generation == each.generation:
            of_pool.append(each)
    for pool in newest.values():
        for each in pool:
            counters = json.dumps(_counters(each.shared_counters))
            for device in each.devices:
                yield _device_row(each, device, counters)


def _device_row(resource_slice: SliceFacts, device: DeviceFacts, counters: str) -> Row:
    # `placed_per_device`: perDeviceNodeSelection of the ResourceSlice; each device names its nodes.
    placement = device.placement if resource_slice.placed_per_device else resource_slice.placement
    capacity = {each.name: each.amount for each in device.capacity}
    return (
        resource_slice.driver,
        resource_slice.pool,
        device.name,
        resource_slice.name,
        placement.node_name,
        json.dumps(capacity),
        json.dumps(_counters(device.consumes)),
        counters,
    )


def _counters(sets: Iterable[CounterSetFacts]) -> dict[str, str]:
    return {f"{each.name}/{name}": amount for each in sets for name, amount in each.counters}


class AllocationRows:
    """Make the rows of changes of claims: compare each claim with its last recorded state.

    The columns of a row are those of `tables.COLUMNS`, in order.
    """

    def __init__(self) -> None:
        # By key `namespace/name`.
        self._recorded: dict[str, DeviceClaimFacts] = {}
        # UID → number in the run, of pods that reserve claims. Stored, since a claim may lose its
        # pod after the pod has ended, when `RecordedWorld.pods` has it no more.
        self._pod_numbers: dict[str, int] = {}
        # UID of such a pod → how many recorded claims it reserves.
        self._reserved: Counter[str] = Counter()

    def rows_of_change(
        self, world: RecordedWorld, claims: Sequence[DeviceClaimFacts], removed: Sequence[str]
    ) -> Iterator[Row]:
        """Yield the rows of a change. claims: in their new state. removed: keys of claims."""
        for key in removed:
            before = self._recorded.pop(key, None)
            if before is not None:
                yield from self._rows_of_losses(world.now_us, before, None)
        for claim in claims:
            if claim.is_in_flight:
                continue
            before = self._recorded.pop(claim.key, None)
            if before is not None:
                yield from self._rows_of_losses(world.now_us, before, claim)
            yield from self._rows_of_gains(world, before, claim)
            if _results(claim) or claim.reserved_for:
                self._recorded[claim.key] = claim

    def _rows_of_losses(
        self, now_us: int, before: DeviceClaimFacts, after: DeviceClaimFacts | None
    ) -> Iterator[Row]:
        """Yield rows of the pods and devices that a claim does not have any more."""
        remaining = {each.uid for each in after.reserved_for} if after is not None else set()
        removed = [each.uid for each in before.reserved_for if each.uid not in remaining]
        numbers = [self._pod_numbers.get(uid) for uid in removed]
        for uid in removed:
            self._reserved[uid] -= 1
            if self._reserved[uid] <= 0:
                del self._reserved[uid]
                self._pod_numbers.pop(uid, None)
        for number in numbers:
            yield (now_us, UNRESERVED, before.key, number, None, *_NO_DEVICE)
        if _results(before) != _results(after):
            last_pod = numbers[-1] if numbers else None
            for result in _results(before):
                yield (now_us, DEALLOCATED, before.key, last_pod, None, *_device_columns(result))

    def _rows_of_gains(
        self, world: RecordedWorld, before: DeviceClaimFacts | None, after: DeviceClaimFacts
    ) -> Iterator[Row]:
        """Yield rows of the devices and pods that are new in a claim."""
        old = {each.uid for each in before.reserved_for} if before is not None else set()
        new = [each.uid for each in after.reserved_for if each.uid not in old]
        for uid in new:
            self._reserved[uid] += 1
            if (pod := world.pods.get(uid)) is not None:
                self._pod_numbers[uid] = pod.number
        pods = [(self._pod_numbers.get(uid), world.cluster.node_of(uid)) for uid in new]
        if _results(before) != _results(after):
            number, node = pods[0] if pods else (None, None)
            for result in _results(after):
                yield (world.now_us, ALLOCATED, after.key, number, node, *_device_columns(result))
        for number, node in pods:
            yield (world.now_us, RESERVED, after.key, number, node, *_NO_DEVICE)


def _results(claim: DeviceClaimFacts | None) -> tuple[AllocatedDevice, ...]:
    return () if claim is None or claim.allocation is None else claim.allocation.results


def _device_columns(result: AllocatedDevice) -> Row:
    consumed = None if result.consumed is None else json.dumps(dict(result.consumed))
    return (
        result.driver,
        result.pool,
        result.device,
        result.request,
        int(result.has_admin_access),
        result.share_id,
        consumed,
    )

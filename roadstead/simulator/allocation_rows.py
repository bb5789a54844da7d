"""Rows of the tables `devices` and `allocations`: devices, and the claims and pods that have them.

A claim in flight is not recorded before its pod is bound: until then its allocation may be undone.
"""

from __future__ import annotations

import json
from collections import defaultdict
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


def device_rows(slices: Iterable[SliceFacts]) -> Iterator[Row]:
    """Yield a row for each device of the newest generation of each pool."""
    newest: defaultdict[tuple[str, str], list[SliceFacts]] = defaultdict(list)
    for each in slices:
        known = newest[each.driver, each.pool]
        if known and known[0].generation < each.generation:
            known.clear()
        if not known or known[0].generation == each.generation:
            known.append(each)
    for pool in newest.values():
        for each in pool:
            counters = json.dumps(_counters(each.shared_counters))
            for device in each.devices:
                yield _device_row(each, device, counters)


def _device_row(found: SliceFacts, device: DeviceFacts, counters: str) -> Row:
    placement = device.placement if found.placed_per_device else found.placement
    capacity = {each.name: each.amount for each in device.capacity}
    return (
        found.driver,
        found.pool,
        device.name,
        found.name,
        placement.node_name,
        json.dumps(capacity),
        json.dumps(_counters(device.consumes)),
        counters,
    )


def _counters(sets: Iterable[CounterSetFacts]) -> dict[str, str]:
    return {f"{each.name}/{name}": amount for each in sets for name, amount in each.counters}


class AllocationRows:
    """The claims as they were recorded last, and the rows of what changes in them."""

    def __init__(self) -> None:
        self._known: dict[str, DeviceClaimFacts] = {}
        # Of pods that reserve claims: when a claim is freed, its pod has ended.
        self._numbers: dict[str, int] = {}

    def changed(
        self, world: RecordedWorld, claims: Sequence[DeviceClaimFacts], removed: Sequence[str]
    ) -> Iterator[Row]:
        """Yield the rows of a change. claims: in their new state. removed: keys of those gone."""
        for key in removed:
            before = self._known.pop(key, None)
            if before is not None:
                yield from self._freed(world.now_us, before, None)
        for claim in claims:
            if claim.is_in_flight:
                continue
            before = self._known.pop(claim.key, None)
            if before is not None:
                yield from self._freed(world.now_us, before, claim)
            yield from self._given(world, before, claim)
            if _results(claim) or claim.reserved_for:
                self._known[claim.key] = claim

    def _freed(
        self, now_us: int, before: DeviceClaimFacts, after: DeviceClaimFacts | None
    ) -> Iterator[Row]:
        left = {each.uid for each in after.reserved_for} if after is not None else set()
        gone = [each.uid for each in before.reserved_for if each.uid not in left]
        numbers = [self._numbers.get(uid) for uid in gone]
        for number in numbers:
            yield (now_us, UNRESERVED, before.key, number, None, *_NO_DEVICE)
        if _results(before) != _results(after):
            last = numbers[-1] if numbers else None
            for result in _results(before):
                yield (now_us, DEALLOCATED, before.key, last, None, *_device(result))

    def _given(
        self, world: RecordedWorld, before: DeviceClaimFacts | None, after: DeviceClaimFacts
    ) -> Iterator[Row]:
        had = {each.uid for each in before.reserved_for} if before is not None else set()
        new = [each.uid for each in after.reserved_for if each.uid not in had]
        for uid in new:
            if (pod := world.pods.get(uid)) is not None:
                self._numbers[uid] = pod.number
        pods = [(self._numbers.get(uid), world.cluster.node_of(uid)) for uid in new]
        if _results(before) != _results(after):
            number, node = pods[0] if pods else (None, None)
            for result in _results(after):
                yield (world.now_us, ALLOCATED, after.key, number, node, *_device(result))
        for number, node in pods:
            yield (world.now_us, RESERVED, after.key, number, node, *_NO_DEVICE)


def _results(claim: DeviceClaimFacts | None) -> tuple[AllocatedDevice, ...]:
    return () if claim is None or claim.allocation is None else claim.allocation.results


def _device(result: AllocatedDevice) -> Row:
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

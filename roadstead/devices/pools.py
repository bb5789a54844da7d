"""The slices that match a node, grouped by pool; of each pool only the newest generation.

Upstream: pools_experimental.go. Upstream's order is that of Go maps; here pools are ordered by
driver and name, slices by name, and slices and pools with binding conditions come last. As
upstream, the slices that match the node are compared with the count of slices in the pool: with
fewer, the pool is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from roadstead.devices.errors import AllocationError
from roadstead.facts.selectors import selector_error

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.selectors import Query, SelectorFailure
    from roadstead.facts.devices import DeviceFacts, Placement, SliceFacts

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PoolDevice:
    """A device of a slice."""

    id: DeviceId
    facts: DeviceFacts
    slice: SliceFacts

    @property
    def is_placed_alone(self) -> bool:
        """Whether the device has a placement of its own."""
        return bool(self.slice.placed_per_device)

    @property
    def placement(self) -> Placement:
        """Where the device is reached: its own placement or that of its slice."""
        return self.facts.placement if self.slice.placed_per_device else self.slice.placement


@dataclass(frozen=True, slots=True)
class FreeMatches:
    """Bitmask of the free devices that match a query, valid for the devices in use `used`.

    may_fail: the query fails on a free device.
    """

    used: int
    bits: int
    count: int
    may_fail: bool


@dataclass(slots=True)
class Matches:
    """Evaluation of a query in a pool: bit i is the pool's device i.

    known: evaluated. candidates: all but those that are known not to match. failures: by position.
    free: cached once all is known.
    """

    candidates: int
    known: int = 0
    failures: dict[int, SelectorFailure] = field(default_factory=dict)
    free: FreeMatches | None = None


@dataclass(slots=True, eq=False)
class Pool:
    """A pool as it is for some nodes. Immutable except for its caches.

    invalid: the reason why no device may be allocated from it, or "".
    unallocatable: devices that consume counters while DRAPartitionableDevices is off, as bitmask.
    needs_search: matches alone do not decide: a search must check counters, capacities, taints or
        the node selection of single devices. depends_on_use_alone: no more than its devices and
        their use decides.
    matches: cache of selector results. alike: see `PoolMatcher.code_of`; None: not yet known.
    in_use, in_use_at: cache of the bits of devices in use, and
        the position in the log of `DevicesInUse` up to which they hold.
    """

    driver: str
    name: str
    slices: tuple[SliceFacts, ...]
    devices: tuple[PoolDevice, ...]
    is_incomplete: bool
    invalid: str
    unallocatable: int = 0
    needs_search: bool = False
    depends_on_use_alone: bool = True
    positions: dict[str, int] = field(default_factory=dict)
    matches: dict[Query, Matches] = field(default_factory=dict)
    alike: int | None = None
    in_use: int = 0
    in_use_at: tuple[int, int] = (0, -1)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A slice with its devices, which all views of its pool share."""

    slice: SliceFacts
    devices: tuple[PoolDevice, ...]
    has_binding_conditions: bool


def reaches(placement: Placement, name: str, labels: dict[str, str]) -> bool:
    """Return whether a slice's or device's node selection includes a node.

    Raises:
        AllocationError: the node selector does not parse.
    """
    if placement.node_name:
        return placement.node_name == name
    if placement.all_nodes:
        return True
    if placement.terms is None:
        return False
    if error := selector_error(placement.terms):
        raise AllocationError(f"failed to parse node selector: {error}")
    return any(term.matches(labels, name) for term in placement.terms)


class DevicePools:
    """All slices, and the pools of each node, gathered again after slices or labels changed."""

    def __init__(self, gates: DeviceGates) -> None:
        self._gates = gates
        self._local: dict[str, dict[str, _Entry]] = {}
        self._shared: dict[str, _Entry] = {}
        self._slices: dict[str, SliceFacts] = {}
        self._seen: dict[str, tuple[Labels, tuple[Pool, ...] | str]] = {}
        self._views: dict[tuple[str, str], dict[tuple[int, ...], Pool]] = {}
        self._watchers: list[Callable[[str | None], None]] = []

    def watch(self, changed: Callable[[str | None], None]) -> None:
        """Call `changed` after each change with the slice's node; None for one of several nodes."""
        self._watchers.append(changed)

    def replace(self, slices: Iterable[SliceFacts]) -> None:
        """Replace all slices; equal slices are left unchanged."""
        by_name = {each.name: each for each in slices}
        for name in [name for name in self._slices if name not in by_name]:
            self.remove(name)
        for each in by_name.values():
            self.put(each)

    def put(self, facts: SliceFacts) -> None:
        """Add a slice, or replace the one of its name."""
        old = self._slices.get(facts.name)
        if old is facts or old == facts:
            return
        if old is not None:
            self.remove(facts.name)
        self._slices[facts.name] = facts
        home = self._home(facts)
        home[facts.name] = self._entry(facts)
        self._forget(facts)

    def remove(self, name: str) -> None:
        """Remove a slice; an unknown one changes nothing."""
        facts = self._slices.pop(name, None)
        if facts is not None:
            del self._home(facts)[name]
            self._forget(facts)

    def seen_from(self, node: str, labels: Labels) -> tuple[Pool, ...]:
        """Return the pools of a node, in the order in which devices are tried.

        Raises:
            AllocationError: the node selector of a slice does not parse.
        """
        seen = self._seen.get(node)
        if seen is None or (seen[0] is not labels and seen[0] != labels):
            seen = self._seen[node] = (labels, self._gather(node, dict(labels)))
        pools = seen[1]
        if isinstance(pools, str):
            raise AllocationError(pools)
        return pools

    def _home(self, facts: SliceFacts) -> dict[str, _Entry]:
        node = facts.placement.node_name
        return self._local.setdefault(node, {}) if node else self._shared

    @staticmethod
    def _entry(facts: SliceFacts) -> _Entry:
        devices = tuple(
            PoolDevice((facts.driver, facts.pool, each.name), each, facts) for each in facts.devices
        )
        return _Entry(facts, devices, any(each.binding_conditions for each in facts.devices))

    def _forget(self, facts: SliceFacts) -> None:
        """Forget all that depends on a slice."""
        self._views.pop((facts.driver, facts.pool), None)
        node = facts.placement.node_name or None
        if node:
            self._seen.pop(node, None)
        else:
            self._seen.clear()
        for each in self._watchers:
            each(node)

    def _gather(self, node: str, labels: dict[str, str]) -> tuple[Pool, ...] | str:
        """Return the pools that a node sees, or the error of upstream's GatherPools."""
        local = self._local.get(node, {})
        if len(local) == 1 and not self._shared:
            # Most nodes see one slice, which is theirs.
            (entry,) = local.values()
            if entry.slice.placed_per_device is None:
                return (self._view((entry.slice.driver, entry.slice.pool), [entry]),)
        entries = [*local.values(), *self._shared.values()]
        entries.sort(key=attrgetter("slice.name"))
        seen: list[_Entry] = []
        for entry in entries:
            try:
                if self._is_seen(entry, node, labels):
                    seen.append(entry)
            except AllocationError as error:
                return f"gather pool information: {error}"
        # Stable: slices with binding conditions are tried after all others.
        seen.sort(key=attrgetter("has_binding_conditions"))
        pools: dict[tuple[str, str], list[_Entry]] = {}
        for entry in seen:
            _add_to_pool(pools.setdefault((entry.slice.driver, entry.slice.pool), []), entry)
        views = [(self._view(key, pools[key]), pools[key]) for key in sorted(pools)]
        views.sort(key=lambda view: any(entry.has_binding_conditions for entry in view[1]))
        return tuple(pool for pool, _ in views)

    def _is_seen(self, entry: _Entry, node: str, labels: dict[str, str]) -> bool:
        facts = entry.slice
        if facts.placed_per_device is not None and not self._gates.partitionable:
            return False
        place = facts.placement
        if place.node_name or place.all_nodes or place.terms is not None:
            try:
                return reaches(place, node, labels)
            except AllocationError as error:
                text = f"failed to perform node selection for slice {facts.name}: {error}"
                raise AllocationError(text) from error
        if not facts.placed_per_device:
            return False
        for device in facts.devices:
            try:
                if reaches(device.placement, node, labels):
                    return True
            except AllocationError as error:
                text = (
                    f"failed to perform node selection for device {device.name} "
                    f"in slice {facts.name}: {error}"
                )
                raise AllocationError(text) from error
        return False

    def _view(self, key: tuple[str, str], entries: list[_Entry]) -> Pool:
        """Return the pool with these slices; nodes with the same slices share it."""
        views = self._views.setdefault(key, {})
        # Entries live as long as the view: `_forget` drops it with any slice of the pool.
        identity = tuple(map(id, entries))
        pool = views.get(identity)
        if pool is None:
            pool = views[identity] = _pool_of(key, entries, self._gates)
        return pool


def _add_to_pool(entries: list[_Entry], entry: _Entry) -> None:
    if entries and entry.slice.generation < entries[0].slice.generation:
        return
    if entries and entry.slice.generation > entries[0].slice.generation:
        entries.clear()
    entries.append(entry)


def _pool_of(key: tuple[str, str], entries: list[_Entry], gates: DeviceGates) -> Pool:
    devices = tuple(device for entry in entries for device in entry.devices)
    positions: dict[str, int] = {}
    invalid = ""
    for position, device in enumerate(devices):
        if positions.setdefault(device.facts.name, position) != position and not invalid:
            invalid = f"duplicate device name {device.facts.name}"
    consumers = [n for n, device in enumerate(devices) if device.facts.consumes]
    has_parts = gates.partitionable and (
        bool(consumers) or any(device.is_placed_alone for device in devices)
    )
    has_taints = gates.taints and any(device.facts.taints for device in devices)
    return Pool(
        driver=key[0],
        name=key[1],
        slices=tuple(entry.slice for entry in entries),
        devices=devices,
        is_incomplete=len(entries) != entries[0].slice.slices_in_pool,
        invalid=invalid,
        unallocatable=0 if gates.partitionable else sum(1 << n for n in consumers),
        needs_search=gates.consumable_capacity or has_parts or has_taints,
        depends_on_use_alone=not has_parts and not has_taints,
        positions=positions,
    )

"""The slices that a node sees, grouped by pool; of each pool only the newest generation.

A node sees a slice if it has devices that the node reaches.

Upstream: pools_experimental.go. Upstream's order is that of Go maps; here pools are ordered by
driver and name, slices by name, and slices and pools with binding conditions are last. As
upstream, the slices that the node sees are compared with the count of slices in the pool: with
fewer, the pool is incomplete. Nodes that see different slices of a pool have different `Pool`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from roadstead.devices.errors import AllocationError
from roadstead.facts.selectors import selector_error

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.selectors import Query, SelectorFailure
    from roadstead.facts.devices import DeviceFacts, Placement, SliceFacts

LISTED_MAX: Final = 4096
"""Maximum number of cached `_ListedDevices`, by the id of a slice's devices; beyond it all are
dropped."""

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""

Labels = tuple[tuple[str, str], ...]
"""Labels of a node: (key, value)."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolDevice:
    """A device of a slice."""

    id: DeviceId
    facts: DeviceFacts
    slice: SliceFacts

    @property
    def has_own_placement(self) -> bool:
        """Whether the device has a placement of its own."""
        return bool(self.slice.placed_per_device)

    @property
    def placement(self) -> Placement:
        """The nodes that reach the device: its own placement or that of its slice."""
        return self.facts.placement if self.slice.placed_per_device else self.slice.placement


@dataclass(frozen=True, slots=True)
class FreeMatches:
    """The free devices of a pool that match a query, as bits by position.

    used: the bits of the devices that were in use when this was computed. may_fail: a selector
    fails on a free device.
    """

    used: int
    bits: int
    count: int
    may_fail: bool


@dataclass(slots=True)
class Matches:
    """Evaluation of a query in a pool: bit i is the pool's device i.

    known: the evaluated devices. candidates: all devices but those that are known not to match.
    failures: errors of selectors, by position. free: cached once all devices are evaluated.
    """

    candidates: int
    known: int = 0
    failures: dict[int, SelectorFailure] = field(default_factory=dict)
    free: FreeMatches | None = None


@dataclass(slots=True, eq=False)
class Pool:
    """The slices of a pool that some nodes see. Immutable except for its caches.

    invalid: the reason why no device may be allocated from it, or "".
    unallocatable: devices that consume counters while DRAPartitionableDevices is off, as bits.
    needs_search: a search must also check counters, capacities, taints or the placement of single
        devices.
    depends_on_use_alone: no counters, taints or placements of single devices: two pools with equal
        devices, equally used and consumed, give equal answers.
    positions: of devices, by name; must not be changed, because pools share it.
    matches: cache of selector results.
    devices_code: cache of a number that is equal for pools with equal devices in equal order
        (`PoolMatcher.devices_code_of`); None: not yet computed.
    in_use: cache of the bits of devices in use. in_use_at: (number of the `DevicesInUse` that
        computed them, position in its log of changes up to which they are current).
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
    devices_code: int | None = None
    in_use: int = 0
    in_use_at: tuple[int, int] = (0, -1)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class _SliceDevices:
    """A slice with its devices, which all `Pool`s of its pool share."""

    slice: SliceFacts
    devices: tuple[PoolDevice, ...]
    has_binding_conditions: bool

    @property
    def devices_have_placements(self) -> bool:
        """Whether there are devices with placements of their own."""
        return bool(self.slice.placed_per_device and self.devices)


@dataclass(frozen=True, slots=True, eq=False)
class _ListedDevices:
    """Data that pools with equal devices share; `Pool` explains positions and invalid.

    consumers: devices that consume counters, as bits. devices: kept, so that no others get their
    id.
    """

    devices: tuple[DeviceFacts, ...]
    positions: dict[str, int]
    invalid: str
    consumers: int
    has_taints: bool

    @classmethod
    def of(cls, devices: tuple[DeviceFacts, ...]) -> _ListedDevices:
        positions: dict[str, int] = {}
        invalid, consumers = "", 0
        for position, device in enumerate(devices):
            if positions.setdefault(device.name, position) != position and not invalid:
                invalid = f"duplicate device name {device.name}"
            if device.consumes:
                consumers |= 1 << position
        has_taints = any(device.taints for device in devices)
        return cls(devices, positions, invalid, consumers, has_taints)


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
        # Slices by name: those of one node, by the node's name, and all others.
        self._local: dict[str, dict[str, _SliceDevices]] = {}
        self._shared: dict[str, _SliceDevices] = {}
        self._slices: dict[str, SliceFacts] = {}
        # By node: its labels, and its pools or the error that they raise.
        self._pools_of_node: dict[str, tuple[Labels, tuple[Pool, ...] | str]] = {}
        # By (driver, pool), and the ids of the slices in it.
        self._pools_by_slices: dict[tuple[str, str], dict[tuple[int, ...], Pool]] = {}
        # By id of the devices of a slice: nodes of one type often share the tuple.
        self._listed_by_id: dict[int, _ListedDevices] = {}
        self._watchers: list[Callable[[str | None], None]] = []

    def watch(self, on_change: Callable[[str | None], None]) -> None:
        """Call `on_change` with the node of each changed slice; None if it is of several nodes."""
        self._watchers.append(on_change)

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
        self._entries_with(facts)[facts.name] = self._with_devices(facts)
        self._drop_cached(facts)

    def remove(self, name: str) -> None:
        """Remove a slice; an unknown one changes nothing."""
        facts = self._slices.pop(name, None)
        if facts is not None:
            entries = self._entries_with(facts)
            del entries[name]
            if not entries:
                self._local.pop(facts.placement.node_name or "", None)
            self._drop_cached(facts)

    def forget_node(self, node: str) -> None:
        """Drop the cached pools of a removed node."""
        self._pools_of_node.pop(node, None)

    def seen_from(self, node: str, labels: Labels) -> tuple[Pool, ...]:
        """Return the pools of a node, in the order in which devices are tried.

        Raises:
            AllocationError: the node selector of a slice does not parse.
        """
        seen = self._pools_of_node.get(node)
        if seen is None or (seen[0] is not labels and seen[0] != labels):
            seen = self._pools_of_node[node] = (labels, self._gather(node, labels))
        pools = seen[1]
        if isinstance(pools, str):
            raise AllocationError(pools)
        return pools

    def _entries_with(self, facts: SliceFacts) -> dict[str, _SliceDevices]:
        """Return the entries to which a slice belongs: of its node, or of several nodes."""
        node = facts.placement.node_name
        return self._local.setdefault(node, {}) if node else self._shared

    @staticmethod
    def _with_devices(facts: SliceFacts) -> _SliceDevices:
        devices = tuple(
            PoolDevice((facts.driver, facts.pool, each.name), each, facts) for each in facts.devices
        )
        return _SliceDevices(facts, devices, any(each.binding_conditions for each in facts.devices))

    def _drop_cached(self, facts: SliceFacts) -> None:
        """Drop all cached pools that depend on a slice, and notify the watchers."""
        self._pools_by_slices.pop((facts.driver, facts.pool), None)
        node = facts.placement.node_name or None
        if node:
            self._pools_of_node.pop(node, None)
        else:
            self._pools_of_node.clear()
        for each in self._watchers:
            each(node)

    def _gather(self, node: str, all_labels: Labels) -> tuple[Pool, ...] | str:
        """Return the pools that a node sees, or the error of upstream's GatherPools."""
        local = self._local.get(node, {})
        if len(local) == 1 and not self._shared:
            # Most nodes see one slice, which no other node sees.
            (entry,) = local.values()
            if entry.slice.placed_per_device is None:
                return (self._shared_pool((entry.slice.driver, entry.slice.pool), [entry]),)
        labels = dict(all_labels)
        entries = [*local.values(), *self._shared.values()]
        entries.sort(key=attrgetter("slice.name"))
        seen: list[_SliceDevices] = []
        for entry in entries:
            try:
                if self._is_seen_from(entry, node, labels):
                    seen.append(entry)
            except AllocationError as error:
                return f"gather pool information: {error}"
        # Stable: slices with binding conditions are tried after all others.
        seen.sort(key=attrgetter("has_binding_conditions"))
        pools: dict[tuple[str, str], list[_SliceDevices]] = {}
        for entry in seen:
            _add_to_pool(pools.setdefault((entry.slice.driver, entry.slice.pool), []), entry)
        found = [(self._shared_pool(key, pools[key]), pools[key]) for key in sorted(pools)]
        found.sort(key=lambda pair: any(entry.has_binding_conditions for entry in pair[1]))
        return tuple(pool for pool, _ in found)

    def _is_seen_from(self, entry: _SliceDevices, node: str, labels: dict[str, str]) -> bool:
        facts = entry.slice
        # As upstream, a slice that uses a field of a disabled feature is ignored.
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

    def _shared_pool(self, key: tuple[str, str], entries: list[_SliceDevices]) -> Pool:
        """Return the pool with these slices; nodes with the same slices share it."""
        pools = self._pools_by_slices.setdefault(key, {})
        # The ids stay valid: `_drop_cached` drops the pools together with any of their slices.
        identity = tuple(map(id, entries))
        pool = pools.get(identity)
        if pool is None:
            listed = self._listed(entries)
            pool = pools[identity] = _pool_of(key, entries, listed, self._gates)
        return pool

    def _listed(self, entries: list[_SliceDevices]) -> _ListedDevices:
        """Return what pools with these devices share, which is often known from another node."""
        if len(entries) > 1:
            return _ListedDevices.of(tuple([each for e in entries for each in e.slice.devices]))
        devices = entries[0].slice.devices
        found = self._listed_by_id.get(id(devices))
        if found is None:
            if len(self._listed_by_id) >= LISTED_MAX:
                self._listed_by_id.clear()
            found = self._listed_by_id[id(devices)] = _ListedDevices.of(devices)
        return found


def _add_to_pool(entries: list[_SliceDevices], entry: _SliceDevices) -> None:
    """Add a slice unless it is older than those of the pool; a newer one replaces them."""
    if entries and entry.slice.generation < entries[0].slice.generation:
        return
    if entries and entry.slice.generation > entries[0].slice.generation:
        entries.clear()
    entries.append(entry)


def _pool_of(
    key: tuple[str, str], entries: list[_SliceDevices], listed: _ListedDevices, gates: DeviceGates
) -> Pool:
    """Return the pool of some slices. listed: data on the devices of all these slices."""
    devices = entries[0].devices
    if len(entries) > 1:
        devices = tuple([device for entry in entries for device in entry.devices])
    is_partitionable = gates.partitionable and (
        bool(listed.consumers) or any(entry.devices_have_placements for entry in entries)
    )
    has_taints = gates.taints and listed.has_taints
    return Pool(
        driver=key[0],
        name=key[1],
        slices=tuple([entry.slice for entry in entries]),
        devices=devices,
        is_incomplete=len(entries) != entries[0].slice.slices_in_pool,
        invalid=listed.invalid,
        unallocatable=0 if gates.partitionable else listed.consumers,
        needs_search=gates.consumable_capacity or is_partitionable or has_taints,
        depends_on_use_alone=not is_partitionable and not has_taints,
        positions=listed.positions,
    )

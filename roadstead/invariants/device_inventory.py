"""The devices of a cluster at one point of a journal, and which of them a node reaches.

As the allocator of kube-scheduler 1.34 sees them: of a pool, only the slices that the node reaches
count, and of these only the newest generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from roadstead.cel.errors import CelCompileError, CelRunError
from roadstead.cel.selector import compile_selector
from roadstead.facts.devices import (
    DeviceClassFacts,
    DeviceFacts,
    DevicesFacts,
    DeviceTaintRule,
    Placement,
    SliceFacts,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.taints import Taint
from roadstead.invariants.world import matches_terms

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""

Pool = tuple[str, str]
"""Driver and name of a pool."""

PRIORITIZED_LIST = "DRAPrioritizedList"
ADMIN_ACCESS = "DRAAdminAccess"
PARTITIONABLE = "DRAPartitionableDevices"
TAINTS = "DRADeviceTaints"
CONSUMABLE = "DRAConsumableCapacity"
BINDING_CONDITIONS = "DRADeviceBindingConditions"


@dataclass(frozen=True, slots=True)
class ReachedDevices:
    """The devices that a node reaches.

    placements: which nodes reach each device: its own placement or that of its slice. incomplete:
    pools of which the node does not reach all slices. invalid: pools with two devices of one name.
    outdated: device that a slice of an older generation lists → the pool's newest generation.
    """

    devices: dict[DeviceId, DeviceFacts]
    placements: dict[DeviceId, Placement]
    incomplete: tuple[Pool, ...]
    invalid: frozenset[Pool]
    outdated: dict[DeviceId, int]


@dataclass(slots=True)
class Inventory:
    """Slices, classes and taint rules of devices.

    gates: the feature gates that are on; None if the journal does not record them: then no gate
    counts as on, and none as off.
    devices: all that slices list, each with the newest slice that lists it. _slices: by the name of
    the node to which they belong ("" for slices that several nodes may reach), then by their own
    name. _reached: the devices that a node reaches, by its name, with the facts of the node for
    which they were computed. _rules: see `DeviceTaintRule`.
    """

    gates: frozenset[str] | None = None
    classes: dict[str, DeviceClassFacts] = field(default_factory=dict)
    devices: dict[DeviceId, tuple[SliceFacts, DeviceFacts]] = field(default_factory=dict)
    _rules: tuple[DeviceTaintRule, ...] = ()
    _slices: dict[str, dict[str, SliceFacts]] = field(default_factory=dict)
    _reached: dict[str, tuple[NodeFacts, ReachedDevices]] = field(default_factory=dict)

    def begin(self, facts: DevicesFacts) -> None:
        """Set the objects of the cluster."""
        self.classes = {each.name: each for each in facts.classes}
        self._rules = facts.taint_rules
        self.devices, self._reached, self._slices = {}, {}, {}
        for each in {each.name: each for each in facts.slices}.values():
            self._slices.setdefault(each.placement.node_name or "", {})[each.name] = each
        for each in sorted(facts.slices, key=attrgetter("generation")):
            for device in each.devices:
                self.devices[each.driver, each.pool, device.name] = each, device

    def is_on(self, gate: str) -> bool:
        """Whether a gate is surely on."""
        return self.gates is not None and gate in self.gates

    def is_off(self, gate: str) -> bool:
        """Whether a gate is surely off."""
        return self.gates is not None and gate not in self.gates

    def reached_from(self, node: NodeFacts) -> ReachedDevices:
        """Return the devices that a node reaches."""
        computed = self._reached.get(node.name)
        if computed is None or computed[0] is not node:
            computed = self._reached[node.name] = node, self._gather(node)
        return computed[1]

    def taints_of(self, driver: str, pool: str, device: DeviceFacts) -> Iterator[Taint]:
        """Yield the taints of a device: its own, and those of the rules that select it."""
        yield from device.taints
        for rule in self._rules:
            if self._applies(rule, driver, pool, device):
                yield rule.taint

    def _gather(self, node: NodeFacts) -> ReachedDevices:
        pools: dict[Pool, list[SliceFacts]] = {}
        for each in (*self._slices.get(node.name, {}).values(), *self._slices.get("", {}).values()):
            if self._reaches_slice(each, node):
                pools.setdefault((each.driver, each.pool), []).append(each)
        devices: dict[DeviceId, DeviceFacts] = {}
        placements: dict[DeviceId, Placement] = {}
        outdated: dict[DeviceId, int] = {}
        incomplete, invalid = [], set()
        for pool, slices in pools.items():
            newest = max(each.generation for each in slices)
            current = [each for each in slices if each.generation == newest]
            if len(current) != current[0].slices_in_pool:
                incomplete.append(pool)
            listed = [(each, device) for each in current for device in each.devices]
            if len({device.name for _, device in listed}) != len(listed):
                invalid.add(pool)
            for each, device in listed:
                place = device.placement if each.placed_per_device else each.placement
                if reaches(place, node):
                    devices[*pool, device.name] = device
                    placements[*pool, device.name] = place
            older = (each for each in slices if each.generation != newest)
            names = {device.name for each in older for device in each.devices}
            outdated |= {(*pool, name): newest for name in names}
        return ReachedDevices(devices, placements, tuple(incomplete), frozenset(invalid), outdated)

    def _reaches_slice(self, facts: SliceFacts, node: NodeFacts) -> bool:
        """Whether a node reaches a slice or, with perDeviceNodeSelection, one of its devices."""
        if facts.placed_per_device is not None and self.is_off(PARTITIONABLE):
            return False
        place = facts.placement
        if place.node_name or place.all_nodes or place.terms is not None:
            return reaches(place, node)
        return bool(facts.placed_per_device) and any(
            reaches(device.placement, node) for device in facts.devices
        )

    def _applies(self, rule: DeviceTaintRule, driver: str, pool: str, device: DeviceFacts) -> bool:
        """Whether a taint rule selects a device; a criterion of None selects all."""
        criteria = (rule.driver, driver), (rule.pool, pool), (rule.device, device.name)
        if any(wanted not in (None, actual) for wanted, actual in criteria):
            return False
        selectors = rule.selectors
        if rule.device_class is not None:
            device_class = self.classes.get(rule.device_class)
            if device_class is None:
                return False
            selectors = device_class.selectors + selectors
        # Selectors of rules do not see whether several claims may share the device.
        shown = replace(device, allows_several=False)
        return first_unmet(selectors, driver, shown) is None


def newest_of_pools(slices: Sequence[SliceFacts]) -> list[SliceFacts]:
    """Return the slices of the newest generation of each pool."""
    newest: dict[Pool, int] = {}
    for each in slices:
        pool = each.driver, each.pool
        newest[pool] = max(each.generation, newest.get(pool, each.generation))
    return [each for each in slices if each.generation == newest[each.driver, each.pool]]


def reaches(placement: Placement, node: NodeFacts) -> bool:
    """Whether a node reaches a slice or device with this placement."""
    if placement.node_name:
        return placement.node_name == node.name
    return placement.all_nodes or (
        placement.terms is not None and matches_terms(placement.terms, node)
    )


def first_unmet(selectors: tuple[str, ...], driver: str, device: DeviceFacts) -> str | None:
    """Return how a device fails the first selector that it does not match; None if it matches."""
    for index, expression in enumerate(selectors):
        try:
            if not compile_selector(expression).matches(driver, device):
                return f"does not match selector #{index}"
        except (CelCompileError, CelRunError) as error:
            return f"cannot be compared with selector #{index}: {error}"
    return None

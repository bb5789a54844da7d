"""Texts that explain why requests of claims cannot be satisfied.

Requests are looked at one by one: constraints, counters, capacities and the other requests of the
pod are not. Only explanations read this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roadstead.devices.pools import DeviceId, PoolDevice, reaches
from roadstead.devices.selectors import SelectorFailure
from roadstead.facts.taints import tolerated

if TYPE_CHECKING:
    from roadstead.devices.allocator import Allocator
    from roadstead.devices.plans import Choice, Plan
    from roadstead.facts.node import NodeFacts


@dataclass(slots=True)
class _MatchingDevices:
    """The devices that match a request, on some nodes.

    used: those in use. unusable: device → why it cannot be used although it is free.
    too_few: number of nodes on which the usable ones do not suffice.
    """

    matching: set[DeviceId] = field(default_factory=set)
    used: set[DeviceId] = field(default_factory=set)
    unusable: dict[DeviceId, str] = field(default_factory=dict)
    too_few: int = 0


def shortages(allocator: Allocator, plan: Plan, nodes: Sequence[NodeFacts]) -> Iterator[str]:
    """Yield a line for each request or alternative of claims, on nodes that have no allocation."""
    in_use = allocator.in_use.ids()
    for claim in plan.claims:
        for request in claim.requests:
            for choice in request.choices:
                if choice.device_class is not None and not choice.error:
                    found = _found(allocator, choice, nodes, in_use.__contains__)
                    name = f"{claim.facts.key}, request {choice.result_name}"
                    yield f"{name} ({_wanted(choice)}): {_text(choice, found, len(nodes))}"


def _found(
    allocator: Allocator,
    choice: Choice,
    nodes: Sequence[NodeFacts],
    is_used: Callable[[DeviceId], bool],
) -> _MatchingDevices:
    found = _MatchingDevices()
    for node in nodes:
        labels, matching, free = dict(node.labels), 0, 0
        for pool in allocator.pools.seen_from(node.name, node.labels):
            for device in pool.devices:
                if device.has_own_placement and not reaches(device.placement, node.name, labels):
                    continue
                outcome = allocator.selectors.evaluate(choice.query, device.id[0], device.facts)
                if isinstance(outcome, SelectorFailure) or not outcome:
                    continue
                matching += 1
                found.matching.add(device.id)
                if is_used(device.id) and not choice.facts.has_admin_access:
                    found.used.add(device.id)
                elif why := _why_unusable(allocator, choice, device):
                    found.unusable[device.id] = why
                else:
                    free += 1
        # Mode All needs every matching device, and at least one.
        found.too_few += free < (max(matching, 1) if choice.is_all else choice.facts.count)
    return found


def _why_unusable(allocator: Allocator, choice: Choice, device: PoolDevice) -> str:
    gates, facts = allocator.gates, device.facts
    if facts.consumes and not gates.partitionable:
        return "cannot be used without DRAPartitionableDevices: true"
    if facts.binding_conditions and not gates.binding_conditions:
        return "cannot be used without DRADeviceBindingConditions: true"
    tolerations = choice.facts.tolerations
    if gates.taints and not all(tolerated(each, tolerations) for each in facts.taints):
        return "not used because of taints"
    return ""


def _wanted(choice: Choice) -> str:
    facts = choice.facts
    count = "all devices" if choice.is_all else f"{facts.count} device{'s' * (facts.count != 1)}"
    return f"{count} of class {facts.device_class}"


def _text(choice: Choice, found: _MatchingDevices, nodes: int) -> str:
    reasons = Counter(found.unusable.values())
    parts = [f"{len(found.matching):,} match"]
    parts += [f"{len(found.used):,} of them in use"] if found.used else []
    parts += [f"{count:,} of them {why}" for why, count in sorted(reasons.items())]
    if found.too_few:
        parts.append(f"too few free on {found.too_few:,} of {nodes:,} nodes")
    if found.too_few < nodes:
        rest = nodes - found.too_few
        parts.append(
            f"enough free on {rest:,}, where constraints, counters or other requests exclude them"
        )
    return ", ".join(parts)

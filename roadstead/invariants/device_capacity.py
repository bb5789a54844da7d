"""Amounts that a request consumes of the capacities of a device (DRAConsumableCapacity).

A device that allows several allocations is allocated in shares; each consumes a part of the
capacities.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from roadstead.facts.devices import (
    AllocatedDevice,
    Amounts,
    DeviceCapacity,
    DeviceFacts,
    RequestPolicy,
)
from roadstead.invariants.amounts import amount_of


def capacity_errors(
    device: DeviceFacts, requested: Amounts, result: AllocatedDevice
) -> Iterator[str]:
    """Yield why a device, or the share of it, does not have the capacity that was requested."""
    wanted = {name: amount_of(text) for name, text in requested}
    capacities = {each.name: each for each in device.capacity}
    for name in wanted.keys() - capacities.keys():
        yield f"has no capacity {name}, which is requested"
    # A device for one claim is allocated as a whole: a request must fit, and nothing is consumed.
    if not device.allows_several:
        for name, amount in wanted.items():
            if name in capacities and amount > amount_of(capacities[name].amount):
                yield f"has less of capacity {name} than is requested"
        return
    if result.share_id is None:
        yield "is one of several claims, and has no share"
    consumed = {name: amount_of(text) for name, text in result.consumed or ()}
    for name in consumed.keys() - capacities.keys():
        yield f"has no capacity {name}, which is consumed"
    for each in device.capacity:
        if each.name not in consumed:
            yield f"has a capacity {each.name}, of which nothing is consumed"
        else:
            yield from _amount_errors(each, wanted.get(each.name), consumed[each.name])


def _amount_errors(
    capacity: DeviceCapacity, wanted: Fraction | None, consumed: Fraction
) -> Iterator[str]:
    policy = capacity.policy
    default = None if policy is None or policy.default is None else amount_of(policy.default)
    if wanted is None:
        # Without default, the whole capacity.
        wanted = amount_of(capacity.amount) if default is None else default
    if consumed < wanted:
        yield f"is consumed by {consumed} of capacity {capacity.name}, {wanted} is requested"
    if policy is not None and consumed != default and not _allows(policy, consumed):
        yield f"is consumed by {consumed} of capacity {capacity.name}, which its policy forbids"


def _allows(policy: RequestPolicy, consumed: Fraction) -> bool:
    has_range = any(bound is not None for bound in (policy.minimum, policy.maximum, policy.step))
    if not has_range:
        return not policy.valid_amounts or consumed in map(amount_of, policy.valid_amounts)
    least = Fraction(0) if policy.minimum is None else amount_of(policy.minimum)
    if consumed < least or (policy.maximum is not None and consumed > amount_of(policy.maximum)):
        return False
    # Steps are counted in whole units, as upstream does.
    step = 1 if policy.step is None else ceil(amount_of(policy.step))
    return step > 0 and (policy.step is None or (ceil(consumed) - ceil(least)) % step == 0)

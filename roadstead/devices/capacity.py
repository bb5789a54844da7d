"""Consumable capacity: what a request consumes of a device that several claims may use.

Upstream: consumable_capacity.go of the experimental allocator (gate DRAConsumableCapacity).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.devices.errors import AllocatorPanic
from roadstead.protocol.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.facts.devices import Amounts, DeviceCapacity, DeviceFacts, RequestPolicy

Quantities = dict[str, Quantity]

_ZERO = Quantity(0)


class Consumed(Quantities):
    """Quantities by name that add up; a missing name is zero."""

    def add(self, amounts: Mapping[str, Quantity]) -> None:
        """Add the given amounts."""
        for name, amount in amounts.items():
            present = self.get(name)
            self[name] = amount if present is None else present.add(amount)

    def subtract(self, amounts: Mapping[str, Quantity]) -> None:
        """Subtract the given amounts; unknown names are ignored, as upstream."""
        for name, amount in amounts.items():
            present = self.get(name)
            if present is not None:
                self[name] = present.sub(amount)


def parsed(amounts: Amounts) -> Quantities:
    """Return amounts as quantities."""
    return {name: parse_quantity(text) for name, text in amounts}


def fits(
    device: DeviceFacts,
    requested: Amounts | None,
    consumed: Mapping[str, Quantity],
    allocating: Mapping[str, Quantity],
) -> bool:
    """Whether a device can still serve a request.

    consumed: amounts that existing allocations have of this device. allocating: those that the
    allocation in progress gave to earlier requests. The request consumes what `consumption`
    returns.
    """
    wanted = parsed(requested or ())
    names = {each.name for each in device.capacity}
    if not names.issuperset(wanted):
        return False
    for capacity in device.capacity:
        amount = _consumption(wanted.get(capacity.name), capacity)
        if capacity.policy is not None and _violates(amount, capacity.policy):
            return False
        total = consumed.get(capacity.name, _ZERO).add(amount)
        total = total.add(allocating.get(capacity.name, _ZERO))
        if total.cmp(parse_quantity(capacity.amount)) > 0:
            return False
    return True


def consumption(device: DeviceFacts, requested: Amounts | None) -> Quantities:
    """Return what a request consumes of each capacity of a device.

    Of a capacity that the request does not name: its policy's default; without a default, the whole
    capacity.
    """
    wanted = parsed(requested or ())
    return {each.name: _consumption(wanted.get(each.name), each) for each in device.capacity}


def _consumption(wanted: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    """Return the amount consumed of one capacity: `wanted`, rounded up as its policy demands."""
    policy = capacity.policy
    if wanted is None:
        has_default = policy is not None and policy.default is not None
        return parse_quantity(policy.default if has_default else capacity.amount)  # type: ignore[union-attr,arg-type]
    if policy is None:
        return wanted
    if policy.minimum is not None:
        return _rounded_to_step(wanted, parse_quantity(policy.minimum), policy.step)
    # The smallest valid amount that suffices: the API requires ascending order. Without one,
    # `wanted`, which then violates the policy.
    return next(
        (valid for valid in map(parse_quantity, policy.valid_amounts) if wanted.cmp(valid) <= 0),
        wanted,
    )


def _rounded_to_step(wanted: Quantity, least: Quantity, step: str | None) -> Quantity:
    if wanted.cmp(least) < 0:
        return least
    if step is None:
        return wanted
    size = parse_quantity(step).value()
    _check_step(size)
    steps = -(-(wanted.value() - least.value()) // size)
    return Quantity(least.value() + size * steps, format="BinarySI")


def _violates(amount: Quantity, policy: RequestPolicy) -> bool:
    # The default is always allowed.
    if policy.default is not None and amount == parse_quantity(policy.default):
        return False
    has_range = any(bound is not None for bound in (policy.minimum, policy.maximum, policy.step))
    if not has_range:
        return bool(policy.valid_amounts) and amount not in map(
            parse_quantity, policy.valid_amounts
        )
    if policy.maximum is not None and amount.cmp(parse_quantity(policy.maximum)) > 0:
        return True
    if policy.step is None:
        return False
    size = parse_quantity(policy.step).value()
    _check_step(size)
    least = 0 if policy.minimum is None else parse_quantity(policy.minimum).value()
    return (amount.value() - least) % size != 0


def _check_step(size: int) -> None:
    """Raise AllocatorPanic for step 0, for which upstream panics."""
    if size == 0:
        raise AllocatorPanic("runtime error: integer divide by zero")

"""Whether shared devices lack capacity for a plan, found without a search (DRAConsumableCapacity).

A search for eight devices of which seven are free tries all orders of the seven, 13,700 of them, as
upstream's does. Counting how many equal requests the devices can serve gives the same answer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roadstead.devices import capacity
from roadstead.devices.bits import positions_of
from roadstead.devices.capacity import Consumed
from roadstead.protocol.quantity import QuantityError

if TYPE_CHECKING:
    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.plans import Choice, Plan
    from roadstead.devices.pools import PoolDevice
    from roadstead.devices.selectors import Query
    from roadstead.devices.views import VisiblePools
    from roadstead.facts.devices import Amounts

_Request = tuple["Query", "Amounts | None"]
"""Selectors and capacities of a request: requests with equal ones can use the same devices."""


def lacks_capacity(plan: Plan, view: VisiblePools, in_use: DevicesInUse) -> bool:
    """Whether a node's devices surely cannot serve all equal requests of a plan.

    False: a search must decide, and it may end with an error. view: the pools that the node sees.
    """
    choices = [request.choices[0] for claim in plan.claims for request in claim.requests]
    # For a single request the search tries each device only once.
    if len(choices) == 1 or not all(map(_is_plain, choices)):
        return False
    if any(request.has_alternatives for claim in plan.claims for request in claim.requests):
        return False
    if any(pool.invalid for pool in view.pools):
        return False
    wanted = Counter[_Request]((each.query, each.facts.capacity) for each in choices)
    by_request = {(each.query, each.facts.capacity): each for each in choices}
    for choice in by_request.values():
        view.evaluate_all(choice)
        everything = ((pool, (1 << len(pool.devices)) - 1) for pool in view.pools)
        if any(view.may_fail(pool, choice, bits) for pool, bits in everything):
            return False
    try:
        return any(
            _served_by_node(by_request[request], number, view, in_use) < number
            for request, number in wanted.items()
        )
    except QuantityError:
        return False


def _is_plain(choice: Choice) -> bool:
    """Whether a choice wants one device; with more, upstream may crash (`chosen_devices.py`)."""
    return not choice.is_all and choice.facts.count == 1 and not choice.facts.has_admin_access


def _served_by_node(choice: Choice, most: int, view: VisiblePools, in_use: DevicesInUse) -> int:
    """Return how many such requests the devices of a node can serve, counted up to `most`."""
    served = 0
    for pool in view.pools:
        for position in positions_of(view.candidates(pool, choice) & ~in_use.bits(pool)):
            device = pool.devices[position]
            served += _served_by_device(device, choice.facts.capacity, most - served, in_use)
            if served >= most:
                return served
    return served


def _served_by_device(
    device: PoolDevice, requested: Amounts | None, most: int, in_use: DevicesInUse
) -> int:
    """Return how many such requests one device can serve, counted up to `most`."""
    consumed = in_use.consumed(device.id)
    allocating = Consumed()
    amounts = capacity.consumption(device.facts, requested)
    for number in range(most if device.facts.allows_several else 1):
        if not capacity.fits(device.facts, requested, consumed, allocating):
            return number
        allocating.add(amounts)
    return most if device.facts.allows_several else 1

"""The allocation in the status of a claim: chosen devices, configurations, node selector.

Upstream: the second half of Allocate, and createNodeSelector, in allocator_experimental.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from roadstead.devices.errors import AllocationError
from roadstead.facts.devices import (
    FROM_CLAIM,
    FROM_CLASS,
    AllocatedDevice,
    Allocation,
    DriverConfig,
    NodeTerms,
)
from roadstead.facts.selectors import NodeSelectorTerm, Requirement

if TYPE_CHECKING:
    from roadstead.devices.chosen_devices import Chosen
    from roadstead.devices.gates import DeviceGates
    from roadstead.devices.plans import ClaimPlan
    from roadstead.devices.pools import Pool, PoolDevice

NODES_MAX: Final = 65_536
"""Node selectors of single nodes that are cached, so that equal allocations share them."""

NewShareId = Callable[[], str]
"""Returns an unused ShareID: it names one claim's share of a device that several claims use."""


@dataclass(frozen=True, slots=True)
class KnownAllocation:
    """An allocation of a claim on one node, and where its devices are in the node's pools.

    places: (index of the pool in the node's pools, position of the device in the pool). On a node
    with equal pools, the devices at these places are allocated.
    """

    allocation: Allocation
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, allocation: Allocation, pools: Sequence[Pool]) -> KnownAllocation:
        """Return an allocation with the places of its devices. pools: those of its node."""
        index_of = {(pool.driver, pool.name): index for index, pool in enumerate(pools)}
        places = []
        for each in allocation.results:
            index = index_of[each.driver, each.pool]
            places.append((index, pools[index].positions[each.device]))
        return cls(allocation, tuple(places))

    def for_node(self, plan: ClaimPlan, pools: Sequence[Pool], node: str) -> Allocation:
        """Return the allocation for a node with equal pools. pools: those of this node.

        Raises:
            AllocationError: as `allocation_of`.
        """
        devices = [pools[index].devices[position] for index, position in self.places]
        results = [
            AllocatedDevice(
                each.request,
                *device.id,
                each.has_admin_access,
                each.tolerations,
                each.binding_conditions,
                each.binding_failure_conditions,
                each.share_id,
                each.consumed,
            )
            for each, device in zip(self.allocation.results, devices, strict=True)
        ]
        terms = _node_terms(plan, devices, node)
        return Allocation(tuple(results), self.allocation.configs, terms)


def allocation_of(
    plan: ClaimPlan,
    chosen: list[Chosen],
    selected: Callable[[int], int],
    node: str,
    gates: DeviceGates,
    new_share_id: NewShareId,
) -> Allocation:
    """Return the allocation of a claim on a node.

    selected: returns the index of a request's chosen alternative, from the index of the request.

    Raises:
        AllocationError: a slice has a node selector of several terms.
    """
    return Allocation(
        results=tuple(_result(each, gates, new_share_id) for each in chosen),
        configs=tuple(_configs(plan, selected)),
        node_terms=_node_terms(plan, [each.device for each in chosen], node),
    )


def _result(chosen: Chosen, gates: DeviceGates, new_share_id: NewShareId) -> AllocatedDevice:
    facts, consumed = chosen.device.facts, chosen.consumed
    driver, pool, name = chosen.device.id
    return AllocatedDevice(
        request=chosen.choice.result_name,
        driver=driver,
        pool=pool,
        device=name,
        has_admin_access=chosen.choice.facts.has_admin_access,
        binding_conditions=facts.binding_conditions if gates.binding_conditions else (),
        binding_failure_conditions=(
            facts.binding_failure_conditions if gates.binding_conditions else ()
        ),
        share_id=None if consumed is None else new_share_id(),
        consumed=tuple(sorted((key, str(value)) for key, value in consumed.items()))
        if consumed
        else None,
    )


def _configs(plan: ClaimPlan, selected: Callable[[int], int]) -> Iterator[DriverConfig]:
    """Yield the configurations of classes, one request after another, then those of the claim."""
    for index, request in enumerate(plan.requests):
        choice = request.choices[selected(index)]
        if choice.device_class is not None:
            for each in choice.device_class.configs:
                yield replace(each, requests=(), source=FROM_CLASS)
    for each in plan.facts.spec.configs:
        config = replace(each, source=FROM_CLAIM)
        if not each.requests:
            yield config
            continue
        # As upstream, once for every request to which it applies.
        for index, request in enumerate(plan.requests):
            choice = request.choices[selected(index)]
            # A configuration names requests, or alternatives of them as `request/alternative`.
            names = {choice.base_name}
            if request.has_alternatives:
                names.add(choice.result_name)
            if not names.isdisjoint(each.requests):
                yield config


@lru_cache(NODES_MAX)
def terms_of_node(node: str) -> NodeTerms:
    """Return the node selector of allocations on a node whose devices no other node reaches."""
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node,)),)),)


def _node_terms(plan: ClaimPlan, devices: Iterable[PoolDevice], node: str) -> NodeTerms | None:
    """Return the selector of the nodes that reach all devices; None for every node."""
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for each in devices:
        placement = each.placement
        if placement.node_name is not None or each.facts.binds_to_node:
            return terms_of_node(node)
        terms = placement.terms or ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {plan.facts.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_missing(term.fields, fields)
            _add_missing(term.expressions, expressions)
    if not (fields or expressions):
        return None
    return (NodeSelectorTerm(tuple(expressions), tuple(fields)),)


def _add_missing(requirements: Iterable[Requirement], known: list[Requirement]) -> None:
    """Append requirements to `known` unless it has them; the order of values does not matter."""
    for requirement in requirements:
        if not any(
            (requirement.key, requirement.operator) == (each.key, each.operator)
            and set(requirement.values) == set(each.values)
            for each in known
        ):
            known.append(requirement)

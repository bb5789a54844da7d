"""Plans: claims as the search reads them, compiled once for all nodes.

Upstream: the first half of Allocate, and validateDeviceRequest, in allocator_experimental.go. The
errors that they return are stored here with the request, and raised where upstream returns them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roadstead.devices.selectors import Query, query_of
from roadstead.facts.devices import ALL_DEVICES, EXACT_COUNT

if TYPE_CHECKING:
    from roadstead.devices.gates import DeviceGates
    from roadstead.facts.devices import (
        DeviceClaimFacts,
        DeviceClassFacts,
        DeviceConstraint,
        DeviceRequest,
        ExactRequest,
    )

RESULTS_MAX: Final = 32
"""Devices in one claim, as in the API (AllocationResultsMaxSize)."""

ANY_DEVICE: Final = query_of((), ())

Classes = Mapping[str, "DeviceClassFacts"]
"""Device classes by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One way to satisfy a request: the request itself, or one of its alternatives.

    parent: name of the request, if this is an alternative. query: the selectors of the class and
    the request. is_all: it wants all matching devices. error: why upstream refuses it.
    """

    facts: ExactRequest
    parent: str = ""
    device_class: DeviceClassFacts | None = None
    query: Query = ANY_DEVICE
    is_all: bool = False
    error: str = ""

    @property
    def result_name(self) -> str:
        """The name of the request in results: `request` or `request/alternative`."""
        return f"{self.parent}/{self.facts.name}" if self.parent else self.facts.name

    @property
    def base_name(self) -> str:
        """The name of the request, without alternative."""
        return self.parent or self.facts.name

    @property
    def alternative(self) -> str:
        """The alternative's name, or ""."""
        return self.facts.name if self.parent else ""


@dataclass(frozen=True, slots=True, eq=False)
class RequestPlan:
    """A request with the ways to satisfy it, in order. error: raised before those of choices."""

    choices: tuple[Choice, ...]
    has_alternatives: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimPlan:
    """A claim to allocate. error: of its constraints."""

    facts: DeviceClaimFacts
    requests: tuple[RequestPlan, ...]
    error: str = ""

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        """The claim's constraints."""
        return self.facts.spec.constraints


@dataclass(frozen=True, slots=True)
class Demand:
    """The devices that plain claims want, see `Plan`.

    steps: (index of the claim, choice) for each request, in order. totals: (query, number of
    devices that must match it), sorted; requests with equal queries are added up.
    """

    steps: tuple[tuple[int, Choice], ...]
    totals: tuple[tuple[Query, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The claims of a pod that are to be allocated, in the order of its spec.

    demand: None unless all claims are *plain*: without alternatives and errors, and every request
        is for a number of devices that it does not share.
    is_constrained: the claims have constraints, which the demand does not contain.
    shape: a number that plans share for which a search finds the same devices. Their errors may
        differ, because these name claims.
    """

    claims: tuple[ClaimPlan, ...]
    demand: Demand | None
    is_constrained: bool
    shape: int


def plan_of(
    claims: tuple[DeviceClaimFacts, ...], classes: Classes, gates: DeviceGates, shape: int
) -> Plan:
    """Compile claims. shape: see `Plan`."""
    plans = tuple(_claim_plan(claim, classes, gates) for claim in claims)
    is_plain = not gates.consumable_capacity and all(map(_is_plain, plans))
    return Plan(
        claims=plans,
        demand=_demand_of(plans) if is_plain else None,
        is_constrained=any(plan.constraints for plan in plans),
        shape=shape,
    )


def _is_plain(plan: ClaimPlan) -> bool:
    if plan.error:
        return False
    choices = [request.choices[0] for request in plan.requests]
    return (
        not any(request.error or request.has_alternatives for request in plan.requests)
        and not any(
            choice.error or choice.is_all or choice.facts.has_admin_access for choice in choices
        )
        and sum(choice.facts.count for choice in choices) <= RESULTS_MAX
    )


def _demand_of(plans: tuple[ClaimPlan, ...]) -> Demand:
    steps = tuple(
        (index, request.choices[0]) for index, plan in enumerate(plans) for request in plan.requests
    )
    totals: dict[Query, int] = {}
    for _, choice in steps:
        totals[choice.query] = totals.get(choice.query, 0) + choice.facts.count
    ordered = sorted(totals.items(), key=lambda total: (total[0].of_class, total[0].of_request))
    return Demand(steps, tuple(ordered))


def _claim_plan(claim: DeviceClaimFacts, classes: Classes, gates: DeviceGates) -> ClaimPlan:
    error = next(
        (
            f"claim {claim.key}, constraint #{index}: "
            "empty constraint (unsupported constraint type?)"
            for index, each in enumerate(claim.spec.constraints)
            if each.match_attribute is None and each.distinct_attribute is None
        ),
        "",
    )
    requests = tuple(
        _request_plan(claim, request, classes, gates) for request in claim.spec.requests
    )
    return ClaimPlan(claim, requests, error)


def _request_plan(
    claim: DeviceClaimFacts, request: DeviceRequest, classes: Classes, gates: DeviceGates
) -> RequestPlan:
    where = f"claim {claim.key}, request {request.name}: "
    exact_requests: tuple[ExactRequest, ...] = request.alternatives or (request,)
    if request.alternatives and not gates.prioritized_list:
        error = f"{where}has subrequests, but the DRAPrioritizedList feature is disabled"
    elif not gates.consumable_capacity and any(
        each.capacity is not None for each in exact_requests
    ):
        error = f"{where}has capacity requests, but the DRAConsumableCapacity feature is disabled"
    else:
        error = ""
    parent = request.name if request.alternatives else ""
    choices = tuple(_choice(claim, each, parent, classes, gates) for each in exact_requests)
    return RequestPlan(choices, bool(request.alternatives), error)


def _choice(
    claim: DeviceClaimFacts,
    exact: ExactRequest,
    parent: str,
    classes: Classes,
    gates: DeviceGates,
) -> Choice:
    device_class = classes.get(exact.device_class)
    if exact.has_admin_access and not parent and not gates.admin_access:
        problem = "admin access is requested, but the feature is disabled"
    elif not exact.device_class:
        problem = "missing device class name (unsupported request type?)"
    elif device_class is None:
        missing = f'deviceclass.resource.k8s.io "{exact.device_class}" not found'
        problem = f"could not retrieve device class {exact.device_class}: {missing}"
    elif exact.mode not in (EXACT_COUNT, ALL_DEVICES):
        problem = f"unsupported count mode {exact.mode}"
    else:
        problem = ""
    of_class = () if device_class is None else device_class.selectors
    return Choice(
        facts=exact,
        parent=parent,
        device_class=device_class,
        query=query_of(of_class, exact.selectors),
        is_all=exact.mode == ALL_DEVICES,
        error=f"claim {claim.key}, request {exact.name}: {problem}" if problem else "",
    )

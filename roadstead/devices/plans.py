"""Claims in the form in which they are allocated, compiled once for all nodes.

Upstream: the first half of Allocate, and validateDeviceRequest, in allocator_experimental.go.
What they refuse is an error of the request here, raised only where upstream reaches it.
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
"""Devices in one claim."""

ANY_DEVICE: Final = query_of((), ())

Classes = Mapping[str, "DeviceClassFacts"]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One way to satisfy a request: the request itself, or one of its alternatives.

    parent: name of the request, if this is an alternative. error: why upstream refuses it.
    """

    facts: ExactRequest
    parent: str = ""
    device_class: DeviceClassFacts | None = None
    query: Query = ANY_DEVICE
    is_all: bool = False
    error: str = ""

    @property
    def result_name(self) -> str:
        """The request as results name it."""
        return f"{self.parent}/{self.facts.name}" if self.parent else self.facts.name

    @property
    def base_name(self) -> str:
        """The request's name, of an alternative that of its request."""
        return self.parent or self.facts.name

    @property
    def alternative(self) -> str:
        """The alternative's name, or ""."""
        return self.facts.name if self.parent else ""


@dataclass(frozen=True, slots=True, eq=False)
class RequestPlan:
    """A request with the ways to satisfy it, in order. error: raised before these are looked at."""

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
    """What plain claims want. steps: index of the claim, and its request, in order.

    totals: how many devices must match each query, equal queries counted together; sorted.
    """

    steps: tuple[tuple[int, Choice], ...]
    totals: tuple[tuple[Query, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The claims of a pod that are to be allocated, in its order.

    demand: if all claims are plain: without alternatives and errors, every request counting devices
        that it does not share.
    is_constrained: constraints leave less choice than the demand shows.
    shape: number of what the outcome of a search depends on, but not its error.
    """

    claims: tuple[ClaimPlan, ...]
    demand: Demand | None
    is_constrained: bool
    shape: int


def plan_of(
    claims: tuple[DeviceClaimFacts, ...], classes: Classes, gates: DeviceGates, shape: int
) -> Plan:
    """Compile claims. shape: their number, see `Plan`."""
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
    forms: tuple[ExactRequest, ...] = request.alternatives or (request,)
    if request.alternatives and not gates.prioritized_list:
        error = f"{where}has subrequests, but the DRAPrioritizedList feature is disabled"
    elif not gates.consumable_capacity and any(each.capacity is not None for each in forms):
        error = f"{where}has capacity requests, but the DRAConsumableCapacity feature is disabled"
    else:
        error = ""
    parent = request.name if request.alternatives else ""
    choices = tuple(_choice(claim, each, parent, classes, gates) for each in forms)
    return RequestPlan(choices, bool(request.alternatives), error)


def _choice(
    claim: DeviceClaimFacts,
    form: ExactRequest,
    parent: str,
    classes: Classes,
    gates: DeviceGates,
) -> Choice:
    device_class = classes.get(form.device_class)
    if form.has_admin_access and not parent and not gates.admin_access:
        problem = "admin access is requested, but the feature is disabled"
    elif not form.device_class:
        problem = "missing device class name (unsupported request type?)"
    elif device_class is None:
        missing = f'deviceclass.resource.k8s.io "{form.device_class}" not found'
        problem = f"could not retrieve device class {form.device_class}: {missing}"
    elif form.mode not in (EXACT_COUNT, ALL_DEVICES):
        problem = f"unsupported count mode {form.mode}"
    else:
        problem = ""
    of_class = () if device_class is None else device_class.selectors
    return Choice(
        facts=form,
        parent=parent,
        device_class=device_class,
        query=query_of(of_class, form.selectors),
        is_all=form.mode == ALL_DEVICES,
        error=f"claim {claim.key}, request {form.name}: {problem}" if problem else "",
    )

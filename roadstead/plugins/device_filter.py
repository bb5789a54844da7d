"""Filter of DynamicResources: the nodes that have devices for a pod's claims.

Few nodes are searched for devices. The claims to allocate are compiled into a *plan*; the
allocator's *screen* gives a verdict for all nodes in one pass: NO, YES, or UNKNOWN. Only nodes with
UNKNOWN are searched. The screen records the outcome of each search by the *shape* of the plan: the
number of all plans with equal requests. The outcome holds for all *equivalent* nodes, which have
equal devices. The screen gives each node a number; `ScreenedNodes` translates the rows of a table
into these numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.devices.allocator import StepLimit
from roadstead.devices.claims import PodClaimError
from roadstead.devices.errors import AllocationAborted, AllocationError
from roadstead.devices.own_claims import own_claim_on
from roadstead.devices.plans import Plan
from roadstead.devices.quick import Verdict
from roadstead.devices.readiness import has_failed
from roadstead.devices.screen import Verdicts
from roadstead.devices.state import DeviceState, is_reachable
from roadstead.facts.devices import Allocation, DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import ALL_PASS, FilterResult
from roadstead.nodes.columns import Bools
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.offered_resources import OfferedResources
from roadstead.plugins.screened_nodes import ScreenedNodes
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.status import SUCCESS, Status, error, unresolvable

_NOT_ALLOCATED = unresolvable("cannot allocate all claims")
_TIMED_OUT = unresolvable("timed out trying to allocate devices")
_NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")

_NO, _UNKNOWN = (bytes((each.value,)) for each in (Verdict.NO, Verdict.UNKNOWN))


@dataclass(frozen=True, slots=True)
class PodDeviceClaims:
    """A pod's claims, in the pod's order.

    may_need_own: on some nodes, the pod also needs an own claim: one that scheduling makes for the
        extended resources that device classes serve.
    waiting: the claims that have no allocation yet.
    """

    claims: tuple[DeviceClaimFacts, ...]
    may_need_own: bool = False
    waiting: tuple[DeviceClaimFacts, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        waiting = tuple([each for each in self.claims if each.allocation is None])
        object.__setattr__(self, "waiting", waiting)

    def with_own(self, own: DeviceClaimFacts | None) -> PodDeviceClaims:
        """Return the claims with the pod's own claim on certain nodes, if it has one there."""
        return PodDeviceClaims(self.claims if own is None else (*self.claims, own))


class DeviceFilter:
    """Filter nodes by the devices and claims of one process.

    timeout_s: time limit of a search, which is converted to a limit of steps.
    """

    def __init__(self, devices: DeviceState, timeout_s: float) -> None:
        self.screened_nodes = ScreenedNodes(devices.allocator.nodes)
        self._devices = devices
        self._offered = OfferedResources()
        self._timeout_s = timeout_s

    def by_offer(self, pod_claims: PodDeviceClaims, pod: PodFacts, table: Table) -> FilterResult:
        """Filter rows in groups, by which of the pod's extended resources the nodes offer.

        The nodes of a group need the same own claim.
        """
        names = [name for name, amount in pod.requests if amount and is_extended_resource(name)]
        offers = np.array([self._offered.offering(table, each) for each in names]).T
        codes = np.zeros(len(table), np.int32)
        statuses: tuple[Status, ...] = ()
        # Assign numbers to all nodes now, so that the calls for views below only look them up.
        self.screened_nodes.numbers(table)
        groups, group_of = np.unique(offers, axis=0, return_inverse=True)
        for index, is_offered in enumerate(groups.tolist()):
            rows = np.flatnonzero(group_of.reshape(-1) == index)
            offered = {name for name, each in zip(names, is_offered, strict=True) if each}
            try:
                own = own_claim_on(self._devices, pod, offered, has_claims=bool(pod_claims.claims))
            except PodClaimError as problem:
                found = FilterResult(np.ones(len(rows), np.int32), (unresolvable(str(problem)),))
            else:
                found = self.filter(pod_claims.with_own(own), table.view(rows))
            if found.codes is not None:
                codes[rows] = np.where(found.codes, found.codes + len(statuses), 0)
                statuses += found.statuses
        return _merged(codes, statuses)

    def filter(self, pod_claims: PodDeviceClaims, table: Table) -> FilterResult:
        """Filter by screen, recorded outcomes and search; then check the allocated claims."""
        waiting = pod_claims.waiting
        plan = self._devices.allocator.plan(waiting) if waiting else None
        numbers = self.screened_nodes.numbers(table)
        verdicts = self._verdicts(plan, numbers)
        # `in` searches bytes in less time than NumPy compares the verdicts.
        verdict_bytes = verdicts.tobytes()
        needs_search = _UNKNOWN in verdict_bytes
        if not needs_search and len(waiting) == len(pod_claims.claims):
            if _NO not in verdict_bytes:
                return ALL_PASS
            return FilterResult((verdicts == _NO[0]).astype(np.int32), (_NOT_ALLOCATED,))
        is_unknown = verdicts == _UNKNOWN[0]
        # On every node, plans of one shape have one outcome.
        key = plan.shape if plan is not None and needs_search else None
        if key is not None:
            recorded = self._devices.allocator.nodes.outcomes(key, numbers)
            verdicts = np.where(is_unknown, recorded, verdicts)
            is_unknown = verdicts == _UNKNOWN[0]
        refused = verdicts == _NO[0]
        codes = refused.astype(np.int32)
        code_of = {_NOT_ALLOCATED: 1} if refused.any() else {}
        node_of, rows = table.columns.node, table.row_index
        for index in np.flatnonzero(is_unknown).tolist():
            assert plan is not None, "without a plan all verdicts are known"
            status = self._search(plan, node_of(int(rows[index])), key, int(numbers[index]))
            if not status.is_success:
                codes[index] = code_of.setdefault(status, len(code_of) + 1)
        # Allocated claims are checked on each node that has devices for the waiting ones.
        if len(waiting) < len(pod_claims.claims):
            unavailable = (codes == 0) & ~self.available(pod_claims.claims, table)
            if unavailable.any():
                codes[unavailable] = code_of.setdefault(_NOT_AVAILABLE, len(code_of) + 1)
        return FilterResult(codes, tuple(code_of)) if code_of else ALL_PASS

    def _verdicts(self, plan: Plan | None, numbers: NDArray[np.intp]) -> Verdicts:
        """Return a value of `Verdict` for each node; YES if nothing is to be allocated."""
        if plan is None:
            return np.full(len(numbers), Verdict.YES.value, np.int8)
        found = self._devices.allocator.screen(plan, numbers)
        if found is not None:
            return found
        return np.full(len(numbers), Verdict.UNKNOWN.value, np.int8)

    def _search(self, plan: Plan, node: NodeFacts, key: Hashable, number: int) -> Status:
        """Search devices on a node, and record whether there are any."""
        nodes = self._devices.allocator.nodes
        # An earlier node of this pass may have been equivalent.
        known = nodes.outcome_of_equivalent(key, number)
        if known is not Verdict.UNKNOWN:
            nodes.record(key, number, known)
            return _NOT_ALLOCATED if known is Verdict.NO else SUCCESS
        try:
            found = self.allocations(plan, node)
        except AllocationAborted:
            nodes.record(key, number, Verdict.UNKNOWN)
            return _TIMED_OUT
        except AllocationError as problem:
            return error(str(problem))
        nodes.record(key, number, Verdict.NO if found is None else Verdict.YES)
        return _NOT_ALLOCATED if found is None else SUCCESS

    def available(self, claims: tuple[DeviceClaimFacts, ...], table: Table) -> Bools:
        """Return on which rows all allocated claims can be used: bool[row]; see `unavailable`."""
        available = np.ones(len(table), np.bool_)
        for claim in claims:
            if claim.allocation is None:
                continue
            if self._has_failed(claim):
                return np.zeros(len(table), np.bool_)
            terms = claim.allocation.node_terms
            if terms is not None:
                reached = np.zeros(len(table), np.bool_)
                for term in terms:
                    reached |= table.match_term(term)
                available &= reached
        return available

    def _has_failed(self, claim: DeviceClaimFacts) -> bool:
        """Whether the driver of an allocated device reported a failure, or nothing in time."""
        devices = self._devices
        return devices.gates.binding_conditions and has_failed(claim, devices.now_ms)

    def allocations(self, plan: Plan, node: NodeFacts) -> tuple[Allocation, ...] | None:
        """Search an allocation for each claim of a plan on a node; see `Allocator.allocate`."""
        is_over = StepLimit.of_seconds(self._timeout_s)
        return self._devices.allocator.allocate(plan, node.name, node.labels, is_over=is_over)

    def unavailable(
        self, claims: tuple[DeviceClaimFacts, ...], node: NodeFacts
    ) -> Iterator[DeviceClaimFacts]:
        """Yield the allocated claims that cannot be used on a node."""
        for claim in claims:
            allocation = claim.allocation
            if allocation is None:
                continue
            is_reached = is_reachable(allocation.node_terms, node.name, node.labels)
            if not is_reached or self._has_failed(claim):
                yield claim

    def known_passes(
        self, pod_claims: PodDeviceClaims, table: Table, rows: Sequence[int]
    ) -> list[bool] | None:
        """Return whether each of a few rows passes for waiting claims, if that is cached.

        None if it is not cached for one of the rows.
        """
        numbers = self.screened_nodes.numbers_of(table, rows)
        if numbers is None:
            return None
        allocator = self._devices.allocator
        return allocator.known_answers(allocator.plan(pod_claims.waiting), numbers)

    def passes(self, claims: tuple[DeviceClaimFacts, ...], table: Table, row: Rows) -> bool:
        """Whether a single row passes for claims that are all waiting."""
        allocator = self._devices.allocator
        plan = allocator.plan(claims)
        verdict = allocator.known_verdict(plan, self.screened_nodes.number(table, int(row[0])))
        if verdict is not Verdict.UNKNOWN:
            return verdict is Verdict.YES
        return self.filter(PodDeviceClaims(claims), table.view(row)) is ALL_PASS


def _merged(codes: NDArray[np.int32], statuses: tuple[Status, ...]) -> FilterResult:
    """Return a result in which equal statuses share one code."""
    distinct = tuple(dict.fromkeys(statuses))
    if not distinct:
        return ALL_PASS
    new_codes = np.array([0, *(distinct.index(each) + 1 for each in statuses)], np.int32)
    return FilterResult(new_codes[codes], distinct)

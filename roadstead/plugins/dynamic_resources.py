"""DynamicResources: the node must have devices for the pod's claims.

PreEnqueue and PreFilter: every claim must exist and be usable; PreFilter also needs the classes of
claims that are to be allocated, and no claim may be in flight for another pod. A pod that needs no
claim is skipped.
Filter, in this order:
    claims to allocate     the allocator finds devices for all of them; an error ends the cycle, and
                           a search that takes too long refuses the node
    allocated claims       their node selector matches the node
PostFilter: deallocates a claim that was unavailable on some node and that no other pod reserves.

Extended resources that device classes serve (DRAExtendedResource) are claimed by a claim of the
pod's own, which depends on the node: rows are filtered in groups by which of these resources their
device plugins offer. A claim that an earlier attempt left blocks the pod; PostFilter deletes it.

Few nodes are searched for devices. The claims to allocate are compiled into a *plan*; the
allocator's *screen* gives a verdict for all nodes in one pass: NO, YES, or UNKNOWN, and only nodes
with UNKNOWN are searched. The screen gives each node a number and also records the outcomes of
searches. Pods whose claims differ only in their names are evaluated by one *substitute*
(`roadstead.devices.substitutes`), the facts with claims under made-up names.

Upstream's Reserve allocates, and PreBind writes the allocation. Here the cache allocates when it
assumes the pod (see `roadstead.devices.assumed`), and the binder commits the claims with the pod.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go of 1.34.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.config.plugin_args import DynamicResourcesArgs
from roadstead.devices.allocator import StepLimit
from roadstead.devices.claims import PodClaimError, claims_of
from roadstead.devices.errors import AllocationAborted, AllocationError
from roadstead.devices.own_claims import left_claim, may_need_claim, offered_by, own_claim_on
from roadstead.devices.plans import Plan
from roadstead.devices.quick import Verdict
from roadstead.devices.readiness import has_failed
from roadstead.devices.screen import Verdicts
from roadstead.devices.state import DeviceState, is_reachable
from roadstead.devices.substitutes import is_substitute
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import Allocation, DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodClaim, PodFacts, PodIdentity
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    ON_NONE,
    Effect,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    Handle,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ReservePlugin,
    only_succeeds,
)
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.device_claim_checks import check_supported, usable
from roadstead.plugins.offered_resources import OfferedResources
from roadstead.plugins.screened_nodes import ScreenedNodes
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

_NOT_ALLOCATED = unresolvable("cannot allocate all claims")
_TIMED_OUT = unresolvable("timed out trying to allocate devices")
_NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")
_NOTHING_TO_FREE = unschedulable("no new claims to deallocate")

_NO, _UNKNOWN = (bytes((each.value,)) for each in (Verdict.NO, Verdict.UNKNOWN))


@dataclass(frozen=True, slots=True)
class _PodClaims:
    """A pod's claims, in the pod's order.

    may_need_own: on some nodes, the pod gets a further claim of its own for extended resources.
    waiting: the claims that have no allocation yet.
    """

    claims: tuple[DeviceClaimFacts, ...]
    may_need_own: bool = False
    waiting: tuple[DeviceClaimFacts, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        waiting = tuple([each for each in self.claims if each.allocation is None])
        object.__setattr__(self, "waiting", waiting)

    def with_own(self, own: DeviceClaimFacts | None) -> _PodClaims:
        """Return the claims with the pod's own claim on certain nodes; None for none there."""
        return _PodClaims(self.claims if own is None else (*self.claims, own))


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name = "DynamicResources"
    reads = Reads.CLUSTER
    shares_by_shape = True
    binds_devices = True
    reads_refused_nodes = True

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._devices: DeviceState = handle.storage.devices
        self._nodes = ScreenedNodes(self._devices.allocator.nodes)
        self._offered = OfferedResources()
        self._timeout_s = args.filter_timeout_s

    def pre_enqueue(self, pod: PodFacts) -> Status:
        try:
            claims_of(self._devices.claims, pod)
        except PodClaimError as problem:
            return unresolvable(str(problem))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        check_supported(self._devices, pod.facts, self.name)
        try:
            claims = self._devices.substitutes.claims_of(pod.facts)
        except PodClaimError as problem:
            return PreFilterResult(unresolvable(str(problem)))
        may_need_own = may_need_claim(self._devices, pod.facts)
        if not (claims or may_need_own):
            return PreFilterResult(SKIP)
        for claim in claims:
            status = usable(self._devices, claim)
            if not status.is_success:
                return PreFilterResult(status)
        state.write(self.name, _PodClaims(claims, may_need_own))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        pod_claims = state.read(self.name, _PodClaims)
        if pod_claims.may_need_own:
            return self._filter_by_offer(pod_claims, pod.facts, table)
        return self._filtered(pod_claims, table)

    def _filter_by_offer(self, pod_claims: _PodClaims, pod: PodFacts, table: Table) -> FilterResult:
        """Filter rows in groups, by which of the pod's extended resources the nodes offer."""
        names = [name for name, n in pod.requests if n and is_extended_resource(name)]
        offers = np.array([self._offered.offering(table, each) for each in names]).T
        codes = np.zeros(len(table), np.int32)
        statuses: tuple[Status, ...] = ()
        # Once the whole table's nodes have numbers, the views below only look these up.
        self._nodes.numbers(table)
        groups, group_of = np.unique(offers, axis=0, return_inverse=True)
        for index, offers_each in enumerate(groups.tolist()):
            rows = np.flatnonzero(group_of.reshape(-1) == index)
            offer = {name for name, offered in zip(names, offers_each, strict=True) if offered}
            try:
                own = own_claim_on(self._devices, pod, offer, has_claims=bool(pod_claims.claims))
            except PodClaimError as problem:
                found = FilterResult(np.ones(len(rows), np.int32), (unresolvable(str(problem)),))
            else:
                found = self._filtered(pod_claims.with_own(own), table.view(rows))
            if found.codes is not None:
                codes[rows] = np.where(found.codes, found.codes + len(statuses), 0)
                statuses += found.statuses
        return _merged(codes, statuses)

    def _filtered(self, pod_claims: _PodClaims, table: Table) -> FilterResult:
        """Filter by screen, recorded outcomes and search; then compare the allocated claims."""
        waiting = pod_claims.waiting
        plan = self._devices.allocator.plan(waiting) if waiting else None
        numbers = self._nodes.numbers(table)
        verdicts = self._verdicts(plan, numbers)
        # Verdicts are bytes: to search them takes less time than to compare them.
        verdict_bytes = verdicts.tobytes()
        needs_search = _UNKNOWN in verdict_bytes
        if not needs_search and len(waiting) == len(pod_claims.claims):
            if _NO not in verdict_bytes:
                return ALL_PASS
            return FilterResult((verdicts == _NO[0]).astype(np.int32), (_NOT_ALLOCATED,))
        searched = verdicts == _UNKNOWN[0]
        key = plan.shape if plan is not None and needs_search else None
        if key is not None:
            known = self._devices.allocator.nodes.outcomes(key, numbers)
            verdicts = np.where(searched, known, verdicts)
            searched = verdicts == _UNKNOWN[0]
        refused = verdicts == _NO[0]
        codes = refused.astype(np.int32)
        code_of = {_NOT_ALLOCATED: 1} if refused.any() else {}
        # Allocated claims are compared with each node that has devices for the others.
        undecided = searched if len(waiting) == len(pod_claims.claims) else ~refused
        node_of, rows = table.columns.node, table.row_index
        for index in np.flatnonzero(undecided).tolist():
            node = node_of(int(rows[index]))
            status = SUCCESS
            if plan is not None and searched[index]:
                status = self._search(plan, node, key, int(numbers[index]))
            if status.is_success:
                status = self._allocated_status(pod_claims, node)
            if not status.is_success:
                codes[index] = code_of.setdefault(status, len(code_of) + 1)
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
        # A search of this call may have been that of a node like this one.
        known = nodes.outcome_alike(key, number)
        if known is not Verdict.UNKNOWN:
            nodes.record(key, number, known)
            return _NOT_ALLOCATED if known is Verdict.NO else SUCCESS
        try:
            found = self._allocation(plan, node)
        except AllocationAborted:
            nodes.record(key, number, Verdict.UNKNOWN)
            return _TIMED_OUT
        except AllocationError as problem:
            return error(str(problem))
        nodes.record(key, number, Verdict.NO if found is None else Verdict.YES)
        return _NOT_ALLOCATED if found is None else SUCCESS

    def _allocated_status(self, pod_claims: _PodClaims, node: NodeFacts) -> Status:
        return _NOT_AVAILABLE if any(self._unavailable(pod_claims.claims, node)) else SUCCESS

    def _allocation(self, plan: Plan, node: NodeFacts) -> tuple[Allocation, ...] | None:
        is_over = StepLimit.of_seconds(self._timeout_s)
        return self._devices.allocator.allocate(plan, node.name, node.labels, is_over=is_over)

    def _unavailable(
        self, claims: tuple[DeviceClaimFacts, ...], node: NodeFacts
    ) -> Iterator[DeviceClaimFacts]:
        """Yield the allocated claims that cannot be used on a node."""
        labels = dict(node.labels)
        for claim in claims:
            allocation = claim.allocation
            if allocation is None:
                continue
            if not is_reachable(allocation.node_terms, node.name, labels) or (
                self._devices.gates.binding_conditions and has_failed(claim, self._devices.now_ms)
            ):
                yield claim

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        if self.name in failed.unreached:
            # Upstream's plugin reads the cycle state that its PreFilter would have written.
            return PostFilterResult(error("not found"))
        try:
            claims = claims_of(self._devices.claims, pod)
        except PodClaimError:
            claims = ()
        may_need_own = may_need_claim(self._devices, pod)
        if not (claims or may_need_own) or failed.pre_filter.plugin == self.name:
            return PostFilterResult(_NOTHING_TO_FREE)
        earlier = left_claim(self._devices, pod) if may_need_own else None
        if earlier is not None:
            done = unschedulable("deletion of ResourceClaim completed")
            return PostFilterResult(done, deallocated=earlier.key, deallocatable=(earlier.key,))
        unavailable = {
            claim.key
            for node in failed.refused_nodes.get(self.name, ())
            for claim in self._blocking(claims, pod, node)
        }
        deallocatable = [
            each.key
            for each in dict.fromkeys(claims)
            if each.key in unavailable and self._is_only_for(pod, each)
        ]
        if not deallocatable:
            return PostFilterResult(unschedulable("still not schedulable"))
        done = unschedulable("deallocation of ResourceClaim completed")
        return PostFilterResult(
            done, deallocated=deallocatable[0], deallocatable=tuple(deallocatable)
        )

    def _blocking(
        self, claims: tuple[DeviceClaimFacts, ...], pod: PodFacts, node: NodeFacts
    ) -> list[DeviceClaimFacts]:
        """Return the claims for which a node was refused: none if others cannot be allocated."""
        unavailable = [*self._unavailable(claims, node)]
        try:
            own = own_claim_on(self._devices, pod, offered_by(node), has_claims=bool(claims))
        except PodClaimError:
            return []
        waiting = _PodClaims(claims).with_own(own).waiting
        if not (unavailable and waiting):
            return unavailable
        plan = self._devices.allocator.plan(waiting)
        try:
            found = self._allocation(plan, node)
        except AllocationError:
            return []
        return [] if found is None else unavailable

    @staticmethod
    def _is_only_for(pod: PodFacts, claim: DeviceClaimFacts) -> bool:
        """Whether no other pod reserves a claim."""
        uids = [each.uid for each in claim.reserved_for]
        return not uids or (pod.claims_as is not None and uids == [pod.claims_as.uid])

    @only_succeeds
    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    @only_succeeds
    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        return None

    @only_succeeds
    def pre_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    def state_version(self, pod: PodClass) -> Hashable:
        if not pod.facts.device_claims:
            return None
        if is_substitute(pod.facts):
            # A substitute names no real claim: what counts of changed claims is the use of devices.
            return self.lasting_state_version(pod), self._devices.allocator.nodes.version
        return self._devices.version

    def lasting_state_version(self, pod: PodClass) -> Hashable:
        if is_substitute(pod.facts):
            return self._devices.allocator.classes_version
        return self.state_version(pod)

    def reads_current(self, pod: PodClass) -> bool:
        return is_substitute(pod.facts)

    def changed_rows(self, table: Table, position: int) -> tuple[list[int] | None, int]:
        return self._nodes.rows_since(table, position)

    def known_passes(
        self, state: CycleState, pod: PodClass, table: Table, rows: Sequence[int]
    ) -> list[bool] | None:
        waiting = state.read(self.name, _PodClaims).waiting
        numbers = self._nodes.numbers_of(table, rows)
        if numbers is None:
            return None
        allocator = self._devices.allocator
        return allocator.known_answers(allocator.plan(waiting), numbers)

    def substitute_claims(self, pod: PodFacts) -> tuple[PodClaim, ...] | None:
        gates = self._devices.gates
        if not pod.device_claims or pod.volumes or pod.scheduling_gates:
            return None
        if gates.binding_conditions or gates.extended_resource:
            return None
        return self._devices.substitutes.claims_for(pod)

    def substitutes_for(self, substitute: PodFacts, pod: PodFacts) -> bool:
        return self._devices.substitutes.substitutes_for(substitute, pod)

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        with_claims = [index for index, pod in enumerate(pods) if pod.facts.device_claims]
        if not with_claims:
            return len(pods)
        # Only one pod with claims is counted: the next may need the devices that it allocates.
        first, *later = with_claims
        facts = pods[first].facts
        if not is_substitute(facts):
            return first
        claims = self._devices.substitutes.claims_of(facts)
        passes = self._passes(claims, table, rows[first : first + 1])
        return [*later, len(pods)][0] if passes else first

    def _passes(self, claims: tuple[DeviceClaimFacts, ...], table: Table, row: Rows) -> bool:
        """Whether a single row passes for claims without allocation."""
        allocator = self._devices.allocator
        plan = allocator.plan(claims)
        verdict = allocator.known_verdict(plan, self._nodes.number(table, int(row[0])))
        if verdict is not Verdict.UNKNOWN:
            return verdict is Verdict.YES
        return self._filtered(_PodClaims(claims), table.view(row)) is ALL_PASS

    def effect(self, placed: PodClass) -> Effect:
        if not placed.facts.device_claims:
            return ON_NONE
        return Effect("claims", _has_claims)

    def sign(self, pod: PodFacts) -> Hashable:
        if not pod.device_claims:
            return ()
        return (pod.namespace, pod.device_claims, pod.claims_as)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        node = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        changes = ActionType.ADD | ActionType.UPDATE
        claims_generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            on(EventResource.NODE, node),
            on(EventResource.RESOURCE_CLAIM, changes, self.after_claim_change),
            on(EventResource.POD, claims_generated, self.after_pod_change),
            on(EventResource.DEVICE_CLASS, changes),
            on(EventResource.RESOURCE_SLICE, changes),
        )

    def after_claim_change(
        self, pod: PodFacts, change: ObjectChange[DeviceClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a claim lost its allocation, or the status of a claim of the pod changed."""
        assert change.new is not None
        try:
            claims = claims_of(self._devices.claims, pod)
        except PodClaimError:
            return QueueingHint.QUEUE_SKIP
        old, new = change.old, change.new
        if old is not None and old.allocation is not None and new.allocation is None:
            return QueueingHint.QUEUE
        if all(each.uid != new.uid for each in claims):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.when(old is None or _status_of(old) != _status_of(new))

    def after_pod_change(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if all claims of this pod exist."""
        assert change.new is not None
        if not change.of_waiting_pod:
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.when(self.pre_enqueue(change.new.facts).is_success)


def _merged(codes: NDArray[np.int32], statuses: tuple[Status, ...]) -> FilterResult:
    """Return a result in which equal statuses share one code."""
    distinct = tuple(dict.fromkeys(statuses))
    if not distinct:
        return ALL_PASS
    new_codes = np.array([0, *(distinct.index(each) + 1 for each in statuses)], np.int32)
    return FilterResult(new_codes[codes], distinct)


def _has_claims(pod: PodClass) -> bool:
    return bool(pod.facts.device_claims)


def _status_of(claim: DeviceClaimFacts) -> Hashable:
    return claim.allocation, claim.reserved_for, claim.statuses

"""DynamicResources: the node must have devices for the pod's claims.

PreEnqueue and PreFilter: every claim must exist and be usable. PreFilter also requires the device
classes of claims that are to be allocated, and refuses a claim that is being allocated for another
pod. A pod that needs no claim is skipped.
Filter, in this order (`device_filter.py`):
    claims to allocate     the allocator finds devices for all of them; an error ends the cycle, and
                           a search that takes too long refuses the node
    allocated claims       their node selector matches the node
PostFilter: deallocates a claim that was unavailable on some node and reserved for no other pod.

For extended resources that device classes serve (DRAExtendedResource), the pod gets a claim that
scheduling makes, its *own claim*. Its requests depend on the node: rows are filtered in groups, by
which of these resources the nodes' device plugins offer. An own claim that an earlier attempt left
blocks the pod; PostFilter deletes it.

Pods whose claims differ only in their names are evaluated by one *substitute*
(`roadstead.devices.substitutes`), the facts with claims under made-up names. The devices that binds
allocate change its answers, so Filter is called for each of its pods (`runs_per_pod`), and reads
only the rows that changed (`changed_rows`).

Upstream's Reserve allocates, and PreBind writes the allocation. Here the cache allocates when it
assumes the pod (see `roadstead.devices.assumed`), and the binder commits the claims with the pod.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go of 1.34.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from roadstead.config.plugin_args import DynamicResourcesArgs
from roadstead.devices.claims import PodClaimError, claims_of
from roadstead.devices.errors import AllocationError
from roadstead.devices.own_claims import (
    allocatable_names,
    leftover_claim,
    may_need_claim,
    own_claim_on,
)
from roadstead.devices.shortage import shortages
from roadstead.devices.state import DeviceState
from roadstead.devices.substitutes import is_substitute
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import DeviceClaimFacts
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
from roadstead.plugins.device_filter import DeviceFilter, PodDeviceClaims
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

_NOTHING_TO_FREE = unschedulable("no new claims to deallocate")


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
    unprepared = "not found"
    # The cache allocates the claims of a pod that it assumes.
    binds_devices = True
    # PostFilter reads which nodes Filter refused.
    reads_refused_nodes = True

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._devices: DeviceState = handle.storage.devices
        timeout_s = args.filter_timeout_s if self._devices.gates.filter_timeout else 0.0
        self._filter = DeviceFilter(self._devices, timeout_s)

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
        state.write(self.name, PodDeviceClaims(claims, may_need_own))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        pod_claims = state.read(self.name, PodDeviceClaims)
        if pod_claims.may_need_own:
            return self._filter.by_offer(pod_claims, pod.facts, table)
        return self._filter.filter(pod_claims, table)

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        if self.name in failed.unreached:
            # This PreFilter did not run, as another plugin refused the pod before. Upstream's
            # plugin then fails: it reads the cycle state that its PreFilter would have written.
            return PostFilterResult(error("not found"))
        try:
            claims = claims_of(self._devices.claims, pod)
        except PodClaimError:
            claims = ()
        may_need_own = may_need_claim(self._devices, pod)
        if not (claims or may_need_own) or failed.pre_filter.plugin == self.name:
            return PostFilterResult(_NOTHING_TO_FREE)
        earlier = leftover_claim(self._devices, pod) if may_need_own else None
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
        # The first one is deallocated; upstream may choose any of them.
        return PostFilterResult(
            done, deallocated=deallocatable[0], deallocatable=tuple(deallocatable)
        )

    def details(self, pod: PodFacts, failed: PostFilterView) -> tuple[str, ...]:
        nodes = failed.refused_nodes.get(self.name, ())
        if not nodes:
            return ()
        try:
            claims = claims_of(self._devices.claims, pod)
            offered = allocatable_names(nodes[0])
            own = own_claim_on(self._devices, pod, offered, has_claims=bool(claims))
            plan = self._devices.allocator.plan(PodDeviceClaims(claims).with_own(own).waiting)
            return tuple(shortages(self._devices.allocator, plan, nodes))
        except (PodClaimError, AllocationError):
            return ()

    def _blocking(
        self, claims: tuple[DeviceClaimFacts, ...], pod: PodFacts, node: NodeFacts
    ) -> list[DeviceClaimFacts]:
        """Return the allocated claims for which Filter refused a node.

        PostFilter may free them. Return none if the node would also be refused for other claims.
        """
        unavailable = [*self._filter.unavailable(claims, node)]
        try:
            own = own_claim_on(self._devices, pod, allocatable_names(node), has_claims=bool(claims))
        except PodClaimError:
            return []
        waiting = PodDeviceClaims(claims).with_own(own).waiting
        if not (unavailable and waiting):
            return unavailable
        plan = self._devices.allocator.plan(waiting)
        try:
            found = self._filter.allocations(plan, node)
        except AllocationError:
            return []
        return [] if found is None else unavailable

    @staticmethod
    def _is_only_for(pod: PodFacts, claim: DeviceClaimFacts) -> bool:
        """Whether a claim is reserved for no other pod."""
        uids = [each.uid for each in claim.reserved_for]
        # `claims_as` is the pod as a consumer of claims: its UID and name.
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
            # A substitute names no real claim: changed claims matter only by the devices they use.
            return self.prefilter_state_version(pod), self._devices.allocator.nodes.version
        return self._devices.version

    def prefilter_state_version(self, pod: PodClass) -> Hashable:
        # Of a substitute, only Filter reads which devices are free; PreFilter reads device classes.
        if is_substitute(pod.facts):
            return self._devices.allocator.classes_version
        return self.state_version(pod)

    def runs_per_pod(self, pod: PodClass) -> bool:
        # Filter reads the free devices anew at each call.
        return is_substitute(pod.facts)

    def changed_rows(self, table: Table, position: int) -> tuple[list[int] | None, int]:
        return self._filter.screened_nodes.rows_since(table, position)

    def known_passes(
        self, state: CycleState, pod: PodClass, table: Table, rows: Sequence[int]
    ) -> list[bool] | None:
        return self._filter.known_passes(state.read(self.name, PodDeviceClaims), table, rows)

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
        first, second = [*with_claims, len(pods)][:2]
        facts = pods[first].facts
        if not is_substitute(facts):
            return first
        claims = self._devices.substitutes.claims_of(facts)
        passes = self._filter.passes(claims, table, rows[first : first + 1])
        return second if passes else first

    def effect(self, placed: PodClass) -> Effect:
        if not placed.facts.device_claims:
            return ON_NONE
        return Effect("claims", _has_claims)

    def sign(self, pod: PodFacts) -> Hashable:
        if not pod.device_claims:
            return ()
        return (pod.namespace, pod.device_claims, pod.claims_as)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        node_changes = (
            ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        )
        add_or_update = ActionType.ADD | ActionType.UPDATE
        claims_generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            on(EventResource.NODE, node_changes),
            on(EventResource.RESOURCE_CLAIM, add_or_update, self.after_claim_change),
            on(EventResource.POD, claims_generated, self.after_pod_change),
            on(EventResource.DEVICE_CLASS, add_or_update),
            on(EventResource.RESOURCE_SLICE, add_or_update),
        )

    def after_claim_change(
        self, pod: PodFacts, change: ObjectChange[DeviceClaimFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if any claim lost its allocation, or the status of a claim of the pod changed."""
        assert change.new is not None, "deletions of claims are not registered"
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
        assert change.new is not None, "deletions of pods are not registered"
        if not change.of_waiting_pod:
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.when(self.pre_enqueue(change.new.facts).is_success)


def _has_claims(pod: PodClass) -> bool:
    return bool(pod.facts.device_claims)


def _status_of(claim: DeviceClaimFacts) -> Hashable:
    return claim.allocation, claim.reserved_for, claim.statuses

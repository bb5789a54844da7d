"""NodeResourcesFit: the node must have the requested resources free; scores the free resources.

Filter compares milli-CPU and integer bytes with the requests as written; a request above the node's
whole allocatable is unresolvable, since no preemption can help. Score counts cpu and memory with
non-zero requests (`resource_scoring`).

With DRAExtendedResource, some resources are *left to devices*: if a device class serves a resource
that a node does not offer in its allocatable, DynamicResources decides. As upstream, a pod without
extended resources is then not checked for any scalar resource (huge pages among them) that a node
does not offer.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from roadstead.config.plugin_args import NodeResourcesFitArgs
from roadstead.devices.state import DeviceState
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.resources import is_scalar_resource
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
    EnqueueExtensions,
    Feasible,
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.offered_resources import OfferedResources
from roadstead.plugins.resource_scoring import ResourceScorer, build_scorer
from roadstead.protocol.names import is_extended_resource
from roadstead.protocol.status import SUCCESS, Status, unresolvable, unschedulable

TOO_MANY_PODS = "Too many pods"

Check = tuple[str, Bools, Bools | None]
"""One check of all rows: (reason, short, short if empty).

short: bool[row], too little of the resource is free. short if empty: bool[row], even the whole
allocatable is too little; None for no row.
"""

_FEW_ROWS = 64
"""Up to so many rows, a loop (`_combine_few`) combines the results faster than np.unique."""
_MAX_CHECKS = 31
"""Maximum checks that fit an int64: two bits each, `short` and `short if empty`."""


class NodeResourcesFit(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions
):
    name = "NodeResourcesFit"
    reads = Reads.ROW
    shares_by_shape = True
    unprepared = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle | None = None) -> None:
        self._devices = DeviceState() if handle is None else handle.storage.devices
        self._leaves_to_devices = self._devices.gates.extended_resource
        self._offered = OfferedResources()
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self.scorer: ResourceScorer = build_scorer(args.scoring_strategy)

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        checks: list[Check] = [(TOO_MANY_PODS, table.pod_count >= table.allocatable_pods, None)]
        for code, amount in pod.coded_requests:
            name = table.resource_names[code]
            if self.is_ignored(name):
                continue
            allocatable = table.allocatable(code)
            short = amount > allocatable - table.requested(code)
            if self._leaves_to_devices and self.is_left_to_devices(pod, name):
                short &= self._offered.offering(table, name)
            checks.append((f"Insufficient {name}", short, amount > allocatable))
        failed = [(reason, short, if_empty) for reason, short, if_empty in checks if short.any()]
        return _combine(failed) if failed else ALL_PASS

    def is_left_to_devices(self, pod: PodClass, name: str) -> bool:
        """Whether Filter ignores a resource of a pod on nodes that do not offer it.

        An extended resource is ignored only if the pod gets a claim for it, which needs the
        requests of its containers (`extended_requests`). Some pods' facts lack these.
        """
        if not self._leaves_to_devices or not is_scalar_resource(name):
            return False
        if is_extended_resource(name):
            return bool(pod.facts.extended_requests) and name in self._devices.served
        requested = (each for each, amount in pod.request_of.items() if amount)
        return name in self._devices.served or not any(map(is_extended_resource, requested))

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        if self._leaves_to_devices:
            # Stop before the first pod with a resource left to devices: this method does not decide
            # whether a node offers it, as Filter does.
            resources = table.resource_names
            for index, pod in enumerate(pods):
                if any(
                    self.is_left_to_devices(pod, resources[code]) for code, _ in pod.coded_requests
                ):
                    pods, rows = pods[:index], rows[:index]
                    break
            if not pods:
                return 0
        if len(pods) == 1:
            # For a single pod, array operations cost ten times as much as reading its row.
            return int(_has_room(pods[0], table, int(rows[0])))
        columns = table.columns
        # Pods of one row form a group, in their order.
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        # Per pod: the begin of its group, and how many pods precede it there.
        begin_of = np.repeat(begins, np.diff(begins, append=len(rows)))
        preceding = np.arange(len(rows)) - begin_of
        is_short = columns.pod_count[rows] + preceding >= columns.allocatable_pods[rows]
        requests = {pod_class: dict(pod_class.coded_requests) for pod_class in pods}
        for code in sorted({code for each in requests.values() for code in each}):
            if code >= len(columns.allocatable):
                # No node has this resource: leave all pods to Filter.
                return 0
            amount_of = {pod_class: each.get(code, 0) for pod_class, each in requests.items()}
            amounts = np.array([amount_of[pod_class] for pod_class in pods], dtype=np.int64)[order]
            before = np.cumsum(amounts) - amounts
            # With the amounts of the preceding pods of the group.
            requested = columns.requested[code, rows] + before - before[begin_of]
            # Compared by subtraction, as in Filter: a sum with the amount might wrap around.
            free = columns.allocatable[code, rows] - requested
            is_short |= (amounts > 0) & (amounts > free)
        return int(order[is_short].min(initial=len(pods)))

    def is_ignored(self, name: str) -> bool:
        """Whether Filter ignores an extended resource."""
        if not (self._ignored or self._ignored_groups) or not is_extended_resource(name):
            return False
        return name in self._ignored or name.split("/")[0] in self._ignored_groups

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        return self.scorer.score(pod, table)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(
                EventResource.POD,
                ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN,
                self.after_pod_event,
            ),
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE,
                self.after_node_change,
            ),
        )

    def after_pod_event(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a pod on a node was deleted or requests less of a resource that `pod` requests.

        Also if `pod` itself requests less. A deleted pod that was nominated counts as one on a
        node.
        """
        if change.new is None:
            assert change.old is not None
            used_node = change.old.assigned or bool(change.old.facts.nominated_node_name)
            return QueueingHint.when(used_node)
        if change.of_waiting_pod:
            return QueueingHint.QUEUE
        if not change.new.assigned:
            return QueueingHint.QUEUE_SKIP
        assert change.old is not None
        before, after = dict(change.old.facts.requests), dict(change.new.facts.requests)
        wanted = (name for name, amount in pod.requests if amount)
        return QueueingHint.when(any(before.get(each, 0) > after.get(each, 0) for each in wanted))

    def after_node_change(
        self, pod: PodFacts, change: ObjectChange[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the empty node fits the pod, and is new or has more of a requested resource."""
        new, old = change.new, change.old
        assert new is not None
        left_to_devices = self._not_offered(pod, new)
        if not _fits_empty(pod, new, left_to_devices):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.when(old is None or bool(left_to_devices) or _has_more(pod, old, new))

    def _not_offered(self, pod: PodFacts, node: NodeFacts) -> frozenset[str]:
        """Return the scalar resources of a pod that may be left to devices on a node.

        Those that the node does not offer, whether or not a device class serves them.
        """
        if not self._leaves_to_devices:
            return frozenset()
        offered = {name for name, _ in node.allocatable}
        requested = (name for name, amount in pod.requests if amount and is_scalar_resource(name))
        return frozenset(name for name in requested if name not in offered)

    def sign(self, pod: PodFacts) -> Hashable:
        nonzero = (pod.nonzero_cpu_milli, pod.nonzero_memory_bytes)
        return (pod.requests, nonzero, pod.container_requests)


def _fits_empty(pod: PodFacts, node: NodeFacts, left_to_devices: frozenset[str]) -> bool:
    """Whether the pod fits the empty node.

    As upstream, resources that the plugin's arguments ignore (`is_ignored`) are compared, too;
    those left to devices are not.
    """
    has = dict(node.allocatable)
    return node.allocatable_pods > 0 and all(
        amount <= has.get(name, 0) for name, amount in pod.requests if name not in left_to_devices
    )


def _has_more(pod: PodFacts, old: NodeFacts, new: NodeFacts) -> bool:
    if new.allocatable_pods > old.allocatable_pods:
        return True
    before, after = dict(old.allocatable), dict(new.allocatable)
    return any(after.get(name, 0) > before.get(name, 0) for name, amount in pod.requests if amount)


def _combine(failed: Sequence[Check]) -> FilterResult:
    """Return one status for each combination of reasons that occurs."""
    if len(failed) > _MAX_CHECKS:
        return _joined(_combine(failed[:_MAX_CHECKS]), _combine(failed[_MAX_CHECKS:]))
    bits: I64 | None = None
    names = []
    for index, (name, short, short_if_empty) in enumerate(failed):
        bit = short.astype(np.int64) << (2 * index)
        if short_if_empty is not None:
            bit |= (short & short_if_empty).astype(np.int64) << (2 * index + 1)
        bits = bit if bits is None else bits | bit
        names.append(name)
    assert bits is not None
    if len(bits) <= _FEW_ROWS:
        return _combine_few(bits.tolist(), names)
    combinations, codes = np.unique(bits, return_inverse=True)
    statuses = tuple(
        _status(int(combination), names) for combination in combinations if combination
    )
    offset = 0 if combinations[0] == 0 else 1
    return FilterResult((codes + offset).astype(np.int32), statuses)


def _combine_few(bits: list[int], names: list[str]) -> FilterResult:
    """Return the result of `_combine` for few rows, as most calls have, without np.unique."""
    code_of = {0: 0}
    codes = [code_of.setdefault(each, len(code_of)) for each in bits]
    statuses = tuple(_status(combination, names) for combination in code_of if combination)
    return FilterResult(np.array(codes, dtype=np.int32), statuses)


def _joined(first: FilterResult, second: FilterResult) -> FilterResult:
    """Join the reasons of both results, for every pair that occurs."""
    assert first.codes is not None
    assert second.codes is not None
    first_statuses, second_statuses = (SUCCESS, *first.statuses), (SUCCESS, *second.statuses)
    pairs = first.codes.astype(np.int64) * len(second_statuses) + second.codes
    present, codes = np.unique(pairs, return_inverse=True)
    statuses = tuple(
        _worse(
            first_statuses[pair // len(second_statuses)],
            second_statuses[pair % len(second_statuses)],
        )
        for pair in present.tolist()
        if pair
    )
    offset = 0 if present[0] == 0 else 1
    return FilterResult((codes + offset).astype(np.int32), statuses)


def _worse(one: Status, other: Status) -> Status:
    return Status(max(one.code, other.code), (*one.reasons, *other.reasons))


def _status(combination: int, names: list[str]) -> Status:
    reasons = [name for i, name in enumerate(names) if combination >> (2 * i) & 1]
    is_unresolvable = any(combination >> (2 * i + 1) & 1 for i in range(len(names)))
    return unresolvable(*reasons) if is_unresolvable else unschedulable(*reasons)


def _has_room(pod: PodClass, table: Table, row: int) -> bool:
    """Whether one row has all requested resources free."""
    columns = table.columns
    free, requested = columns.allocatable, columns.requested
    return bool(columns.pod_count[row] < columns.allocatable_pods[row]) and all(
        code < len(free) and amount <= free[code, row] - requested[code, row]
        for code, amount in pod.coded_requests
    )

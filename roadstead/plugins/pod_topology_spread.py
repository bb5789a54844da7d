"""PodTopologySpread: spreads the pods that a selector matches evenly over topology domains.

Hard constraints (DoNotSchedule), each over the domains of nodes that have all topology keys and
pass the constraint's inclusion policies:

    count(node's domain) + (1 if the pod matches itself) - min(counts) <= maxSkew

with a minimum of 0 if there are fewer than minDomains domains. Soft constraints (ScheduleAnyway):

    raw = round(sum of count(node's domain) * ln(domains + 2) + maxSkew - 1)
    normalized = 100 * (max + min - raw) / max, all 100 when max is 0

The domains are those of feasible nodes, the counts those of all nodes; for the hostname key the
count is the node's own and the domains are the feasible nodes. A node without a topology key is
not scored (IGNORED, normalized to 0), except with the system's default constraints. Counts leave
out terminating pods and pods of other namespaces.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,filtering,scoring}.go.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    HintError,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    IGNORED,
    MAX_NODE_SCORE,
    Effect,
    EnqueueExtensions,
    Extremes,
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
from roadstead.plugins.count_passing_spread import count_passing_spread
from roadstead.plugins.matching_pods import (
    MatchingPods,
    amounts_by_row,
    apply_moves,
    included,
    sum_by_value,
    with_all_keys,
)
from roadstead.plugins.pod_topology_spread_constraints import (
    HOSTNAME,
    NO_SPREAD,
    PodSpread,
    Spread,
    SpreadSource,
    is_counted,
)
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

MAX_CACHED_CLASSES = 4096
"""Pod classes whose constraints are cached; the least recently used is dropped."""

_NO_DOMAIN_COUNT = 2**31 - 1
"""The minimum of counts if there is no domain (math.MaxInt32), so that no count is too high."""
_REASON = "node(s) didn't match pod topology spread constraints"
_TOO_MANY = unschedulable(_REASON)
_NO_LABEL = unresolvable(f"{_REASON} (missing required label)")


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """Matching pods per hard constraint and topology value; values without pods count as 0.

    highest: per constraint, the highest count with which a domain still admits the pod: maxSkew
    above the minimum, less 1 if the pod counts itself. Derived from the counts.
    """

    counts: tuple[dict[str, int], ...]
    highest: tuple[int, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class SpreadCounts:
    """Input of the scores of soft constraints, per constraint.

    weights: ln(domains + 2): with more domains there are fewer pods in each, so each weighs more.
    pods: number of matching pods by topology value, on the nodes that the constraint's inclusion
    policies include, without zeros; empty for the hostname key.
    """

    weights: tuple[float, ...]
    pods: tuple[dict[str, int], ...]


class PodTopologySpread(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
):
    name = "PodTopologySpread"
    reads = Reads.CLUSTER
    shares_by_shape = True
    normalizes = True
    unprepared = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    unprepared_score = 'error reading "PreScorePodTopologySpread" from cycleState: not found'

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._source = SpreadSource(args, handle.cluster)
        self._of_pod = lru_cache(MAX_CACHED_CLASSES)(self._compile)
        self._matching = MatchingPods()

    def _compile(self, pod: PodClass) -> PodSpread:
        return self._source.of(pod.facts)

    def constraints(self, pod: PodClass) -> PodSpread:
        """Return the constraints of a pod, its own or the defaults."""
        return self._of_pod(pod)

    def on_nodes(self, pod: PodClass, spread: Spread, table: Table) -> I64:
        """Return how many pods on each row a constraint of the pod counts: int64[row]."""
        return self._matching.on_rows(table, pod.facts.namespace, spread.selector)

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        spread = self._of_pod(pod)
        if spread.hard_error:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints: "
            return PreFilterResult(error(text + spread.hard_error))
        if not spread.hard:
            return PreFilterResult(SKIP)
        # Per constraint: the rows that its inclusion policies include.
        rows = included(pod.facts, spread.hard, table, with_all_keys(spread.hard, table))
        counts = tuple(
            self._count_by_domain(pod, each, table, counted)
            for each, counted in zip(spread.hard, rows, strict=True)
        )
        state.write(self.name, _with_highest(pod, spread.hard, counts))
        return PreFilterResult()

    def with_pods_moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        assert isinstance(prepared, DomainCounts)
        hard = self._of_pod(pod).hard
        counts = apply_moves(pod, hard, prepared.counts, row, moves)
        return prepared if counts is prepared.counts else _with_highest(pod, hard, counts)

    def _count_by_domain(
        self, pod: PodClass, spread: Spread, table: Table, rows: Bools
    ) -> dict[str, int]:
        pods = self._matching.on_rows(table, pod.facts.namespace, spread.selector)
        return sum_by_value(table, spread.topology_key, rows, pods)

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        codes = np.zeros(len(table), dtype=np.int32)
        prepared, hard = state.read(self.name, DomainCounts), self._of_pod(pod).hard
        for spread, counts, highest in zip(hard, prepared.counts, prepared.highest, strict=True):
            missing = table.label_codes(spread.topology_key) < 0
            too_many = amounts_by_row(table, spread.topology_key, counts) > highest
            # Codes of (_TOO_MANY, _NO_LABEL); the first constraint that refuses gives the reason.
            codes_of_each = np.where(missing, 2, too_many).astype(np.int32)
            codes = np.where(codes > 0, codes, codes_of_each)
        return FilterResult(codes, (_TOO_MANY, _NO_LABEL)) if codes.any() else ALL_PASS

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        spread_of = {pod: self._of_pod(pod) for pod in dict.fromkeys(pods)}
        if any(each.hard_error for each in spread_of.values()):
            return 0
        hard_of = {pod: each.hard for pod, each in spread_of.items()}
        if not any(hard_of.values()):
            return len(pods)
        return count_passing_spread(pods, rows, table, hard_of, self.on_nodes)

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        spread = self._of_pod(pod)
        if not state.node_count:
            return SKIP
        if spread.soft_error:
            text = "obtaining pod's soft topology spread constraints"
            return error(f"calculating preScoreState: {text}: {spread.soft_error}")
        if not spread.soft:
            return SKIP
        state.write(self.name, self._soft_counts(pod, spread, table, feasible()))
        return SUCCESS

    def _soft_counts(
        self, pod: PodClass, spread: PodSpread, table: Table, feasible: Bools
    ) -> SpreadCounts:
        counted = np.ones(len(table), dtype=np.bool_)
        if spread.needs_all_keys:
            counted = with_all_keys(spread.soft, table)
        scored = feasible & counted
        ones = np.ones(len(table), dtype=np.int64)
        weights: list[float] = []
        pods: list[dict[str, int]] = []
        rows = included(pod.facts, spread.soft, table, counted)
        for each, counted_by_each in zip(spread.soft, rows, strict=True):
            key = each.topology_key
            if key == HOSTNAME:
                weights.append(math.log(int(np.count_nonzero(scored)) + 2))
                pods.append({})
                continue
            weights.append(math.log(len(sum_by_value(table, key, scored, ones)) + 2))
            by_value = self._count_by_domain(pod, each, table, counted_by_each)
            pods.append({value: count for value, count in by_value.items() if count})
        return SpreadCounts(tuple(weights), tuple(pods))

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        total = np.zeros(len(table), dtype=np.float64)
        prepared, spread = state.read(self.name, SpreadCounts), self._of_pod(pod)
        per_constraint = zip(spread.soft, prepared.weights, prepared.pods, strict=True)
        for each, weight, by_value in per_constraint:
            key = each.topology_key
            if key == HOSTNAME:
                pods = self._matching.on_rows(table, pod.facts.namespace, each.selector)
            else:
                pods = amounts_by_row(table, key, by_value)
            part = pods.astype(np.float64) * weight + float(each.max_skew - 1)
            total += np.where(table.label_codes(key) >= 0, part, 0.0)
        raw = _rounded(total)
        if spread.needs_all_keys:
            raw[~with_all_keys(spread.soft, table)] = IGNORED
        return raw

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        if extremes.maximum <= 0:
            return np.where(raw == IGNORED, 0, MAX_NODE_SCORE)
        scored = np.where(raw == IGNORED, extremes.minimum, raw)
        better = MAX_NODE_SCORE * (extremes.maximum + extremes.minimum - scored)
        return np.where(raw == IGNORED, 0, better // extremes.maximum)

    def effect(self, placed: PodClass) -> Effect:
        facts = placed.facts
        key = facts.namespace, facts.labels, facts.is_terminating
        return Effect(key, partial(self._may_change, placed))

    def _may_change(self, placed: PodClass, pod: PodClass) -> bool:
        """Whether a placed pod may change the answers for `pod` on other nodes."""
        spread = self._of_pod(pod)
        if spread.soft:
            # Soft scores depend on which nodes are feasible, and any pod may fill a node.
            return True
        if placed.facts.namespace != pod.facts.namespace or placed.facts.is_terminating:
            return False
        return any(
            is_counted(each.selector) and each.matches(placed.labels) for each in spread.hard
        )

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        pod_changes = ActionType.ADD | ActionType.DELETE
        pod_changes |= ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        node_changes = ActionType.ADD | ActionType.DELETE
        node_changes |= ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            on(
                EventResource.POD,
                pod_changes,
                self.after_pod_change,
                may_matter=_is_in_namespace_of,
            ),
            on(EventResource.NODE, node_changes, self.after_node_change),
        )

    def after_pod_change(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a pod on a node, matched by a constraint, was added or deleted.

        Also if a pod on a node or this pod itself is now matched by other constraints, or if this
        pod's tolerations changed and a constraint honors taints. Other namespaces do not count.
        HintError if a selector does not parse.
        """
        # Before and after an update; one of them if the pod was added or deleted.
        versions = [each for each in (change.old, change.new) if each is not None]
        if not change.of_waiting_pod and any(_is_not_counted(each, pod) for each in versions):
            return QueueingHint.QUEUE_SKIP
        hard = self._hard(pod)
        labels = [dict(each.facts.labels) for each in versions]
        if len(versions) == 1:
            return QueueingHint.when(any(each.matches(labels[0]) for each in hard))
        tolerations_changed = change.of_waiting_pod and (
            versions[0].facts.tolerations != versions[1].facts.tolerations
        )
        return QueueingHint.when(
            (tolerations_changed and any(each.honors_taints for each in hard))
            or any(each.matches(labels[0]) != each.matches(labels[1]) for each in hard)
        )

    def after_node_change(
        self, pod: PodFacts, change: ObjectChange[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a node with all topology keys was added or deleted, or changed its domains.

        Also if such a node's taints changed, or if a changed node has all keys only now or only had
        them before. HintError if a selector does not parse.
        """
        keys = {each.topology_key for each in self._hard(pod)}
        old, new = change.old, change.new
        before, after = (_topology_values(keys, each) for each in (old, new))
        taints_changed = old is not None and new is not None and old.taints != new.taints
        return QueueingHint.when(before != after or (after is not None and taints_changed))

    def _hard(self, pod: PodFacts) -> tuple[Spread, ...]:
        spread = self._source.of(pod)
        if spread.hard_error:
            raise HintError(spread.hard_error)
        return spread.hard

    def sign(self, pod: PodFacts) -> Hashable:
        spread = self._source.of(pod)
        if spread == NO_SPREAD:
            return ()
        labels = dict(pod.labels)
        constraints = (*spread.hard, *spread.soft)
        by_affinity = any(each.honors_affinity for each in constraints)
        return (
            spread,
            pod.namespace,
            tuple(each.matches(labels) for each in spread.hard),
            (pod.node_selector, pod.required_node_terms) if by_affinity else None,
            pod.tolerations if any(each.honors_taints for each in constraints) else None,
        )


def _with_highest(
    pod: PodClass, hard: Sequence[Spread], counts: tuple[dict[str, int], ...]
) -> DomainCounts:
    """Return the counts, and for each constraint the highest count that admits the pod."""
    pairs = zip(hard, counts, strict=True)
    return DomainCounts(counts, tuple(_highest(pod, each, counted) for each, counted in pairs))


def _highest(pod: PodClass, spread: Spread, counts: Mapping[str, int]) -> int:
    minimum = min(counts.values(), default=_NO_DOMAIN_COUNT)
    if len(counts) < spread.min_domains:
        minimum = 0
    return spread.max_skew + minimum - int(spread.matches(pod.labels))


def _rounded(amounts: NDArray[np.float64]) -> I64:
    """Round halves away from zero, as Go; amounts are not negative."""
    floored = np.floor(amounts)
    rounded: I64 = (floored + (amounts - floored >= 0.5)).astype(np.int64)
    return rounded


def _is_not_counted(changed: EventPod, pod: PodFacts) -> bool:
    """Whether constraints of `pod` ignore a changed pod: without node, or of another namespace."""
    return not changed.assigned or changed.facts.namespace != pod.namespace


def _is_in_namespace_of(pod: PodFacts, assigned: PodFacts, cluster: object) -> bool:
    """Whether a pod on a node may be counted by the constraints of `pod`.

    Upstream: getUnschedulablePodsWithCrossTopologyTerm of scheduling_queue.go.
    """
    return assigned.namespace == pod.namespace


def _topology_values(keys: Iterable[str], node: NodeFacts | None) -> dict[str, str] | None:
    """Return a node's values of topology keys; None if it lacks one, or without a node."""
    labels = dict(node.labels) if node is not None else {}
    if node is None or any(key not in labels for key in keys):
        return None
    return {key: labels[key] for key in keys}

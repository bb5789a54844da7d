"""ServiceAffinity: a service's pods on nodes with equal labels, or spread over label values.

Filter, for each of affinityLabels: the node must have the value in the pod's nodeSelector. For a
label that the nodeSelector lacks, if a Service selects the pod, the value is that of a reference
node: the node of the first pod in the namespace with all of this pod's labels. A label that the
reference node lacks is not required.

Score, for the preferred labels (antiAffinityLabelsPreference); count(value) is the number of the
service's pods on feasible nodes with that value, n their number on all feasible nodes, k the number
of preferred labels:

    score = int(sum over the preferred labels of 100 * (n - count(value)) / n / k)

with 100 for each label when n is 0, and 0 for a label that the node lacks. Upstream computes this
in NormalizeScore; here Score does, which can read the nodes' labels. Upstream's first pod is the
first in its snapshot; here it is one on the node that was added first. If several Services select
the pod, upstream scores by any of them; here by the first of the input. Off by default:
kube-scheduler removed it in 1.23.

Upstream: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go of 1.22.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from roadstead.config.plugin_args import ServiceAffinityArgs
from roadstead.facts.pod import Labels, PodFacts
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import ActionType, EventResource, RegisteredEvent, on
from roadstead.framework.plugin import (
    MAX_NODE_SCORE,
    Effect,
    EnqueueExtensions,
    Feasible,
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    PreparesScore,
    Reads,
    ScorePlugin,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.plugins.matching_pods import MatchingPods, amounts_by_row, sum_by_value
from roadstead.protocol.status import SKIP, SUCCESS, Status, unschedulable

_REFUSED = unschedulable("node(s) didn't match service affinity")


@dataclass(frozen=True, slots=True)
class MatchingNode:
    """A node with pods of the namespace that have all labels of the new pod.

    arrival: position in the order in which nodes were added. pods: number of these pods. labels:
    those of the plugin's affinityLabels that the node has.
    """

    arrival: int
    name: str
    pods: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class FirstNodes:
    """The two matching nodes that were added first; the first is the reference node.

    The second becomes the reference if `with_pods_moved` removes all matching pods from the first.
    """

    nodes: tuple[MatchingNode, ...]


def _first_two(nodes: Iterable[MatchingNode]) -> FirstNodes:
    return FirstNodes(tuple(sorted(nodes, key=lambda each: (each.arrival, each.name))[:2]))


@dataclass(frozen=True, slots=True)
class ServicePods:
    """Pods of the service on feasible nodes.

    by_value: for each preferred label, label value → number of these pods, without zeros.
    """

    total: int
    by_value: tuple[dict[str, int], ...]


class ServiceAffinity(
    PreFilterPlugin,
    FilterPlugin,
    ScorePlugin,
    PreparesScore,
    EnqueueExtensions,
):
    name = "ServiceAffinity"
    reads = Reads.CLUSTER
    shares_by_shape = True
    # Upstream's error if Filter runs without PreFilter.
    unprepared = 'error reading "PreFilterServiceAffinity" from cycleState: not found'

    def __init__(self, args: ServiceAffinityArgs, handle: Handle) -> None:
        self._affinity_labels = tuple(dict.fromkeys(args.affinity_labels))
        self._preferred_labels = args.anti_affinity_labels_preference
        self._score_key = f"PreScore{self.name}"
        # By namespace: the selectors of Services.
        self._services: dict[str, list[LabelSelector]] = {}
        for each in handle.cluster.selecting:
            if each.kind == "Service" and each.selector is not None:
                self._services.setdefault(each.namespace, []).append(each.selector)
        # The reference node may be that of a terminating pod; scores do not count such pods.
        self._matching_all_labels = MatchingPods(terminating=True)
        self._of_service = MatchingPods()

    def _first_nodes(self, pod: PodClass, table: Table) -> FirstNodes:
        if not self._needs_reference_node(pod.facts):
            return FirstNodes(())
        matching = self._matching_all_labels.on_rows(
            table, pod.facts.namespace, _requiring(pod.facts.labels)
        )
        rows = np.flatnonzero(matching)
        first = rows[np.argsort(table.arrivals[rows])[:2]].tolist()
        return _first_two(self._node(table, row, int(matching[row])) for row in first)

    def _node(self, table: Table, row: int, pods: int) -> MatchingNode:
        facts = table.facts(row)
        labels = dict(facts.labels)
        affinity_labels = tuple(
            (key, labels[key]) for key in self._affinity_labels if key in labels
        )
        return MatchingNode(int(table.arrivals[row]), facts.name, pods, affinity_labels)

    def with_pods_moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        """Return what `pre_filter` wrote, after pods are added to or removed from a node.

        An added pod comes after all others, as in upstream's list. row: the node. moves: class →
        number of pods added (below 0: removed).
        """
        change = sum(count for pod_class, count in moves.items() if _has_labels_of(pod, pod_class))
        if not change or not self._needs_reference_node(pod.facts):
            return prepared
        assert isinstance(prepared, FirstNodes)
        before = prepared.nodes
        name = row.names[0]
        if not before and change > 0:
            return FirstNodes((self._node(row, 0, change),))
        moved = (
            replace(each, pods=each.pods + change) if each.name == name else each for each in before
        )
        nodes = tuple(each for each in moved if each.pods > 0)
        return prepared if nodes == before else FirstNodes(nodes)

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        if not self._affinity_labels:
            return PreFilterResult(SKIP)
        state.write(self.name, self._first_nodes(pod, table))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        refused = np.zeros(len(table), dtype=np.bool_)
        first = state.read(self.name, FirstNodes).nodes[:1]
        of_reference = {key: value for node in first for key, value in node.labels}
        for key, value in (of_reference | self._selected_labels(pod.facts)).items():
            refused |= ~table.match(Requirement(key, "In", (value,)))
        return FilterResult.refuse(refused, _REFUSED)

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        service = self._service(pod.facts)
        if service is None:
            return SUCCESS
        counts = self._of_service.on_rows(table, pod.facts.namespace, service)
        rows = feasible()
        total = int(counts[rows].sum())
        by_value = tuple(
            _counts_by_value(table, key, rows, counts) for key in self._preferred_labels
        )
        state.write(self._score_key, ServicePods(total, by_value))
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        service_pods = ServicePods(total=0, by_value=({},) * len(self._preferred_labels))
        if state.has(self._score_key):
            service_pods = state.read(self._score_key, ServicePods)
        score = np.zeros(len(table), dtype=np.float64)
        for key, counts in zip(self._preferred_labels, service_pods.by_value, strict=True):
            share = np.ones(len(table), dtype=np.float64)
            if service_pods.total:
                elsewhere = (service_pods.total - amounts_by_row(table, key, counts)).astype(
                    np.float64
                )
                share = elsewhere / float(service_pods.total)
            part = float(MAX_NODE_SCORE) * share / float(len(self._preferred_labels))
            score += np.where(table.label_codes(key) >= 0, part, 0.0)
        return score.astype(np.int64)

    def effect(self, placed: PodClass) -> Effect:
        return Effect(
            (placed.facts.namespace, placed.facts.labels), partial(self._may_change, placed)
        )

    def _may_change(self, placed: PodClass, pod: PodClass) -> bool:
        """Whether a placed pod may change the answers for `pod` on other nodes."""
        if self._service(pod.facts) is not None:
            # The score counts pods on feasible nodes, and any pod may fill a node.
            return True
        return self._needs_reference_node(pod.facts) and _has_labels_of(pod, placed)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        """Return upstream's events without those of Services, which do not change in a run."""
        if not self._affinity_labels:
            return ()
        return (
            on(EventResource.POD, ActionType.UPDATE | ActionType.DELETE),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        )

    def sign(self, pod: PodFacts) -> Hashable:
        needs_reference_node = self._needs_reference_node(pod)
        service = self._service(pod)
        return (
            tuple(self._selected_labels(pod).items()),
            pod.labels if needs_reference_node else None,
            service,
            pod.namespace if needs_reference_node or service is not None else None,
        )

    def _selected_labels(self, facts: PodFacts) -> dict[str, str]:
        """Return the affinity labels that the pod's nodeSelector has, with their values."""
        selected = dict(facts.node_selector)
        return {key: selected[key] for key in self._affinity_labels if key in selected}

    def _needs_reference_node(self, facts: PodFacts) -> bool:
        """Whether the value of some affinity label depends on a reference node."""
        if len(self._selected_labels(facts)) == len(self._affinity_labels):
            return False
        return self._first_service(facts) is not None

    def _service(self, facts: PodFacts) -> LabelSelector | None:
        """Return the selector of the Service to spread; None without preferred labels."""
        return self._first_service(facts) if self._preferred_labels else None

    def _first_service(self, facts: PodFacts) -> LabelSelector | None:
        labels = dict(facts.labels)
        services = self._services.get(facts.namespace, ())
        return next((each for each in services if each.matches(labels)), None)


def _has_labels_of(pod: PodClass, other: PodClass) -> bool:
    """Whether another pod has the namespace and all the labels of this one."""
    same_namespace = pod.facts.namespace == other.facts.namespace
    return same_namespace and pod.labels.items() <= other.labels.items()


def _requiring(labels: Labels) -> LabelSelector:
    """Return a selector that requires all these labels and allows others."""
    return LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in labels))


def _counts_by_value(table: Table, key: str, feasible: Bools, counts: I64) -> dict[str, int]:
    """Sum `counts` over feasible rows that have a label, by its value, without zeros."""
    rows = feasible & (table.label_codes(key) >= 0)
    return {value: n for value, n in sum_by_value(table, key, rows, counts).items() if n}

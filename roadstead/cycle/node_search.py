"""NodeSearch: sampling and extenders, which reduce the feasible nodes between Filter and Score.

    Filter ──► FilteredNodes ──► NodeSearch ──► SearchResult ──► PreScore, Score
                                 sampling: some nodes are not evaluated
                                 extenders: some nodes are refused, others scored

One NodeSearch per scheduler; it stores where the next search starts. Extenders are called from
`search`, which therefore may block; nothing else here does.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatFitPod, evaluateNominatedNode,
findNodesThatPassFilters, findNodesThatPassExtenders, prioritizeNodes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from roadstead.cycle.batch import PodInCycle
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.extender import ExtenderPod
from roadstead.extenders.sequence import ExtenderResult, Extenders
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.found_nodes import FoundNodes, SearchResult, no_arrivals
from roadstead.framework.profile import Profile
from roadstead.framework.sampling import feasible_nodes_to_find, indices_to_visit
from roadstead.nodes.columns import I64
from roadstead.nodes.node_order import NodeOrder
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.status import Code, Status

MAX_SCORE = 1 << 60
"""Bound on the sums of extenders' scores, positive or negative, so that totals never overflow."""


class OrderedNodes:
    """The ordered node list of a cycle.

    rows, arrivals: int64[node], aligned with `nodes`: the row in the table, and the position in the
    order of arrival, which identifies a node here.
    """

    __slots__ = ("_index_of_name", "arrivals", "nodes", "rows")

    def __init__(
        self,
        nodes: tuple[NodeFacts, ...] = (),
        arrivals: I64 | None = None,
        rows: Rows | None = None,
    ) -> None:
        self.nodes = nodes
        self.arrivals = no_arrivals() if arrivals is None else arrivals
        self.rows: Rows = np.zeros(0, np.intp) if rows is None else rows
        self._index_of_name: dict[str, int] | None = None

    def index_of(self, name: str) -> int | None:
        """Return the index of a node in the order; None for an unknown name."""
        if self._index_of_name is None:
            self._index_of_name = {node.name: index for index, node in enumerate(self.nodes)}
        return self._index_of_name.get(name)


@dataclass(frozen=True, slots=True)
class FilteredNodes:
    """The nodes that passed Filter, by arrival.

    considered: nodes that PreFilter selected; None for all. failing: arrival of a node → the error
    of a filter there.
    """

    feasible: I64
    considered: I64 | None = None
    failing: Mapping[int, str] = field(default_factory=dict)


def filtered_nodes(evaluation: Evaluation) -> FilteredNodes:
    """Return the nodes that passed Filter; PreFilter must have succeeded."""
    arrivals = evaluation.table.arrivals
    feasible = arrivals[evaluation.feasible]
    failing = {
        int(arrivals[row]): status.message
        for code, status in enumerate(evaluation.statuses, start=1)
        if status.code is Code.ERROR
        for row in np.flatnonzero(evaluation.codes == code).tolist()
    }
    names = evaluation.pre_filter.node_names
    if names is None:
        return FilteredNodes(feasible, failing=failing)
    # Not the nominated node, which is evaluated separately, unless PreFilter selected it, too.
    considered = arrivals[evaluation.table.rows_of(names)]
    return FilteredNodes(feasible, considered, failing)


class OrderedNodesCache:
    """The ordered node list of one table, renewed when upstream takes a snapshot."""

    def __init__(self) -> None:
        self._node_order = NodeOrder()
        self._version = -1
        self._order = OrderedNodes()

    def snapshot(self, table: NodeTable) -> OrderedNodes:
        """Take a snapshot for the next cycle; return its order with the current rows."""
        names = self._node_order.snapshot(table.tree)
        if table.node_version != self._version:
            rows = np.array(table.each_row(names), dtype=np.intp)
            nodes = tuple(table.facts(row) for row in rows.tolist())
            self._order = OrderedNodes(nodes, table.arrivals[rows], rows)
            self._version = table.node_version
        return self._order


class NodeSearch:
    """Samples nodes and calls extenders.

    percentages: percentageOfNodesToScore of the profiles that sample, by scheduler name.
    start: index in the order where the next search starts.
    """

    def __init__(
        self, percentages: Mapping[str, int] | None = None, extenders: Extenders | None = None
    ) -> None:
        self._percentages = dict(percentages or {})
        self.extenders = extenders or Extenders()
        self.start = 0

    def applies_to(self, facts: PodFacts) -> bool:
        """Whether a pod's nodes are sampled or sent to extenders.

        Where any profile samples, pods of other profiles move the start of the next search as well.
        """
        return bool(self._percentages) or self.extenders.handles(facts)

    def advance(self, result: SearchResult) -> None:
        """Record that a result is used: the next search starts behind it."""
        self.start = result.next_start

    def search(
        self, profile: Profile, pod: PodInCycle, order: OrderedNodes, filtered: FilteredNodes
    ) -> SearchResult:
        """Return the remaining nodes; calls extenders.

        The next search starts at the result's `next_start` only after `advance`.
        """
        extender_pod = _extender_pod(pod)
        search = _Search(order, filtered)
        nominated = pod.pod_class.facts.nominated_node_name
        if nominated and self._nominated_passes(extender_pod, search, nominated):
            return search.only(nominated, self.start)
        feasible = search.visit(self.to_find(profile, len(search.considered)), self.start)
        next_start = search.next_start(self.start)
        nothing = FoundNodes(no_arrivals(), no_arrivals())
        if search.failure:
            return SearchResult(nothing, error=search.failure, next_start=next_start)
        try:
            passed = self.extenders.filter(extender_pod, feasible)
        except ExtenderError as failure:
            return SearchResult(nothing, error=str(failure), next_start=next_start)
        scores: Mapping[str, int] = {}
        # Upstream returns the only feasible node before it scores (schedulePod).
        if len(passed.nodes) > 1:
            scores = self.extenders.prioritize(extender_pod, passed.nodes)
        by_extender = len(passed.nodes) != len(feasible)
        return search.result(passed, _bounded(scores), by_extender, next_start)

    def to_find(self, profile: Profile, nodes: int) -> int:
        """Return how many feasible nodes to find among so many; all, without sampling."""
        percentage = self._percentages.get(profile.scheduler_name)
        if percentage is None:
            return nodes
        has_scoring = bool(profile.score) or self.extenders.any_prioritizers
        # Upstream: without scores and extenders' filters, the first feasible node is chosen.
        if not has_scoring and not self.extenders.any_filters:
            return 1
        return feasible_nodes_to_find(nodes, percentage)

    def _nominated_passes(self, extender_pod: ExtenderPod, search: _Search, name: str) -> bool:
        """Whether the pod passes on its nominated node, which is evaluated first and alone."""
        index = search.order.index_of(name)
        if index is None:
            return False
        if not search.fits[index]:
            # A refusal counts even if the search does not visit the node; an error does not.
            if int(search.order.arrivals[index]) not in search.failing:
                search.also_refused.add(index)
            return False
        try:
            passed = self.extenders.filter(extender_pod, [search.order.nodes[index]])
        except ExtenderError:
            # Upstream logs the error and evaluates all nodes.
            return False
        search.refuse(passed.refused)
        return bool(passed.nodes)


@dataclass(frozen=True, slots=True)
class PendingSearch:
    """The search for one pod over the nodes that passed Filter; `run` calls extenders."""

    node_search: NodeSearch
    profile: Profile
    pod: PodInCycle
    order: OrderedNodes
    filtered: FilteredNodes

    def run(self) -> SearchResult:
        return self.node_search.search(self.profile, self.pod, self.order, self.filtered)


class _Search:
    """One pod's search over an ordered node list; indices are into this list.

    considered: indices that PreFilter selected. fits: bool[index], passed Filter. also_refused:
    nodes that are reported as refused although the search need not visit them: the nominated node,
    and nodes that extenders refused. failure: the error of a filter on a visited node, which ended
    the search. _visited: indices that the search evaluates. _refused: extenders' refusals, by node.
    """

    def __init__(self, order: OrderedNodes, filtered: FilteredNodes) -> None:
        self.order = order
        self.fits = np.isin(order.arrivals, filtered.feasible)
        self.considered: Rows = np.arange(len(order.nodes), dtype=np.intp)
        if filtered.considered is not None:
            self.considered = np.flatnonzero(np.isin(order.arrivals, filtered.considered))
        self.failure = ""
        self.failing = filtered.failing
        self.also_refused: set[int] = set()
        self._visited: Rows = self.considered
        self._refused: dict[str, Status] = {}

    def refuse(self, refused: Mapping[str, Status]) -> None:
        """Record extenders' refusals, by node; the nodes may be unknown."""
        self._refused |= refused
        indices = (self.order.index_of(name) for name in refused)
        self.also_refused |= {index for index in indices if index is not None}

    def visit(self, to_find: int, start: int) -> list[NodeFacts]:
        """Return the feasible nodes that the search finds, in order of the search."""
        visited = indices_to_visit(self.fits[self.considered], to_find, start)
        self._visited = self.considered[visited]
        if self.failing:
            self._end_at_failure()
        fitting = self._visited[self.fits[self._visited]]
        return [self.order.nodes[index] for index in fitting.tolist()]

    def _end_at_failure(self) -> None:
        """End the visit before the first node on which a filter failed."""
        arrivals = self.order.arrivals[self._visited].tolist()
        for step, arrival in enumerate(arrivals):
            if arrival in self.failing:
                self.failure = self.failing[arrival]
                self._visited = self._visited[:step]
                return

    def next_start(self, start: int) -> int:
        """Return the start of the next search, as upstream.

        It moves by the number of nodes that were found or refused, wherever these are.
        """
        fits = self.fits[self._visited]
        refused = self.also_refused.union(self._visited[~fits].tolist())
        unknown_nodes = sum(self.order.index_of(name) is None for name in self._refused)
        processed = int(fits.sum()) + len(refused) + unknown_nodes
        return (start + processed) % max(len(self.order.nodes), 1)

    def only(self, name: str, start: int) -> SearchResult:
        """Return the nominated node as the only result, by which the start does not move."""
        remaining = self._arrivals([name])
        return SearchResult(FoundNodes(remaining, np.zeros(1, dtype=np.int64)), next_start=start)

    def result(
        self, passed: ExtenderResult, scores: Mapping[str, int], by_extender: bool, next_start: int
    ) -> SearchResult:
        """Return the result of the search after the extenders' answers."""
        self.refuse(passed.refused)
        names = [node.name for node in passed.nodes]
        remaining = self._arrivals(names)
        added = np.array([scores.get(name, 0) for name in names], dtype=np.int64)
        for name in names:
            self._refused.pop(name, None)
        by_status: dict[Status, list[str]] = {}
        unknown_nodes = []
        for name, status in self._refused.items():
            if self.order.index_of(name) is None:
                unknown_nodes.append(status)
            else:
                by_status.setdefault(status, []).append(name)
        refused = tuple((status, self._arrivals(nodes)) for status, nodes in by_status.items())
        # is_bare: an extender returned node objects, which are scored without pods and images.
        found_nodes = FoundNodes(
            remaining, added, self._evaluated(), refused, is_bare=passed.is_bare
        )
        of_remaining = {name: scores[name] for name in names if name in scores}
        return SearchResult(
            found_nodes,
            of_remaining,
            tuple(unknown_nodes),
            by_extender=by_extender,
            next_start=next_start,
        )

    def _evaluated(self) -> I64 | None:
        """Return the nodes whose refusals are reported, by arrival; None for all."""
        if len(self._visited) == len(self.considered):
            return None
        indices = np.union1d(self._visited, np.array(sorted(self.also_refused), dtype=np.intp))
        evaluated: I64 = self.order.arrivals[indices]
        return evaluated

    def _arrivals(self, names: Sequence[str]) -> I64:
        indices = [self.order.index_of(name) for name in names]
        arrivals: I64 = self.order.arrivals[np.array(indices, dtype=np.intp)]
        return arrivals


def _extender_pod(pod: PodInCycle) -> ExtenderPod:
    """Return a pod as it is sent to extenders."""
    facts = pod.pod_class.facts
    name = pod.key.removeprefix(f"{facts.namespace}/")
    return ExtenderPod(PodIdentity(pod.uid, facts.namespace, name), facts)


def _bounded(scores: Mapping[str, int]) -> dict[str, int]:
    return {name: max(-MAX_SCORE, min(MAX_SCORE, score)) for name, score in scores.items()}

"""InterPodAffinity: places pods near other pods, or away from them.

Nodes with the same value of a term's topology key form one domain. Terms apply in both directions:
those of the new pod to running pods, and those of running pods to the new pod.

Filter; the first of these that fails is the reason:
    affinity        the node has the topology key of every required term, and each of its domains
                    holds a pod that matches all terms. If no pod anywhere matches all terms, the
                    keys suffice for a pod that matches its own terms
    anti-affinity   no domain of the node holds a pod that a required anti-affinity term matches
    existing pods   no pod in a domain of the node has such a term that matches the new pod
Score:
    raw = sum over the node's domains of the weights of all matching terms (anti-affinity negative):
          preferred terms of the pod and of running pods, and required affinity terms of running
          pods with hardPodAffinityWeight
    normalized = int(100 * (float(raw - min) / float(max - min))), 0 if all are equal

PreFilter and PreScore count by topology key and value, over all nodes. A *counter* is named by a
family of terms and a topology key. A *relation* is what one pod of a class (`PodClass`: pods with
equal facts) on a node adds to each counter of the class to place (`term_relations`). Its *profile*
(`PodProfile`) is two numbers: one for namespace and labels of the class, and one for its terms. The
queueing hints are in `affinity_hints`.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/{plugin,filtering,scoring}.go.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from roadstead.config.plugin_args import InterPodAffinityArgs
from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventResource,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
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
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.affinity_hints import (
    after_node_change,
    after_pod_change,
    is_affinity_target,
)
from roadstead.plugins.affinity_terms import labels_of_namespaces, matches_all
from roadstead.plugins.count_passing_affinity import count_passing_affinity
from roadstead.plugins.inter_pod_counts import (
    ByTopology,
    Domains,
    InterPodCounts,
    by_topology,
    counts_for_row,
    scores_by_topology,
)
from roadstead.plugins.term_index import PodProfile, TermIndex
from roadstead.plugins.term_relations import FILTERING, CounterKey, Family, PodsToPlace, Relation
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

MAX_CACHED_NUMBERS = 32_000_000
"""Maximum of all integers in the cached `InterPodCounts`: 256 MB.

With more, the counts of the least recently used profiles are dropped.
"""

_STATUSES = (
    unresolvable("node(s) didn't match pod affinity rules"),
    unschedulable("node(s) didn't match pod anti-affinity rules"),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
)
_AFFINITY_UNMET, _ANTI_AFFINITY_MET, _EXISTING_ANTI_MET = 1, 2, 3
"""The codes of `_STATUSES` in a FilterResult; 0 passes."""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods that Filter counts, by topology key and value, without zeros.

    existing_anti: required anti-affinity terms of these pods that match the new pod.
    affinity: pods that match all required affinity terms of the new pod, once per term.
    anti_affinity: matches of required anti-affinity terms of the new pod.
    """

    existing_anti: ByTopology
    affinity: ByTopology
    anti_affinity: ByTopology


@dataclass(frozen=True, slots=True)
class TopologyScores:
    """Score by topology key and value, for each domain in which a term matched, zeros included.

    domains: the same for lookups by row; not compared, because it follows from the scores.
    """

    scores: ByTopology
    domains: tuple[Domains, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class FilterState:
    """Input of Filter: the counts, and lookups derived from them, which need no comparison.

    affinity, anti_affinity: one for each topology key of the pod's own terms. existing_anti: one
    for each topology key of the counts. is_first: no pod matches the pod's affinity terms, but the
    pod itself does.
    """

    counts: PodCounts
    affinity: tuple[Domains, ...] = field(compare=False)
    anti_affinity: tuple[Domains, ...] = field(compare=False)
    existing_anti: tuple[Domains, ...] = field(compare=False)
    is_first: bool = field(compare=False)


class InterPodAffinity(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    EnqueueExtensions,
):
    name = "InterPodAffinity"
    reads = Reads.CLUSTER
    shares_by_shape = True
    normalizes = True
    unprepared = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    unprepared_score = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._namespaces = labels_of_namespaces(handle.cluster)
        self._terms = TermIndex(handle.classes)
        self._counts: OrderedDict[PodProfile, InterPodCounts] = OrderedDict()
        # The sum of the sizes of `_counts`.
        self._cached_numbers = 0

    def relation(self, pod: PodClass, other: PodClass) -> Relation:
        """Return what one pod of class `other` on a node adds to each counter of class `pod`."""
        counts = self._counts_of(pod)
        relation = counts.relation_to(other)
        self._evict_excess(counts)
        return relation

    def required_keys(self, pod: PodClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the topology keys of the pod's required terms: (affinity, anti-affinity)."""
        terms = self._counts_of(pod).pod.terms
        affinity_keys = dict.fromkeys(term.topology_key for term in terms.affinity)
        anti_affinity_keys = dict.fromkeys(term.topology_key for term in terms.anti_affinity)
        return tuple(affinity_keys), tuple(anti_affinity_keys)

    def matches_itself(self, pod: PodClass) -> bool:
        """Whether the pod matches all of its own required affinity terms."""
        return matches_all(self._counts_of(pod).pod.terms.affinity, pod)

    def runs_score(self, pod: PodClass) -> bool:
        """Whether Score runs for the pod.

        True if the pod has preferred terms, or if those of running pods are not ignored
        (ignorePreferredTermsOfExistingPods).
        """
        return self._counts_of(pod).pod.runs_score

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        counts = self._counts_of(pod)
        terms = counts.pod.terms
        if terms.error:
            return PreFilterResult(unresolvable(f"parsing pod: {terms.error}"))
        on_rows = self._counts_on_rows(counts, table)
        pod_counts = PodCounts(
            by_topology(table, on_rows, Family.EXISTING_ANTI),
            by_topology(table, on_rows, Family.AFFINITY),
            by_topology(table, on_rows, Family.ANTI_AFFINITY),
        )
        if not (pod_counts.existing_anti or terms.affinity or terms.anti_affinity):
            return PreFilterResult(SKIP)
        state.write(self.name, self._filter_state(pod, pod_counts))
        return PreFilterResult()

    def with_pods_moved(
        self, prepared: object, pod: PodClass, row: Table, moves: Mapping[PodClass, int]
    ) -> object:
        assert isinstance(prepared, FilterState)
        counts, before = self._counts_of(pod), prepared.counts
        added: Counter[CounterKey] = Counter()
        for other, change in moves.items():
            for counter, per_pod in counts.relation_to(other):
                added[counter] += change * per_pod
        # The families that Filter reads; the others are for Score.
        by_family: dict[Family, dict[str, int]] = {family: {} for family in FILTERING}
        for (family, key), number in added.items():
            if number and family in by_family:
                by_family[family][key] = number
        self._evict_excess(counts)
        if not any(by_family.values()):
            return prepared
        after = PodCounts(
            counts_for_row(before.existing_anti, row, by_family[Family.EXISTING_ANTI]),
            counts_for_row(before.affinity, row, by_family[Family.AFFINITY]),
            counts_for_row(before.anti_affinity, row, by_family[Family.ANTI_AFFINITY]),
        )
        return self._filter_state(pod, after)

    def _filter_state(self, pod: PodClass, counts: PodCounts) -> FilterState:
        affinity_keys, anti_affinity_keys = self.required_keys(pod)
        return FilterState(
            counts,
            affinity=_domains(affinity_keys, counts.affinity),
            anti_affinity=_domains(anti_affinity_keys, counts.anti_affinity),
            existing_anti=_domains(counts.existing_anti, counts.existing_anti),
            is_first=not counts.affinity and self.matches_itself(pod),
        )

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        prepared = state.read(self.name, FilterState)
        codes = np.zeros(len(table), dtype=np.int32)
        # Later codes overwrite earlier ones: the reason that upstream checks first is written last.
        for domains in prepared.existing_anti:
            codes[domains.at(table) > 0] = _EXISTING_ANTI_MET
        for domains in prepared.anti_affinity:
            codes[domains.at(table) > 0] = _ANTI_AFFINITY_MET
        for domains in prepared.affinity:
            if prepared.is_first:
                # Negative: the node has no such label.
                codes[table.label_codes(domains.key) < 0] = _AFFINITY_UNMET
            else:
                codes[domains.at(table) == 0] = _AFFINITY_UNMET
        return FilterResult(codes, _STATUSES) if codes.any() else ALL_PASS

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        """Return how many of the first pods pass, each on its row, on top of the pods before it."""
        counts_of = {pod: self._counts_of(pod) for pod in dict.fromkeys(pods)}
        if any(counts.pod.terms.error for counts in counts_of.values()):
            return 0
        if not any(counts.is_related() for counts in counts_of.values()):
            return len(pods)
        passing = count_passing_affinity(pods, rows, table, counts_of)
        for counts in counts_of.values():
            self._evict_excess(counts)
        return passing

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        counts = self._counts_of(pod)
        if not counts.pod.runs_score:
            return SKIP
        if counts.pod.terms.error:
            return error(f"failed to parse pod: {counts.pod.terms.error}")
        scores = scores_by_topology(table, self._counts_on_rows(counts, table))
        if not scores:
            return SKIP
        state.write(self.name, TopologyScores(scores, _domains(scores, scores)))
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        raw = np.zeros(len(table), dtype=np.int64)
        for domains in state.read(self.name, TopologyScores).domains:
            raw += domains.at(table)
        return raw

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        width = extremes.maximum - extremes.minimum
        if not width:
            return np.zeros_like(raw)
        share = (raw - extremes.minimum).astype(np.float64) / float(width)
        return (float(MAX_NODE_SCORE) * share).astype(np.int64)

    def effect(self, placed: PodClass) -> Effect:
        """Return which other pods' answers change when `placed` is placed: those related to it."""
        return Effect(self._terms.profile(placed), partial(self._is_related, placed))

    def _is_related(self, placed: PodClass, pod: PodClass) -> bool:
        counts = self._counts_of(pod)
        related = counts.relates_to(placed)
        self._evict_excess(counts)
        return related

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(
                EventResource.POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                after_pod_change,
                may_matter=is_affinity_target,
                # Ask `may_matter` also for pods that other plugins rejected, as upstream does.
                whoever_rejected=True,
            ),
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
                after_node_change,
            ),
        )

    def sign(self, pod: PodFacts) -> Hashable:
        return (
            pod.namespace,
            pod.labels,
            pod.pod_affinity,
            pod.pod_anti_affinity,
            pod.preferred_pod_affinity,
            pod.preferred_pod_anti_affinity,
        )

    def _counts_on_rows(self, counts: InterPodCounts, table: Table) -> Mapping[CounterKey, I64]:
        """Return what the pods on each row add to each counter: int64[row]."""
        on_rows = counts.on_rows(table)
        self._evict_excess(counts)
        return on_rows

    def _evict_excess(self, counts: InterPodCounts) -> None:
        """Add the growth of `counts` to the cached numbers; drop counts beyond the maximum.

        Must be called after every use of `counts`, because each use may make them grow.
        """
        self._cached_numbers += counts.update_size()
        while self._cached_numbers > MAX_CACHED_NUMBERS and len(self._counts) > 1:
            self._cached_numbers -= self._counts.popitem(last=False)[1].size

    def _counts_of(self, pod: PodClass) -> InterPodCounts:
        profile = self._terms.profile(pod)
        counts = self._counts.get(profile)
        if counts is None:
            pods = self._pods_to_place(pod, profile)
            counts = self._counts[profile] = InterPodCounts(pods, self._terms)
        self._counts.move_to_end(profile)
        return counts

    def _pods_to_place(self, pod: PodClass, profile: PodProfile) -> PodsToPlace:
        facts = pod.facts
        _, terms_code = profile
        preferred = facts.preferred_pod_affinity or facts.preferred_pod_anti_affinity
        return PodsToPlace(
            pod_class=pod,
            terms=self._terms.terms[terms_code].merged(self._namespaces),
            namespace_labels=self._namespaces.get(facts.namespace, {}),
            runs_score=bool(preferred) or not self._args.ignore_preferred_terms_of_existing_pods,
            hard_weight=self._args.hard_pod_affinity_weight,
        )


def _domains(keys: Iterable[str], counts: ByTopology) -> tuple[Domains, ...]:
    return tuple(Domains(key, counts.get(key, {})) for key in keys)

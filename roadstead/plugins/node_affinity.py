"""NodeAffinity: required and preferred node selector terms, and the pod's nodeSelector.

Filter: the profile's added affinity (`addedAffinity` in the plugin's arguments), then nodeSelector
and the required terms; all must match.
Terms are ORed, expressions inside a term ANDed; a term that does not parse matches nothing.
PreFilter returns node names when every term names nodes by metadata.name.

    raw = sum of the weights of matching preferred terms (the profile's added ones included)
    normalized = 100 * raw / max(raw)

Upstream: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and
component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from roadstead.config.plugin_args import NodeAffinityArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement, selector_error
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventResource,
    HintError,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    EnqueueExtensions,
    Extremes,
    Feasible,
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
    default_normalize,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import SKIP, SUCCESS, Status, error, unresolvable

WeightedTerm = tuple[int, NodeSelectorTerm]
"""(weight, preferred term)."""

_NO_MATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
_NO_ADDED_MATCH = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    name = "NodeAffinity"
    reads = Reads.NODE
    shares_by_shape = True
    normalizes = True

    def __init__(self, args: NodeAffinityArgs) -> None:
        self._added_required: tuple[NodeSelectorTerm, ...] | None = None
        self._added_preferred: tuple[WeightedTerm, ...] | None = None
        if args.added_affinity is not None:
            self._parse_added(args.added_affinity)

    def _parse_added(self, manifest: object) -> None:
        # Imported here so that processes without added affinity do not load the manifest models.
        from roadstead.facts.parse_selectors import parse_node_selector, parse_preferred_terms
        from roadstead.protocol import objects

        added = objects.NodeAffinity.model_validate(manifest)
        required = added.required_during_scheduling_ignored_during_execution
        preferred = added.preferred_during_scheduling_ignored_during_execution
        if required is not None:
            self._added_required = parse_node_selector(required)
        if preferred:
            self._added_preferred = parse_preferred_terms(preferred)

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        facts = pod.facts
        terms = facts.required_node_terms
        if terms is None and self._added_required is None and not facts.node_selector:
            return PreFilterResult(SKIP)
        names = _named_nodes(terms or ())
        if names is None:
            return PreFilterResult()
        return PreFilterResult(node_names=names) if names else PreFilterResult(_CONFLICT)

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        facts = pod.facts
        matching = np.ones(len(table), dtype=np.bool_)
        for key, value in facts.node_selector:
            matching &= table.match(Requirement(key, "In", (value,)))
        if facts.required_node_terms is not None:
            matching &= _match_any(facts.required_node_terms, table)
        if self._added_required is None:
            return FilterResult.refuse(~matching, _NO_MATCH)
        enforced = _match_any(self._added_required, table)
        if matching.all() and enforced.all():
            return ALL_PASS
        # As upstream, the added affinity is checked first.
        codes = np.where(enforced, np.where(matching, 0, 2), 1).astype(np.int32)
        return FilterResult(codes, (_NO_ADDED_MATCH, _NO_MATCH))

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        preferred = [(each.weight, each.term) for each in pod.facts.preferred_node_terms]
        if not preferred and self._added_preferred is None:
            return SKIP
        # As upstream, terms of weight 0 are not parsed.
        problem = selector_error(term for weight, term in preferred if weight)
        if problem:
            return error(problem)
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        raw = np.zeros(len(table), dtype=np.int64)
        preferred = ((each.weight, each.term) for each in pod.facts.preferred_node_terms)
        for weight, term in (*(self._added_preferred or ()), *preferred):
            raw += weight * table.match_term(term)
        return raw

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        return default_normalize(raw, extremes.maximum)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        actions = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (on(EventResource.NODE, actions, self.after_node_change),)

    def after_node_change(
        self, pod: PodFacts, change: ObjectChange[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the node matches now and did not before. HintError: see `_matches`."""
        assert change.new is not None, "deletions of nodes are not registered"
        if self._added_required is not None:
            labels = dict(change.new.labels)
            if not any(term.matches(labels, change.new.name) for term in self._added_required):
                return QueueingHint.QUEUE_SKIP
        if not _matches(pod, change.new):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.when(change.old is None or not _matches(pod, change.old))

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.node_selector, pod.required_node_terms, pod.preferred_node_terms)


def _matches(pod: PodFacts, node: NodeFacts) -> bool:
    """Whether the pod's terms match; HintError if none does and one does not parse."""
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return False
    terms = pod.required_node_terms
    if terms is None or any(term.matches(labels, node.name) for term in terms):
        return True
    problem = selector_error(terms)
    if problem:
        raise HintError(problem)
    return False


def _match_any(terms: Iterable[NodeSelectorTerm], table: Table) -> Bools:
    matching = np.zeros(len(table), dtype=np.bool_)
    for term in terms:
        matching |= table.match_term(term)
    return matching


def _named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the node names that any term allows.

    None if some term does not name nodes, or if there are no terms. A term with several lists of
    names allows the names that are in all of them.
    """
    named: set[str] = set()
    any_term = False
    for term in terms:
        any_term = True
        allowed: set[str] | None = None
        for field in term.fields:
            if field.key == "metadata.name" and field.operator == "In":
                values = set(field.values)
                allowed = values if allowed is None else allowed & values
        if allowed is None:
            return None
        named |= allowed
    return frozenset(named) if any_term else None

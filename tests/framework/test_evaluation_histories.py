"""An evaluation that is updated equals a new one of an equal table."""

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from roadstead.config.model import default_config
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.per_node import NodePlugin, adapt
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ScorePlugin,
)
from roadstead.framework.profile import Profile
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import SUCCESS, unschedulable
from tests.builders import ROW_PLUGINS, advance, profile_of
from tests.strategies import NODE_NAMES, nodes, pods, small_pods


@dataclass(frozen=True, slots=True)
class Total:
    pods: int


class FewInAll(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Reads all nodes: refuses nodes with pods once the cluster has more than three."""

    name = "FewInAll"
    reads = Reads.CLUSTER

    def pre_filter(self, state, pod, table):
        state.write(self.name, Total(int(table.pod_count.sum())))
        return PreFilterResult()

    def filter(self, state, pod, table):
        total = state.read(self.name, Total)
        crowded = (table.pod_count > 0) & (total.pods > 3)
        return FilterResult.refuse(crowded, unschedulable("crowded"))

    def score(self, state, pod, table):
        total = state.read(self.name, Total)
        return np.full(len(table), total.pods % 101, dtype=np.int64)


class NoUrgentNeighbours(NodePlugin):
    """Reads the pods on a node."""

    name = "NoUrgentNeighbours"

    def filter(self, pod, node):
        urgent = any(other.facts.priority for other in node.pods)
        return unschedulable("urgent neighbours") if urgent else SUCCESS

    def score(self, pod, node):
        return len(node.pods)


def profiles(classes):
    return (
        profile_of(ROW_PLUGINS, classes=classes),
        wider(adapt(NoUrgentNeighbours), classes),
        wider(FewInAll, classes),
        Profile(default_config().profiles[0], in_tree_registry(), Handle(classes)),
    )


def wider(kind, classes):
    """Return the row plugins with another one among them."""
    before, filters, scores = (
        [*ROW_PLUGINS.get(point, ())] for point in ("preFilter", "filter", "score")
    )
    if issubclass(kind, PreFilterPlugin):
        before.append(kind.name)
    filters.insert(3, kind.name)
    scores.insert(2, kind.name)
    points = ROW_PLUGINS | {"preFilter": before, "filter": filters, "score": scores}
    return profile_of(points, classes=classes, plugins=[kind])


def answers(evaluation):
    """Return all results of an evaluation, by node name."""
    outcome = (evaluation.pre_filter, evaluation.feasible.any(), evaluation.pre_score)
    if not evaluation.pre_filter.status.is_success:
        return outcome, {}
    lines = {}
    for row, name in enumerate(evaluation.table.names):
        code = int(evaluation.codes[row])
        refused = code > 0
        lines[name] = (
            evaluation.statuses[code - 1] if refused else code,
            int(evaluation.positions[row]) if refused else None,
            bool(evaluation.feasible[row]),
            [None if raw is None else int(raw[row]) for raw in evaluation.raw],
        )
    return outcome, lines


class Histories(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.table = NodeTable()
        self.on_node = {}

    @initialize(
        first=st.lists(nodes(), min_size=1, max_size=5, unique_by=lambda facts: facts.name),
        asked=st.lists(pods, min_size=1, max_size=2),
    )
    def start(self, first, asked):
        for facts in first:
            self.table.add_node(facts)
            self.on_node[facts.name] = []
        self.evaluations = [
            Evaluation(profile, self.table.classes.pod_class(facts), self.table)
            for profile in profiles(self.table.classes)
            for facts in asked
        ]
        self.look()

    def place(self, pick, facts):
        name = sorted(self.on_node)[pick % len(self.on_node)]
        self.table.add_pod(name, self.table.classes.pod_class(facts))
        self.on_node[name].append(facts)

    @precondition(lambda self: self.on_node)
    @rule(pick=st.integers(0, 7), facts=small_pods)
    def add_pod(self, pick, facts):
        self.place(pick, facts)

    @precondition(lambda self: self.on_node)
    @rule(pick=st.integers(0, 7), which=st.integers(0, 1))
    def place_an_asked_pod(self, pick, which):
        self.place(pick, self.evaluations[which % len(self.evaluations)].pod.facts)

    @precondition(lambda self: any(self.on_node.values()))
    @rule(pick=st.integers(0, 7))
    def remove_pod(self, pick):
        holders = sorted(name for name, held in self.on_node.items() if held)
        name = holders[pick % len(holders)]
        self.table.remove_pod(name, self.table.classes.pod_class(self.on_node[name].pop(0)))

    @rule(facts=nodes(NODE_NAMES[:6]))
    def add_or_update_node(self, facts):
        if facts.name in self.on_node:
            self.table.update_node(facts)
        else:
            self.table.add_node(facts)
            self.on_node[facts.name] = []

    @precondition(lambda self: self.on_node)
    @rule(pick=st.integers(0, 7))
    def remove_node(self, pick):
        name = sorted(self.on_node)[pick % len(self.on_node)]
        self.table.remove_node(name)
        del self.on_node[name]

    @rule()
    def update_filters_only(self):
        for evaluation in self.evaluations:
            evaluation.update(evaluation.run_pre_filter())

    @rule()
    def look(self):
        rebuilt = self.rebuilt()
        for evaluation in self.evaluations:
            advance(evaluation)
            fresh = Evaluation(evaluation.profile, evaluation.pod, rebuilt)
            advance(fresh)
            assert answers(evaluation) == answers(fresh)

    def rebuilt(self):
        """Return an equal table with its rows in another order."""
        table = NodeTable(self.table.classes)
        for row in reversed(range(len(self.table))):
            facts = self.table.facts(row)
            table.add_node(facts, int(self.table.arrivals[row]))
            for pod_class, count in self.table.pods(row).items():
                table.add_pod(facts.name, pod_class, count)
        return table

    def teardown(self):
        if hasattr(self, "evaluations"):
            self.look()


Histories.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestHistories = Histories.TestCase

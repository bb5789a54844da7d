"""Random clusters: dropped plugins agree with upstream's rules node by node."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import NodeLabelArgs, ServiceAffinityArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodIdentity
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.local.decision_paths import open_path
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.selector_spread import SelectorSpread
from roadstead.plugins.service_affinity import ServiceAffinity
from tests.builders import config_of, is_affected, put
from tests.plugins.older_upstream import (
    selector_spread,
    service_affinity_filter,
    service_affinity_scores,
)
from tests.plugins.spread_upstream import ZONE
from tests.plugins.test_pod_topology_spread_properties import (
    clusters,
    pending_pods,
    pods_on_nodes,
    randoms,
    rows_in,
    selecting,
    shuffled,
)

label_lists = st.lists(st.sampled_from(["rack", "disk", ZONE]), max_size=3).map(tuple)
POINTS = {
    "preFilter": ["ServiceAffinity", "NodeResourcesFit"],
    "filter": ["NodeLabel", "ServiceAffinity", "NodeResourcesFit"],
    "preScore": ["SelectorSpread"],
    "score": [
        ("SelectorSpread", 2),
        ("ServiceAffinity", 3),
        ("NodeLabel", 1),
        ("NodePreferAvoidPods", 10),
    ],
}


class Asked:
    """A table and one plugin. Rows are in any order, arrival numbers in that of the nodes."""

    def __init__(self, build, nodes, random):
        arrivals = {each.facts.name: number for number, each in enumerate(nodes)}
        self.table = NodeTable()
        for each in shuffled(nodes, random):
            self.table.add_node(each.facts, arrivals[each.facts.name])
            put(self.table, each.facts.name, *each.pods)
        self.plugin, self.state = build(self.table.classes), CycleState(len(nodes))

    def passing(self, facts):
        """Return {node name: whether it passes}."""
        plugin, table = self.plugin, self.table
        pod_class = table.classes.pod_class(facts)
        passes = np.ones(len(table), dtype=np.bool_)
        if not plugin.pre_filter(self.state, pod_class, table).status.is_skip:
            result = plugin.filter(self.state, pod_class, table)
            passes = passes if result.codes is None else result.codes == 0
        return dict(zip(table.names, passes.tolist(), strict=True))

    def scores(self, facts, feasible):
        """Return {node name: score} of feasible nodes; None after Skip."""
        plugin, table = self.plugin, self.table
        pod_class = table.classes.pod_class(facts)
        state = CycleState(len(table), self.state)
        if plugin.pre_score(state, pod_class, table, lambda: rows_in(table, feasible)).is_skip:
            return None
        scores = plugin.score(state, pod_class, table)
        assert scores.dtype == np.int64
        by_name = dict(zip(table.names, scores.tolist(), strict=True))
        return {name: score for name, score in by_name.items() if name in feasible}


def spreader(owning):
    return lambda classes: SelectorSpread(Handle(classes, ClusterFacts((), owning)))


def affine(owning, affinity=(), spread=()):
    args = ServiceAffinityArgs(affinity, spread)
    return lambda classes: ServiceAffinity(args, Handle(classes, ClusterFacts((), owning)))


def some(nodes, random):
    """Return (names, nodes) of a random choice of feasible nodes."""
    chosen = [each for each in nodes if random.random() < 0.7]
    return {each.facts.name for each in chosen}, chosen


@given(selecting, clusters(), pending_pods, randoms)
def test_selector_spread_scores_like_upstream_in_any_order_of_nodes(owning, nodes, pending, random):
    names, feasible = some(nodes, random)
    expected = selector_spread(pending, feasible, owning)

    actual = Asked(spreader(owning), nodes, random).scores(pending, names)

    assert actual == expected


@given(selecting, clusters(), pending_pods, label_lists, randoms)
def test_service_affinity_filters_like_upstream_in_any_order_of_nodes(
    owning, nodes, pending, labels, random
):
    expected = service_affinity_filter(pending, nodes, owning, labels)

    actual = Asked(affine(owning, labels), nodes, random).passing(pending)

    assert actual == expected


@given(selecting, clusters(), pending_pods, label_lists, randoms)
def test_service_affinity_scores_like_upstream_in_any_order_of_nodes(
    owning, nodes, pending, labels, random
):
    names, feasible = some(nodes, random)
    expected = service_affinity_scores(pending, feasible, owning, labels)

    actual = Asked(affine(owning, (), labels), nodes, random).scores(pending, names)

    assert actual == expected


@given(selecting, clusters(), pending_pods, pending_pods, label_lists, label_lists)
def test_pods_of_equal_signatures_get_equal_answers(owning, nodes, one, other, affinity, spread):
    everywhere = {each.facts.name for each in nodes}
    for build in (spreader(owning), affine(owning, affinity, spread)):
        plugin = build(PodClasses())
        if plugin.sign(one) != plugin.sign(other):
            continue
        answers = []
        for each in (one, other):
            asked = Asked(build, nodes, Random(0))
            passing = asked.passing(each) if isinstance(plugin, ServiceAffinity) else None
            answers.append((passing, asked.scores(each, everywhere)))
        assert answers[0] == answers[1]


@given(selecting, clusters(), pending_pods, pods_on_nodes, label_lists, label_lists, st.data())
def test_a_pod_that_does_not_affect_another_changes_no_answer_on_other_nodes(
    owning, nodes, pending, placed, affinity, spread, data
):
    if not nodes:
        return
    target = data.draw(st.sampled_from([each.facts.name for each in nodes]))
    everywhere = {each.facts.name for each in nodes}
    for build in (spreader(owning), affine(owning, affinity, spread)):
        asked = Asked(build, nodes, Random(0))
        plugin, table = asked.plugin, asked.table
        if is_affected(plugin, table.classes.pod_class(pending), table.classes.pod_class(placed)):
            continue
        filters = isinstance(plugin, ServiceAffinity)
        before = filters and asked.passing(pending), asked.scores(pending, everywhere)
        put(table, target, placed)
        assert before == (filters and asked.passing(pending), asked.scores(pending, everywhere))


def profiles_of(owning, affinity, spread):
    args = {
        "NodeLabel": NodeLabelArgs(absent_labels_preference=("disk",)),
        "ServiceAffinity": ServiceAffinityArgs(affinity, spread),
    }

    def build(classes):
        handle = Handle(classes, ClusterFacts((), owning))
        return {"default-scheduler": Profile(config_of(POINTS, args), in_tree_registry(), handle)}

    return build


def contents(decision):
    return decision.node_name, decision.total, decision.feasible, decision.best


def decided(path, nodes, wanted):
    """Return the decisions of a path for some pods, one batch after another."""
    path.add_nodes(each.facts for each in nodes)
    for each in nodes:
        for facts in each.pods:
            path.add_pod(each.facts.name, facts)
    left = [
        path.prepare(PodIdentity(f"u{number}", "default", f"p{number}"), facts)
        for number, facts in enumerate(wanted)
    ]
    found = []
    while left:
        decisions = path.decide(left)
        found += decisions
        left = left[len(decisions) :]
    return [contents(each) for each in found]


@given(
    owning=selecting, nodes=clusters(), wanted=st.lists(pending_pods, max_size=6), data=st.data()
)
def test_batches_decide_like_single_pods_in_turn(owning, nodes, wanted, data):
    build = profiles_of(owning, data.draw(label_lists), data.draw(label_lists))

    together, alone = (
        decided(open_path(name, build), nodes, wanted) for name in ("batches", "plain")
    )

    assert together == alone

"""Random worlds: dropped plugins over any sharding say what upstream's rules say node by node."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import NodeLabelArgs, ServiceAffinityArgs
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.plain import PlainCycle
from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.selector_spread import SelectorSpread
from roadstead.plugins.service_affinity import ServiceAffinity
from tests.builders import config_of, put
from tests.plugins.older_upstream import (
    selector_spread,
    service_affinity_filter,
    service_affinity_scores,
)
from tests.plugins.spread_upstream import ZONE
from tests.plugins.test_pod_topology_spread_properties import (
    clusters,
    dealt,
    merged,
    pending_pods,
    pods_on_nodes,
    rows_in,
    selecting,
    sharding,
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


class Shards:
    """One plugin per shard; summaries travel between them. Nodes keep their arrivals."""

    def __init__(self, build, nodes, shards, random):
        self.tables, self.plugins = [], []
        arrivals = {each.facts.name: number for number, each in enumerate(nodes)}
        for part in dealt(nodes, shards, random):
            table = NodeTable()
            for each in part:
                table.add_node(each.facts, arrivals[each.facts.name])
                put(table, each.facts.name, *each.pods)
            self.tables.append(table)
            self.plugins.append(build(table.classes))
        self.states = [CycleState(len(nodes)) for _ in self.tables]

    def _each(self, facts):
        infos = [table.classes.info(facts) for table in self.tables]
        return list(zip(self.plugins, self.states, infos, self.tables, strict=True))

    def passing(self, facts):
        """{node name: whether it passes}."""
        summaries = [plugin.filter_summary(info, t) for plugin, _, info, t in self._each(facts)]
        told = {}
        for (plugin, state, info, table), summary in zip(
            self._each(facts), merged(summaries), strict=True
        ):
            if summary is not None:
                state.filter_summaries[plugin.name] = summary
            passes = np.ones(len(table), dtype=np.bool_)
            if not plugin.pre_filter(state, info).status.is_skip:
                result = plugin.filter(state, info, table)
                passes = passes if result.codes is None else result.codes == 0
            told |= zip(table.names, passes.tolist(), strict=True)
        return told

    def scores(self, facts, feasible):
        """{node name: score} of feasible nodes; None after Skip."""
        summaries = [
            plugin.score_summary(state, info, table, rows_in(table, feasible))
            for plugin, state, info, table in self._each(facts)
        ]
        told = {}
        for (plugin, state, info, table), summary in zip(
            self._each(facts), merged(summaries), strict=True
        ):
            if summary is not None:
                state.score_summaries[plugin.name] = summary
            if isinstance(plugin, SelectorSpread) and plugin.pre_score(state, info).is_skip:
                return None
            scores = plugin.score(state, info, table)
            assert scores.dtype == np.int64
            told |= zip(table.names, scores.tolist(), strict=True)
        return {name: score for name, score in told.items() if name in feasible}


def spreader(owning):
    return lambda classes: SelectorSpread(Handle(classes, ClusterFacts((), owning)))


def affine(owning, affinity=(), spread=()):
    args = ServiceAffinityArgs(affinity, spread)
    return lambda classes: ServiceAffinity(args, Handle(classes, ClusterFacts((), owning)))


def some(nodes, random):
    """(names, nodes) of those that are feasible."""
    chosen = [each for each in nodes if random.random() < 0.7]
    return {each.facts.name for each in chosen}, chosen


@given(selecting, clusters(), pending_pods, *sharding)
def test_selector_spread_scores_as_upstream_over_any_sharding(
    owning, nodes, pending, shards, random
):
    names, feasible = some(nodes, random)
    expected = selector_spread(pending, feasible, owning)

    told = Shards(spreader(owning), nodes, shards, random).scores(pending, names)

    assert told == expected


@given(selecting, clusters(), pending_pods, label_lists, *sharding)
def test_service_affinity_filters_as_upstream_over_any_sharding(
    owning, nodes, pending, labels, shards, random
):
    expected = service_affinity_filter(pending, nodes, owning, labels)

    told = Shards(affine(owning, labels), nodes, shards, random).passing(pending)

    assert told == expected


@given(selecting, clusters(), pending_pods, label_lists, *sharding)
def test_service_affinity_scores_as_upstream_over_any_sharding(
    owning, nodes, pending, labels, shards, random
):
    names, feasible = some(nodes, random)
    expected = service_affinity_scores(pending, feasible, owning, labels)

    told = Shards(affine(owning, (), labels), nodes, shards, random).scores(pending, names)

    assert told == expected


@given(selecting, clusters(), pending_pods, pending_pods, label_lists, label_lists)
def test_pods_of_equal_signatures_get_equal_answers(owning, nodes, one, other, affinity, spread):
    everywhere = {each.facts.name for each in nodes}
    for build in (spreader(owning), affine(owning, affinity, spread)):
        plugin = build(PodClasses())
        if plugin.sign(one) != plugin.sign(other):
            continue
        answers = []
        for each in (one, other):
            shards = Shards(build, nodes, 1, Random(0))
            passing = shards.passing(each) if isinstance(plugin, ServiceAffinity) else None
            answers.append((passing, shards.scores(each, everywhere)))
        assert answers[0] == answers[1]


@given(selecting, clusters(), pending_pods, pods_on_nodes, label_lists, label_lists, st.data())
def test_a_pod_that_does_not_affect_another_changes_no_answer_elsewhere(
    owning, nodes, pending, placed, affinity, spread, data
):
    if not nodes:
        return
    target = data.draw(st.sampled_from([each.facts.name for each in nodes]))
    everywhere = {each.facts.name for each in nodes}
    for build in (spreader(owning), affine(owning, affinity, spread)):
        shards = Shards(build, nodes, 1, Random(0))
        (plugin,), (table,) = shards.plugins, shards.tables
        if plugin.affected_by(table.classes.info(pending), table.classes.info(placed)):
            continue
        filters = isinstance(plugin, ServiceAffinity)
        before = filters and shards.passing(pending), shards.scores(pending, everywhere)
        put(table, target, placed)
        assert before == (filters and shards.passing(pending), shards.scores(pending, everywhere))


def profiles_of(owning, affinity, spread):
    args = {
        "NodeLabel": NodeLabelArgs(absent_labels_preference=("disk",)),
        "ServiceAffinity": ServiceAffinityArgs(affinity, spread),
    }

    def build(classes):
        handle = Handle(classes, ClusterFacts((), owning))
        return {"default-scheduler": Profile(config_of(POINTS, args), in_tree_registry(), handle)}

    return build


def in_cycle(number, facts, classes, profiles):
    uid = f"u{number}"
    info = classes.info(facts)
    return PodInCycle(uid, uid, info, profiles["default-scheduler"].class_of(info, uid))


def told(decision):
    return decision.node_name, decision.total, decision.feasible, decision.best


@pytest.mark.parametrize("shards", [1, 2, 5])
@given(
    owning=selecting, nodes=clusters(), wanted=st.lists(pending_pods, max_size=6), data=st.data()
)
def test_a_batch_over_shards_decides_as_one_pod_after_another(shards, owning, nodes, wanted, data):
    build = profiles_of(owning, data.draw(label_lists), data.draw(label_lists))
    table = NodeTable()
    profiles = build(table.classes)
    plain = PlainCycle(table, profiles, TieBreak("first"), name_best=True)
    sharded = LocalShards(shards, build, TieBreak("first"), name_best=True)
    sharded.add_nodes(each.facts for each in nodes)
    for each in nodes:
        table.add_node(each.facts)
        put(table, each.facts.name, *each.pods)
        for facts in each.pods:
            sharded.add_pod(each.facts.name, facts)

    expected = [
        told(plain.decide(in_cycle(number, facts, table.classes, profiles)))
        for number, facts in enumerate(wanted)
    ]
    left = [
        in_cycle(number, facts, sharded.cycle.classes, sharded.profiles)
        for number, facts in enumerate(wanted)
    ]
    found = []
    while left:
        decisions = sharded.decide(left)
        found += map(told, decisions)
        left = left[len(decisions) :]

    assert found == expected

"""Pods with sampled nodes, on a table of all nodes, are decided as one after another."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.node_search import NodeSearch, OrderedNodesCache
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import Volume
from roadstead.framework.tie_break import TieBreak
from tests.actors import fleets
from tests.builders import named, node, pod, table_of
from tests.cycle.test_batch_builder import Cycle
from tests.extenders.servers import config_of
from tests.kernel.test_equality import (
    DECIDING,
    PROFILES,
    TIE_BREAKS,
    Plain,
    World,
    compiled_kernel,
    fleet_world,
    play,
    profiles_of,
    worlds,
)
from tests.kernel.test_many_rows import demand, many

DEFAULT = default_config().profiles[0]
SHARES = st.sampled_from([{}, {"default-scheduler": 0}, {"default-scheduler": 40}])


class Sampling(Cycle):
    """A Cycle that samples in the order of its table."""

    def __init__(self, world, config, tie_break, compiled_kernel, shares):
        self.node_search, self.order = NodeSearch(shares), OrderedNodesCache()
        super().__init__(world, config, tie_break, compiled_kernel, self.node_search)

    def batch(self, pods):
        self.cycle.order = self.order.snapshot(self.table)
        return super().batch(pods)


class SamplingAlone(Plain):
    """A plain cycle that samples, one pod after another on one table."""

    def __init__(self, world, config, tie_break, shares):
        super().__init__(world, config, tie_break, None)
        self.node_search = NodeSearch(shares)
        self.cycle = PlainCycle(
            self.cycle.table, self.profiles, tie_break, node_search=self.node_search
        )


@pytest.fixture
def few_are_enough(monkeypatch):
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)


def both(world, config, tie_break, with_kernel, shares):
    """Return the decisions of both, and where their next samples start."""
    ours = Sampling(world, config, tie_break, compiled_kernel() if with_kernel else None, shares)
    theirs = SamplingAlone(world, config, tie_break, shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
        played = play(ours, world), play(theirs, world)
    return zip(played, (ours.node_search.start, theirs.node_search.start), strict=True)


@DECIDING
@given(worlds(), PROFILES, TIE_BREAKS, st.booleans(), SHARES)
def test_sampled_pods_are_decided_like_single_pods_in_turn(
    world, config, tie_break, with_kernel, shares
):
    ours, theirs = both(world, config, tie_break, with_kernel, shares)

    assert ours == theirs


@DECIDING
@given(fleets.inputs(), TIE_BREAKS, st.booleans(), SHARES)
def test_sampled_pods_with_constraints_across_nodes_are_decided_like_single_ones(
    inputs, tie_break, with_kernel, shares
):
    ours, theirs = both(fleet_world(inputs), DEFAULT, tie_break, with_kernel, shares)

    assert ours == theirs


@given(st.integers(0, 2**32))
def test_the_kernel_searches_many_nodes_like_the_reference(seed):
    draw = random.Random(seed)
    batches = [[(demand(draw), draw.random() < 0.2) for _ in range(30)]]
    world = World([(each, []) for each in many(draw, 150)], batches)

    ours, theirs = both(world, DEFAULT, TieBreak("random", seed), True, {"default-scheduler": 5})

    assert ours == theirs


def test_the_kernel_decides_sampled_pods(few_are_enough):
    nodes = [(node(f"n{index}", cpu=4000, pods=10), []) for index in range(6)]
    world = World(nodes, [[(pod(cpu=100), False)] * 4])
    ours = Sampling(world, DEFAULT, TieBreak("first"), compiled_kernel(), {"default-scheduler": 1})

    decided = play(ours, world)

    assert [each[1] for each in decided] == ["n0", "n2", "n4", "n1"]
    assert [each[2] for each in decided] == [2] * 4
    assert ours.cycle.compiled_kernel.decision_counts.by_kernel == 4
    assert ours.node_search.start == 2


@pytest.mark.parametrize("start", [6, 7, 1_000_003])
def test_a_search_starts_among_the_remaining_nodes(few_are_enough, start):
    """Nodes were removed since the last search; upstream takes the remainder at each node."""
    nodes = [(node(f"n{index}", cpu=4000, pods=10), []) for index in range(6)]
    world = World(nodes, [[(pod(cpu=100), False)] * 4])
    shares = {"default-scheduler": 1}
    ours = Sampling(world, DEFAULT, TieBreak("first"), compiled_kernel(), shares)
    theirs = SamplingAlone(world, DEFAULT, TieBreak("first"), shares)
    ours.node_search.start = theirs.node_search.start = start

    assert play(ours, world) == play(theirs, world)
    assert ours.cycle.compiled_kernel.decision_counts.by_kernel == 4
    assert ours.node_search.start == theirs.node_search.start


@pytest.mark.parametrize("start", [0, 4, 5])
def test_the_reference_names_the_best_of_sampled_nodes(few_are_enough, start):
    table = table_of(*(node(f"n{index}", cpu=4000, pods=10) for index in range(6)))
    profiles = profiles_of(DEFAULT)(table.classes)
    node_search = NodeSearch({"default-scheduler": 1})
    node_search.start = start
    quick = compiled_kernel()
    cycle = BatchBuilder(
        *(table, profiles, TieBreak("first")),
        **{"name_best": True, "node_search": node_search, "compiled_kernel": quick},
    )
    pod_class = table.classes.pod_class(pod(cpu=100))
    one = PodInCycle(
        "u", "default/u", pod_class, profiles["default-scheduler"].signature_of(pod_class, "u")
    )

    batch = cycle.begin([one])

    assert batch.decide_by_kernel([one]) == []
    decision = batch.decide(one)
    assert decision.best_size == 2
    assert decision.best == tuple(sorted(f"n{(start + step) % 6}" for step in range(2)))


def test_sampled_pods_are_batched_and_pods_of_extenders_are_decided_alone():
    world = World([(node("n1"), [])], [])
    ours = Sampling(world, DEFAULT, TieBreak("first"), None, {"default-scheduler": 1})
    pod_class = ours.classes.pod_class(pod())
    pods = [PodInCycle(f"u{n}", f"ns/u{n}", pod_class, "class") for n in range(3)]

    assert list(ours.cycle.next_batch(pods)) == pods
    assert list(ours.cycle.next_batch([])) == []
    ours.node_search.extenders.handles = lambda facts: True
    assert list(ours.cycle.next_batch(pods)) == pods[:1]


def test_pods_without_an_interested_extender_are_placed_with_extenders_configured():
    managed = config_of(node_cache_capable=True, filter_verb="filter", managed=("x/gpu",))
    node_search = NodeSearch({}, Extenders([Extender(managed, None)]))
    world = World([(node("n1"), [])], [[(pod(cpu=100), False)] * 2])
    ours = Cycle(world, DEFAULT, TieBreak("first"), None, node_search)

    assert [each[1] for each in play(ours, world)] == ["n1", "n1"]


def test_placements_of_the_reference_count_for_pods_decided_by_the_kernel(few_are_enough):
    fixed = pod(labels={"app": "web"}, required_node_terms=(named("n0"),))
    apart = pod(labels={"app": "web"}, pod_anti_affinity=(fleets.near(fleets.apps("web")),))
    nodes = [(fleets.host(number, zone), []) for number, zone in enumerate("aabb")]
    world = World(nodes, [[(fixed, False), (apart, False)]])

    ours, theirs = both(world, DEFAULT, TieBreak("first"), True, {"default-scheduler": 100})

    assert ours == theirs
    assert [each[1] for each in ours[0]] == ["n0", "n2"]


def test_among_sampled_pods_a_second_pod_with_volumes_ends_a_batch():
    disk = pod(volumes=(Volume("v", "gcePersistentDisk", (("pdName", "disk"),)),))
    world = World([(node(f"n{index}"), []) for index in range(3)], [])
    ours = Sampling(world, DEFAULT, TieBreak("first"), None, {"default-scheduler": 1})
    pods = []
    for number, facts in enumerate([pod(), disk, pod(), disk]):
        pod_class = ours.classes.pod_class(facts)
        signature = ours.profiles["default-scheduler"].signature_of(pod_class, f"u{number}")
        pods.append(PodInCycle(f"u{number}", f"ns/u{number}", pod_class, signature))

    assert [each.pod for each in ours.batch(pods)] == pods[:3]
    assert [each.pod for each in ours.batch(pods[3:])] == pods[3:]

"""The kernel decides like the reference: node, feasible rows, total, equally good rows."""

import os
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.decision_paths import BatchPath, PathOptions
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.errors import UnsupportedError
from tests import strategies
from tests.actors import fleets
from tests.builders import GIB, GPU, MIB, ROW_PLUGINS, config_of, node, pod, prefer
from tests.plugins.test_signatures import VALUES

RESOURCES = st.lists(
    st.builds(
        ResourceSpec,
        st.sampled_from(["cpu", "memory", GPU, "ephemeral-storage", strategies.HUGE]),
        st.integers(1, 100),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.name,
).map(tuple)
SHAPES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda p: p[0],
).map(lambda points: tuple(ShapePoint(*point) for point in sorted(points)))
SCORING = st.one_of(
    st.builds(ScoringStrategy, st.sampled_from(["LeastAllocated", "MostAllocated"]), RESOURCES),
    st.builds(
        lambda resources, shape: ScoringStrategy(
            "RequestedToCapacityRatio", resources, RequestedToCapacityRatio(shape)
        ),
        RESOURCES,
        SHAPES,
    ),
)
ROW_PROFILES = st.builds(
    lambda scoring, balanced, ignored: config_of(
        ROW_PLUGINS,
        {
            "NodeResourcesFit": NodeResourcesFitArgs(
                ignored_resources=ignored, scoring_strategy=scoring
            ),
            "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(balanced),
        },
    ),
    SCORING,
    RESOURCES,
    st.sampled_from([(), (GPU,)]),
)
PROFILES = st.one_of(st.just(default_config().profiles[0]), ROW_PROFILES)


ROOMY_NODES = st.builds(
    node,
    name=st.sampled_from([f"n{number}" for number in range(12)]),
    cpu=st.sampled_from([4000, 8000, 3999]),
    memory=st.sampled_from([8 * GIB, 3 * GIB + 1]),
    pods=st.integers(2, 9),
    others=st.fixed_dictionaries({}, optional={GPU: st.integers(1, 8)}),
    labels=strategies.node_labels,
    taints=strategies.mostly(
        (),
        st.lists(st.sampled_from(strategies.TAINTS), max_size=2, unique=True).map(tuple),
    ),
    images=st.dictionaries(
        st.sampled_from(strategies.IMAGES), st.sampled_from([90 * MIB, 700 * MIB]), max_size=2
    ),
)
MODEST_PODS = st.builds(
    pod,
    cpu=st.sampled_from([None, 0, 1, 333, 1000]),
    memory=st.sampled_from([None, 1, 100 * MIB, GIB]),
    others=st.fixed_dictionaries({}, optional={GPU: st.integers(0, 2)}),
    preferred_node_terms=st.lists(
        st.builds(prefer, st.integers(1, 100), strategies.sound_terms), max_size=2
    ).map(tuple),
    required_node_terms=strategies.mostly(
        None, st.lists(strategies.terms, min_size=1, max_size=2).map(tuple)
    ),
    tolerations=st.lists(strategies.tolerations, max_size=3).map(tuple),
    host_ports=strategies.mostly(
        (), st.lists(st.sampled_from(strategies.PORTS), max_size=2).map(tuple)
    ),
    images=st.lists(st.sampled_from(strategies.IMAGES), max_size=2).map(tuple),
    container_count=st.integers(1, 2),
)
ROOMY = st.lists(
    st.tuples(ROOMY_NODES, st.lists(strategies.small_pods, max_size=1)),
    min_size=1,
    max_size=12,
    unique_by=lambda line: line[0].name,
)


@dataclass
class World:
    """Nodes with pods on them, and batches of pods, some of which are removed afterwards."""

    clusters: list
    batches: list = field(default_factory=list)


AMOUNTS = st.lists(st.sampled_from([1, 2, 3, 7, 50]), min_size=1, max_size=4, unique=True)


def resized(facts, by):
    """Return a pod of the same shape with all requests multiplied."""
    return replace(
        facts,
        requests=tuple((name, amount * by) for name, amount in facts.requests),
        nonzero_cpu_milli=facts.nonzero_cpu_milli * by,
        nonzero_memory_bytes=facts.nonzero_memory_bytes * by,
    )


@st.composite
def worlds(draw):
    clusters, pods = draw(
        st.sampled_from([(ROOMY, MODEST_PODS)] * 3 + [(strategies.clusters, strategies.pods)])
    )
    kinds = draw(st.lists(pods, min_size=1, max_size=4))
    if draw(st.booleans()):
        kinds = [resized(each, by) for each in kinds for by in draw(AMOUNTS)]
    batch = st.lists(st.tuples(st.sampled_from(kinds), st.booleans()), min_size=1, max_size=20)
    return World(draw(clusters), draw(st.lists(batch, min_size=1, max_size=3)))


def profiles_of(config):
    def build(classes):
        return {config.scheduler_name: Profile(config, in_tree_registry(), Handle(classes))}

    return build


def contents(decision):
    return (
        decision.pod.uid,
        decision.node_name,
        decision.feasible,
        decision.total,
        decision.best_size,
        decision.best,
        decision.error,
        decision.diagnosis and decision.diagnosis.message(""),
    )


def compiled_kernel():
    return CompiledKernel(load(), DecisionCounts())


class LateAccelerator(CompiledKernel):
    """An compiled_kernel whose code is loaded only after some runs were requested."""

    def __init__(self, after):
        self.after = after
        self.decision_counts = DecisionCounts()

    @property
    def code(self):
        self.after -= 1
        return load() if self.after < 0 else None


class Plain:
    def __init__(self, world, config, tie_break, compiled_kernel, name_best=False):
        table = NodeTable()
        for facts, running in world.clusters:
            table.add_node(facts)
            for each in running:
                table.add_pod(facts.name, table.classes.pod_class(each))
        self.classes, self.profiles = table.classes, profiles_of(config)(table.classes)
        self.cycle = PlainCycle(
            table, self.profiles, tie_break, name_best=name_best, compiled_kernel=compiled_kernel
        )

    def decide(self, pods):
        decisions = [self.cycle.decide(pod) for pod in pods]
        self.cycle.table.validate()
        return decisions

    def remove(self, pod, node_name):
        self.cycle.table.remove_pod(node_name, pod.pod_class, uid=pod.uid)


class Batches:
    def __init__(self, world, config, tie_break, compiled_kernel, name_best=False):
        way = PathOptions(compiled_kernel, names_best=name_best, tie_break=tie_break)
        self.path = BatchPath(profiles_of(config), way)
        self.path.add_nodes(facts for facts, _ in world.clusters)
        for facts, running in world.clusters:
            for each in running:
                self.path.add_pod(facts.name, each)
        self.classes, self.profiles = self.path.classes, self.path.profiles

    def decide(self, pods):
        decisions = []
        while len(decisions) < len(pods):
            decisions += self.path.decide(pods[len(decisions) :])
            self.path.table.validate()
        return decisions

    def remove(self, pod, node_name):
        self.path.table.remove_pod(node_name, pod.pod_class, uid=pod.uid)


def play(path, world):
    """Return all decisions while batches are decided and some of their pods removed."""
    profile = next(iter(path.profiles.values()))
    decisions, number = [], 0
    for batch in world.batches:
        pods = []
        for facts, _ in batch:
            pod_class = path.classes.pod_class(facts)
            uid = f"u{number}"
            number += 1
            pods.append(
                PodInCycle(uid, f"ns/{uid}", pod_class, profile.signature_of(pod_class, uid))
            )
        decided = path.decide(pods)
        decisions += decided
        for (_, goes), decision in zip(batch, decided, strict=True):
            if goes and decision.node_name is not None:
                path.remove(decision.pod, decision.node_name)
    return [contents(decision) for decision in decisions]


DECIDING = settings(deadline=None, max_examples=int(os.environ.get("KERNEL_EXAMPLES", "100")))
TIE_BREAKS = st.builds(TieBreak, st.sampled_from(["random", "first"]), st.integers(0, 2**63))


@DECIDING
@given(worlds(), PROFILES, TIE_BREAKS, st.booleans())
def test_single_pods_are_decided_like_by_the_reference(world, config, tie_break, name_best):
    with_kernel = play(Plain(world, config, tie_break, compiled_kernel(), name_best), world)

    assert with_kernel == play(Plain(world, config, tie_break, None, name_best), world)


@DECIDING
@given(worlds(), PROFILES, TIE_BREAKS, st.booleans())
def test_batches_are_decided_like_by_one_reference(world, config, tie_break, name_best):
    with_kernel = play(Batches(world, config, tie_break, compiled_kernel(), name_best), world)

    assert with_kernel == play(Plain(world, config, tie_break, None, name_best), world)


def fleet_world(inputs):
    """Return a fleet with all kinds of constraints, its pending pods in two batches."""
    clusters = [
        (facts, [pod for _, pod, name in inputs.running if name == facts.name])
        for facts in inputs.nodes
    ]
    pending = [(facts, place % 5 == 0) for place, (_, facts) in enumerate(inputs.pending)]
    half = len(pending) // 2
    return World(clusters, [batch for batch in (pending[:half], pending[half:]) if batch])


@DECIDING
@given(fleets.inputs(), TIE_BREAKS)
def test_pods_with_constraints_across_nodes_are_decided_like_by_the_reference(inputs, tie_break):
    world, config = fleet_world(inputs), default_config().profiles[0]

    with_kernel = play(Batches(world, config, tie_break, compiled_kernel()), world)

    assert with_kernel == play(Plain(world, config, tie_break, None), world)


def outcome(make, world):
    """Return the decisions, or the plugin and field that are missing."""
    try:
        return play(make(), world)
    except UnsupportedError as missing:
        return missing.plugin, missing.field


@pytest.mark.parametrize("name", sorted(VALUES))
def test_pods_with_each_fact_are_decided_like_by_the_reference(name):
    """The kernel must support a new field of PodFacts, or refuse pods that have it."""
    disks = [
        (("disk", kind), ("topology.kubernetes.io/zone", zone))
        for kind in ("ssd", "hdd")
        for zone in "ab"
    ]
    clusters = [
        (node(f"node-{n:05}", cpu=8000, labels=dict(disks[n % 4])), [pod(cpu=100 * n)])
        for n in range(1, 9)
    ]
    pods = [pod(cpu=500), pod(cpu=300, labels={"app": "web"})]
    changed = [replace(each, **{name: value}) for value in VALUES[name] for each in pods]
    batch = [(facts, place % 3 == 0) for place, facts in enumerate([*changed, *pods] * 3)]
    world, config, seeded = World(clusters, [batch] * 2), default_config().profiles[0], TieBreak()

    with_kernel = outcome(lambda: Batches(world, config, seeded, compiled_kernel()), world)

    assert with_kernel == outcome(lambda: Plain(world, config, seeded, None), world)


@DECIDING
@given(worlds(), PROFILES, TIE_BREAKS, st.integers(0, 12))
def test_code_loaded_during_a_batch_changes_no_decision(world, config, tie_break, after):
    late = LateAccelerator(after)

    with_kernel = play(Batches(world, config, tie_break, late), world)

    assert with_kernel == play(Plain(world, config, tie_break, None), world)

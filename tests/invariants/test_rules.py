"""The checker's rules, written independently of the plugins, refuse the same pods."""

from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from roadstead.binder.verification import Verifier
from roadstead.config.model import default_config
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodAffinityTerm, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.invariants.checker import RULES
from roadstead.invariants.world import World
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from tests import strategies
from tests.builders import node, pod, require, term

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CLUSTER = ClusterFacts(namespaces=(("default", (("team", "a"),)), ("other", ())))

requirements = st.sampled_from(
    [
        require("app", "In", "web"),
        require("app", "In", "db", "web"),
        require("app", "NotIn", "db"),
        require("app", "Exists"),
        require("rev", "DoesNotExist"),
    ]
)
selectors = st.one_of(
    st.none(), st.lists(requirements, max_size=2).map(lambda each: LabelSelector(tuple(each)))
)
affinity_terms = st.builds(
    PodAffinityTerm,
    topology_key=st.sampled_from([ZONE, HOST, "rack"]),
    selector=selectors,
    namespaces=st.sampled_from([("default",), (), ("default", "other")]),
    namespace_selector=st.sampled_from(
        [
            None,
            None,
            LabelSelector(),
            LabelSelector((require("team", "Exists"),)),
            LabelSelector((require("team", "NotIn", "a"),)),
        ]
    ),
)
constraints = st.builds(
    SpreadConstraint,
    topology_key=st.sampled_from([ZONE, HOST, "rack"]),
    max_skew=st.integers(1, 3),
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    selector=selectors,
    min_domains=st.integers(0, 4),
    node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
    node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
    match_label_keys=st.sampled_from([(), ("rev",)]),
)
labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(["web", "db"]), "rev": st.sampled_from(["1", "2"])}
)
related_pods = st.builds(
    pod,
    labels=labels,
    namespace=st.sampled_from(["default", "other"]),
    is_terminating=st.sampled_from([False, False, True]),
    node_selector=st.sampled_from([{}, {}, {"disk": "ssd"}]),
    required_node_terms=st.sampled_from([None, None, (term(require("rack", "Exists")),)]),
    spread_constraints=st.lists(constraints, max_size=2).map(tuple),
    pod_affinity=st.lists(affinity_terms, max_size=2).map(tuple),
    pod_anti_affinity=st.lists(affinity_terms, max_size=2).map(tuple),
)


@st.composite
def topologies(draw):
    found = []
    for number in range(draw(st.integers(1, 6))):
        of_node = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    ZONE: st.sampled_from(["a", "b"]),
                    HOST: st.just(f"n{number}"),
                    "rack": st.sampled_from(["", "r"]),
                    "disk": st.just("ssd"),
                },
            )
        )
        there = draw(st.lists(related_pods, max_size=3))
        found.append((node(f"n{number}", labels=of_node), there))
    return found


def agree(cluster, facts):
    """On every node a rule refuses the pod exactly where a filter does."""
    table = NodeTable(PodClasses())
    world = World(CLUSTER)
    for each, there in cluster:
        table.add_node(each)
        world.nodes[each.name] = each
        for number, other in enumerate(there):
            table.add_pod(each.name, table.classes.pod_class(other))
            world.put(f"{each.name}/{number}", each.name, other)
    handle = Handle(table.classes, CLUSTER)
    profile = Profile(default_config().profiles[0], in_tree_registry(), handle)
    verifier = Verifier(table, {facts.scheduler_name: profile})
    for each, _ in cluster:
        status = verifier.verify(facts, each.name)
        broken = [text for _, _, rule in RULES for text in rule(world, facts, each)]
        assert bool(broken) != status.is_success, (each.name, status, broken)
        event("allowed" if status.is_success else f"refused by {status.plugin}")


@given(strategies.clusters, strategies.pods)
@settings(max_examples=150, deadline=None)
def test_rules_of_single_nodes_refuse_the_same_nodes_as_the_filters(cluster, facts):
    agree(cluster, facts)


@given(topologies(), related_pods)
@settings(max_examples=200, deadline=None)
def test_rules_across_nodes_refuse_the_same_nodes_as_the_filters(cluster, facts):
    agree(cluster, replace(facts, is_terminating=False))

import pytest

from roadstead.framework.per_node import NodePlugin, NodeView, adapt
from roadstead.framework.plugin import Handle, Reads
from roadstead.framework.profile import Profile
from roadstead.framework.registry import Registry, extension_points
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import SUCCESS, unresolvable, unschedulable
from tests.builders import (
    GIB,
    GPU,
    config_of,
    evaluated,
    filter_with,
    node,
    pod,
    profile_of,
    put,
    refused,
    score_with,
    table_of,
)


class FewPods(NodePlugin):
    name = "FewPods"

    def score(self, pod, node):
        return max(0, 100 - node.pod_count)


class NoNeighbours(NodePlugin):
    name = "NoNeighbours"
    reads = Reads.ROW

    def filter(self, pod, node):
        if node.pod_count > 1:
            return unresolvable("crowded")
        return unschedulable("node(s) had neighbours") if node.pod_count else SUCCESS

    def sign(self, pod):
        return pod.labels


class Both(NodePlugin):
    name = "Both"

    def filter(self, pod, node):
        return SUCCESS if "disk" in node.labels else unschedulable("no disk")

    def score(self, pod, node):
        return node.allocatable(GPU) * 10 + len(node.pods)


class WithArguments(FewPods):
    name = "WithArguments"

    def __init__(self, args, handle):
        self.best = args["best"]

    def score(self, pod, node):
        return self.best


def busy_table():
    table = table_of(node("n1", labels={"disk": "ssd"}), node("n2", others={GPU: 3}), node("n3"))
    put(table, "n2", pod(cpu=100))
    put(table, "n3", pod(cpu=100), pod(cpu=100))
    return table


def test_a_view_of_a_node_has_its_facts_and_pods():
    table = busy_table()

    view = NodeView(table, 1)

    assert view.facts == node("n2", others={GPU: 3})
    assert (view.name, view.labels, view.pod_count) == ("n2", {}, 1)
    assert (view.allocatable("memory"), view.allocatable(GPU)) == (8 * GIB, 3)
    assert (view.requested("cpu"), view.requested("example.com/other")) == (100, 0)
    assert view.pods == {table.classes.pod_class(pod(cpu=100)): 1}


def test_a_class_with_only_a_filter_filters():
    plugin = adapt(NoNeighbours)()

    assert extension_points(plugin) == {"filter"}
    assert filter_with(plugin, pod(), busy_table()) == [
        None,
        refused("node(s) had neighbours"),
        ("UnschedulableAndUnresolvable", ("crowded",)),
    ]
    assert (plugin.name, plugin.reads) == ("NoNeighbours", Reads.ROW)


def test_a_class_with_only_a_score_scores():
    plugin = adapt(FewPods)()

    assert extension_points(plugin) == {"score"}
    assert score_with(plugin, pod(), busy_table()) == [100, 99, 98]
    assert plugin.reads is Reads.NODE_AND_PODS


def test_a_class_with_filter_and_score_does_both():
    plugin = adapt(Both)()

    assert extension_points(plugin) == {"filter", "score"}
    assert filter_with(plugin, pod(), busy_table()) == [
        None,
        refused("no disk"),
        refused("no disk"),
    ]
    assert score_with(plugin, pod(), busy_table()) == [0, 31, 1]


def test_a_class_with_neither_is_a_type_error():
    class Idle(NodePlugin):
        name = "Idle"

    with pytest.raises(TypeError, match="Idle overrides neither filter nor score"):
        adapt(Idle)


def test_the_methods_of_the_base_are_never_called():
    for call in (NodePlugin().filter, NodePlugin().score):
        with pytest.raises(AssertionError, match="never called"):
            call(None, None)


def test_the_signature_is_that_of_the_wrapped_plugin():
    assert adapt(NoNeighbours)().sign(pod(labels={"app": "web"})) == (("app", "web"),)
    assert adapt(FewPods)().sign(pod()) is None


def test_arguments_reach_the_wrapped_plugin():
    kind = adapt(WithArguments)

    plugin = kind({"best": 7}, None)

    assert kind.__name__ == "WithArguments"
    assert score_with(plugin, pod(), busy_table()) == [7, 7, 7]


def test_an_adapted_plugin_runs_in_a_profile():
    both = adapt(Both)
    profile = profile_of({"filter": ["Both"], "score": [("Both", 2)]}, plugins=[both])

    evaluation = evaluated(profile, pod(), busy_table())

    assert evaluation.feasible.tolist() == [True, False, False]
    assert evaluation.statuses[0].plugin == "Both"
    assert evaluation.raw[0].tolist() == [0, 31, 1]


def test_an_adapted_class_is_a_factory_for_the_registry():
    registry = in_tree_registry().merged({"WithArguments": adapt(WithArguments)})
    config = config_of({"score": ["WithArguments"]}, {"WithArguments": {"best": 9}})

    profile = Profile(config, registry, Handle(PodClasses()))

    assert isinstance(registry, Registry)
    assert score_with(profile.score[0].plugin, pod(), busy_table()) == [9, 9, 9]


def test_an_empty_table_gives_empty_results():
    assert filter_with(adapt(NoNeighbours)(), pod(), table_of()) == []
    assert score_with(adapt(FewPods)(), pod(), table_of()) == []

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import NodeResourcesFitArgs
from roadstead.devices.gates import DeviceGates
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle, PreFilterResult
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.protocol.status import SUCCESS
from tests.builders import (
    GIB,
    GPU,
    evaluated,
    filter_with,
    hopeless,
    node,
    pod,
    profile_of,
    put,
    refused,
    table_of,
)
from tests.devices.fleet import SERVING, asking, cluster
from tests.plugins.hints import asked
from tests.plugins.upstream import fits_request
from tests.plugins.worlds import assert_filters_alike_through_views, both
from tests.strategies import HUGE, clusters, pods

FIT = NodeResourcesFit(NodeResourcesFitArgs())


def busy_node(*on_node, **facts):
    table = table_of(node("n1", **facts))
    put(table, "n1", *on_node)
    return table


def by_row(wanted, table, plugin=FIT):
    return filter_with(plugin, wanted, table)


def test_a_request_of_the_free_amount_fits_and_one_more_does_not():
    table = busy_node(pod(cpu=1500, memory=5 * GIB), cpu=4000, memory=8 * GIB)

    assert by_row(pod(cpu=2500, memory=3 * GIB), table) == [None]
    assert by_row(pod(cpu=2501), table) == [refused("Insufficient cpu")]
    assert by_row(pod(memory=3 * GIB + 1), table) == [refused("Insufficient memory")]


def test_all_insufficient_resources_are_reported():
    table = busy_node(pod(cpu=4000, memory=8 * GIB), pods=1)

    ((code, reasons),) = by_row(pod(cpu=1, memory=1), table)

    assert code == "Unschedulable"
    assert reasons == ("Too many pods", "Insufficient cpu", "Insufficient memory")


def test_a_request_above_the_nodes_capacity_is_unresolvable():
    table = busy_node(pod(memory=8 * GIB), cpu=4000)

    assert by_row(pod(cpu=4001), table) == [hopeless("Insufficient cpu")]
    assert by_row(pod(cpu=4000), table) == [None]
    assert by_row(pod(cpu=4001, memory=1), table) == [
        hopeless("Insufficient cpu", "Insufficient memory")
    ]


def test_a_node_with_the_maximum_of_pods_refuses_even_a_pod_without_requests():
    table = busy_node(pod(), pod(), pods=2)

    assert by_row(pod(), table) == [refused("Too many pods")]
    assert by_row(pod(cpu=0, memory=0), table) == [refused("Too many pods")]


def test_a_node_with_a_maximum_of_zero_pods_is_resolvable():
    assert by_row(pod(), busy_node(pods=0)) == [refused("Too many pods")]


def test_a_pod_that_requests_nothing_fits_on_an_overfull_node():
    table = busy_node(pod(cpu=9000, memory=9 * GIB), cpu=4000)

    assert by_row(pod(), table) == by_row(pod(cpu=0, memory=0, others={GPU: 0}), table) == [None]
    assert by_row(pod(cpu=1), table) == [refused("Insufficient cpu")]


def test_a_zero_request_among_others_is_not_checked():
    table = busy_node(pod(memory=9 * GIB), memory=8 * GIB)

    assert by_row(pod(cpu=1, memory=0), table) == [None]


def test_scoring_defaults_do_not_count_for_fitting():
    table = busy_node(*[pod()] * 100, cpu=100)

    assert by_row(pod(cpu=100), table) == [None]


@pytest.mark.parametrize("resource", [GPU, HUGE, "ephemeral-storage", "attachable-volumes-x"])
def test_other_resources_are_counted_alike(resource):
    table = busy_node(pod(others={resource: 1}), others={resource: 3})

    assert by_row(pod(others={resource: 2}), table) == [None]
    assert by_row(pod(others={resource: 3}), table) == [refused(f"Insufficient {resource}")]
    assert by_row(pod(others={resource: 4}), table) == [hopeless(f"Insufficient {resource}")]


def test_a_resource_that_no_node_has_is_unresolvable():
    assert by_row(pod(others={GPU: 1}), busy_node()) == [hopeless(f"Insufficient {GPU}")]


def test_ignored_resources_and_groups_are_not_checked():
    plugin = NodeResourcesFit(
        NodeResourcesFitArgs(
            ignored_resources=("example.com/ignored",), ignored_resource_groups=("ignored.io",)
        )
    )
    table = busy_node()

    assert by_row(pod(others={"example.com/ignored": 1}), table, plugin) == [None]
    assert by_row(pod(others={"ignored.io/any": 1}), table, plugin) == [None]
    assert by_row(pod(others={"notignored.io/any": 1}), table, plugin) == [
        hopeless("Insufficient notignored.io/any")
    ]


def test_only_extended_resources_can_be_ignored():
    plugin = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=("cpu", HUGE)))

    assert by_row(pod(cpu=9000), busy_node(), plugin) == [hopeless("Insufficient cpu")]
    assert by_row(pod(others={HUGE: 1}), busy_node(), plugin) == [hopeless(f"Insufficient {HUGE}")]


def test_rows_with_the_same_shortage_share_a_status():
    table = table_of(node("n1", cpu=100), node("n2", cpu=900), node("n3", cpu=100))

    result = FIT.filter(CycleState(3), table.classes.pod_class(pod(cpu=500)), table)

    assert result.codes.tolist() == [1, 0, 1]
    assert len(result.statuses) == 1


@pytest.mark.parametrize("count", [30, 31, 32, 62, 100])
def test_any_number_of_insufficient_resources_is_reported(count):
    names = [f"example.com/r{i:03}" for i in range(count)]
    wanted = pod(others=dict.fromkeys(names, 1))
    table = table_of(
        node("n1", pods=0),
        node("n2", others=dict.fromkeys(names, 1)),
        node("n3", others=dict.fromkeys(names[:-1], 1)),
        node("n4", others=dict.fromkeys(names[1:], 1)),
    )
    put(table, "n3", pod(others={names[0]: 1}))

    assert by_row(wanted, table) == [
        hopeless("Too many pods", *(f"Insufficient {name}" for name in names)),
        None,
        hopeless(f"Insufficient {names[0]}", f"Insufficient {names[-1]}"),
        hopeless(f"Insufficient {names[0]}"),
    ]


def test_no_row_passes_if_many_resources_are_insufficient():
    names = [f"example.com/r{i:03}" for i in range(40)]
    table = table_of(node("n1", others=dict.fromkeys(names, 1)))
    put(table, "n1", pod(others=dict.fromkeys(names, 1)))

    assert by_row(pod(others=dict.fromkeys(names, 1)), table) == [
        refused(*(f"Insufficient {name}" for name in names))
    ]


def test_pre_filter_and_pre_score_never_skip():
    table = table_of(node("n1"))
    pod_class, state = table.classes.pod_class(pod()), CycleState(1)

    assert FIT.pre_filter(state, pod_class, None) == PreFilterResult()
    assert FIT.pre_score(state, pod_class, None, None) is SUCCESS


def test_one_plugin_filters_and_scores_for_a_profile():
    points = {point: ["NodeResourcesFit"] for point in ("preFilter", "filter", "preScore", "score")}
    table = table_of(node("n1"), node("n2", cpu=100))

    evaluation = evaluated(profile_of(points), pod(cpu=2000, memory=4 * GIB), table)

    assert evaluation.feasible.tolist() == [True, False]
    assert evaluation.raw[0].tolist()[0] == 50


@given(clusters, pods, st.booleans())
def test_filtering_equals_upstreams_for_any_pods_and_nodes(cluster, wanted, ignores):
    ignored = (GPU,) if ignores else ()
    plugin = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=ignored))
    table, nodes = both(cluster)

    expected = []
    for each in nodes:
        short = fits_request(wanted, each, ignored)
        code = hopeless if any(unresolvable for _, unresolvable in short) else refused
        expected.append(code(*(reason for reason, _ in short)) if short else None)

    assert filter_with(plugin, wanted, table) == expected
    assert_filters_alike_through_views(plugin, wanted, table)


def admitted_one_by_one(wanted, rows, table):
    """Return how many pods pass Filter if each is placed before the next is filtered."""
    for number, (facts, row) in enumerate(zip(wanted, rows, strict=True)):
        if by_row(facts, table)[row] is not None:
            return number
        put(table, table.names[row], facts)
    return len(rows)


AMOUNTS = st.sampled_from([None, 0, 1, 2, 3, 2**62, 2**63 - 1])
ASKING = st.builds(pod, memory=AMOUNTS, others=st.sampled_from([{}, {GPU: 1}, {GPU: 2**62}]))
SIZES = st.sampled_from([0, 2, 4, 2**62, 2**63 - 1])


@given(
    st.lists(st.tuples(SIZES, SIZES, st.integers(0, 3)), min_size=1, max_size=3),
    st.lists(st.tuples(ASKING, st.integers(0, 2)), min_size=1, max_size=6),
)
def test_pods_are_admitted_together_as_if_filtered_one_after_the_other(sizes, asking):
    def table():
        return table_of(
            *(
                node(f"n{number}", memory=memory, others={GPU: gpus}, pods=pods_max)
                for number, (memory, gpus, pods_max) in enumerate(sizes)
            )
        )

    wanted, rows = [facts for facts, _ in asking], [row % len(sizes) for _, row in asking]
    together = table()
    pod_classes = [together.classes.pod_class(facts) for facts in wanted]

    found = FIT.count_passing(pod_classes, together, np.array(rows, np.intp))

    assert found == admitted_one_by_one(wanted, rows, table()), "pods that Filter admits in turn"


def test_with_a_resource_that_no_node_has_filter_decides_from_the_first_pod_on():
    table = table_of(node("n1"))
    pod_classes = [table.classes.pod_class(pod(others=each)) for each in ({}, {"x.io/none": 1})]

    assert FIT.count_passing(pod_classes, table, np.array([0, 0])) == 0
    assert FIT.count_passing(pod_classes[:1] * 2, table, np.array([0, 0])) == 2


class TestLeftToDevices:
    """DRAExtendedResource: what a node does not offer is left to DynamicResources, as upstream."""

    SERVED = asking("p", 1)
    IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"

    def plugin(self, **gates):
        gates = gates or {"extended_resource": True}
        facts = cluster(classes=(SERVING,))
        return NodeResourcesFit(
            NodeResourcesFitArgs(), Handle(PodClasses(), facts, gates=DeviceGates(**gates))
        )

    def by_row(self, wanted, offered=None, **gates):
        return by_row(wanted, busy_node(others=offered), self.plugin(**gates))

    def test_an_extended_resource_of_a_class_counts_only_where_it_is_offered(self):
        assert self.by_row(self.SERVED) == [None]
        assert self.by_row(self.SERVED, {GPU: 1}) == [None]
        assert self.by_row(self.SERVED, {GPU: 0}) == [hopeless(f"Insufficient {GPU}")]
        assert self.by_row(self.SERVED, taints=True) == [hopeless(f"Insufficient {GPU}")], (
            "gate off"
        )

    def test_other_resources_of_the_pod_count(self):
        other = "example.org/other"
        wants = replace(self.SERVED, requests=(*self.SERVED.requests, (other, 1)))
        assert self.by_row(wants) == [hopeless(f"Insufficient {other}")]
        assert self.by_row(replace(self.SERVED, requests=(("cpu", 10**9), (GPU, 1)))) == [
            hopeless("Insufficient cpu")
        ]

    def test_a_pod_without_claim_for_it_is_checked(self):
        assert self.by_row(pod(others={GPU: 1})) == [hopeless(f"Insufficient {GPU}")]

    def test_without_extended_resources_no_other_resource_counts_where_it_is_not_offered(self):
        for name in (HUGE, self.IMPLICIT, "attachable-volumes-x"):
            assert self.by_row(pod(others={name: 1})) == [None]
            assert self.by_row(pod(others={name: 2}), {name: 1}) == [
                hopeless(f"Insufficient {name}")
            ]

    def test_with_an_extended_resource_only_those_of_classes_are_left(self):
        both = {self.IMPLICIT: 1, HUGE: 1, GPU: 1}
        assert self.by_row(pod(others=both)) == [
            hopeless(f"Insufficient {GPU}", f"Insufficient {HUGE}")
        ]

    def test_the_quick_check_leaves_such_pods_to_filter(self):
        plugin, table = self.plugin(), busy_node()
        classes = [table.classes.pod_class(each) for each in (pod(cpu=1), self.SERVED, pod(cpu=1))]
        rows = np.zeros(3, np.intp)
        assert plugin.count_passing(classes, table, rows) == 1
        assert plugin.count_passing(classes[1:2], table, rows[:1]) == 0
        assert plugin.count_passing(classes[:1], table, rows[:1]) == 1

    def test_nodes_that_do_not_offer_it_help(self):
        """As upstream, the hint does not ask whether a class serves the resource."""
        hint, wants = self.plugin().after_node_change, pod(cpu=100, others={GPU: 2})
        old, more = node(cpu=100), node(cpu=100, labels={"a": "b"})
        assert asked(hint, wants, old=old, new=more) == "Queue"
        assert asked(hint, wants, new=node(cpu=99)) == "QueueSkip"
        assert asked(hint, wants, new=node(cpu=100, others={GPU: 1})) == "QueueSkip"
        assert asked(FIT.after_node_change, wants, old=old, new=more) == "QueueSkip"

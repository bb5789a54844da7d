import pytest
from hypothesis import given

from roadstead.plugins.node_unschedulable import UNSCHEDULABLE_TAINT, NodeUnschedulable
from tests.builders import filter_with, hopeless, node, pod, table_of, tolerate
from tests.plugins.upstream import tolerates
from tests.plugins.worlds import assert_filters_alike_through_views, both
from tests.strategies import clusters, pods

PLUGIN = NodeUnschedulable()
CORDONED = hopeless("node(s) were unschedulable")
KEY = "node.kubernetes.io/unschedulable"


def test_a_cordoned_node_refuses_pods():
    table = table_of(node("n1", unschedulable=True), node("n2"))

    assert filter_with(PLUGIN, pod(), table) == [CORDONED, None]


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        (tolerate(KEY, operator="Exists"), True),
        (tolerate(KEY), True),
        (tolerate(KEY, effect="NoSchedule"), True),
        (tolerate(operator="Exists"), True),
        (tolerate(KEY, effect="NoExecute"), False),
        (tolerate(KEY, "yes"), False),
        (tolerate("gpu", operator="Exists"), False),
    ],
)
def test_a_pod_that_tolerates_the_unschedulable_taint_fits(toleration, passes):
    table = table_of(node("n1", unschedulable=True))

    answer = filter_with(PLUGIN, pod(tolerations=(toleration,)), table)

    assert answer == [None if passes else CORDONED]


@given(clusters, pods)
def test_filtering_equals_upstreams(cluster, wanted):
    table, nodes = both(cluster)
    goes = any(tolerates(each, UNSCHEDULABLE_TAINT) for each in wanted.tolerations)

    assert filter_with(PLUGIN, wanted, table) == [
        CORDONED if each.facts.unschedulable and not goes else None for each in nodes
    ]
    assert_filters_alike_through_views(PLUGIN, wanted, table)

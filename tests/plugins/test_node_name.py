from hypothesis import given

from roadstead.plugins.node_name import NodeName
from tests.builders import filter_with, hopeless, node, pod, table_of
from tests.plugins.worlds import assert_filters_alike_through_views, both
from tests.strategies import clusters, pods

PLUGIN = NodeName()
OTHER = hopeless("node(s) didn't match the requested node name")


def test_a_pod_with_a_node_name_fits_only_on_that_node():
    table = table_of(node("n1"), node("n2"))

    assert filter_with(PLUGIN, pod(node_name="n2"), table) == [OTHER, None]
    assert filter_with(PLUGIN, pod(node_name="n9"), table) == [OTHER, OTHER]


def test_a_pod_without_a_node_name_fits_everywhere():
    assert filter_with(PLUGIN, pod(), table_of(node("n1"))) == [None]


@given(clusters, pods)
def test_only_the_named_node_passes(cluster, wanted):
    table, nodes = both(cluster)

    assert filter_with(PLUGIN, wanted, table) == [
        None if wanted.node_name in ("", each.facts.name) else OTHER for each in nodes
    ]
    assert_filters_alike_through_views(PLUGIN, wanted, table)

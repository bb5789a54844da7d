"""ImageLocality after new nodes: each row counts the nodes that its last snapshot included."""

import pytest

from roadstead.facts.pod import PodIdentity
from roadstead.local.decision_paths import open_path
from roadstead.nodes.snapshots import take_snapshot
from roadstead.plugins.image_locality import ImageLocality
from tests.builders import (
    MIB,
    found_before_score,
    node,
    pod,
    profile_of,
    put,
    score_with,
    table_of,
)

IMAGE = {"app:v1": 1000 * MIB}
WANTING = pod(images=("app:v1",), container_count=1)
PLUGIN = ImageLocality()


def grown_table():
    """Return two nodes, one with the image, and two more with it that joined after a snapshot."""
    table = table_of(node("n1", images=IMAGE), node("n2"))
    take_snapshot(table, 2)
    table.add_node(node("n3", images=IMAGE))
    table.add_node(node("n4", images=IMAGE))
    take_snapshot(table, 4)
    return table


def only_image_locality(classes):
    return {"default-scheduler": profile_of({"score": ["ImageLocality"]}, classes=classes)}


def test_an_old_row_counts_only_the_nodes_of_its_snapshot():
    assert score_with(PLUGIN, WANTING, grown_table()) == [23, 0, 74, 74]


def test_a_row_counts_all_nodes_after_a_change():
    table = grown_table()

    put(table, "n1", pod())
    take_snapshot(table, 4)

    assert score_with(PLUGIN, WANTING, table) == [74, 0, 74, 74]


def test_a_summary_lists_nodes_that_were_added_late():
    table = grown_table()

    found = found_before_score(PLUGIN, table.classes.pod_class(WANTING), table)

    assert found.late == (("app:v1", 2), ("app:v1", 3))


@pytest.mark.parametrize("path_name", ["plain", "batches", "batches+kernel", "1", "3"])
def test_every_path_renews_a_row_in_the_cycle_after_a_placement_on_it(path_name):
    path = open_path(path_name, only_image_locality)
    path.add_nodes([node("n1", images=IMAGE), node("n2", images=IMAGE), node("n3")])
    pods = [path.prepare(PodIdentity(f"uid-{i}", "ns", f"p{i}"), WANTING) for i in range(5)]
    (before,) = path.decide(pods[:1])
    path.add_nodes([node("n4", images=IMAGE)])

    decisions = []
    while len(decisions) < 4:
        decisions += path.decide(pods[1 + len(decisions) :])

    assert (before.node_name, before.total) == ("n1", 65)
    assert [(each.node_name, each.best, each.total) for each in decisions] == [
        ("n1", ("n1", "n4"), 74),
        ("n1", ("n1", "n4"), 74),
        ("n1", ("n1", "n4"), 74),
        ("n1", ("n1", "n4"), 74),
    ]
    path.add_pod("n2", WANTING)
    (renewed,) = path.decide([path.prepare(PodIdentity("uid-9", "ns", "p9"), WANTING)])
    assert renewed.best == ("n1", "n2", "n4")

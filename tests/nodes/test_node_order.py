"""The order of nodes: zones in turn, renewed only if nodes were added or removed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.nodes.node_order import NodeOrder, NodeTree
from scripts.recordings.node_order_cases import check_node_order


def tree_of(*nodes):
    tree = NodeTree()
    for name, zone in nodes:
        tree.put(name, zone)
    return tree


def test_zones_alternate_in_the_order_of_their_first_nodes():
    tree = tree_of(("n1", "b"), ("n2", "a"), ("n3", "b"), ("n4", "c"), ("n5", "b"), ("n6", "a"))

    assert tree.listed() == ("n1", "n2", "n4", "n3", "n6", "n5")


def test_a_zone_that_was_empty_is_last_when_it_gets_a_node_again():
    tree = tree_of(("n1", "a"), ("n2", "b"))

    tree.remove("n1")
    tree.put("n1", "a")

    assert tree.listed() == ("n2", "n1")
    assert len(tree) == 2
    assert "n1" in tree


def test_a_node_that_changes_its_zone_is_last_in_the_new_one():
    tree = tree_of(("n1", "a"), ("n2", "b"), ("n3", "a"))

    tree.put("n1", "b")

    assert tree.listed() == ("n3", "n2", "n1")


def test_an_update_within_the_zone_changes_nothing():
    tree = tree_of(("n1", "a"), ("n2", "a"))
    before = tree.version

    tree.put("n1", "a")

    assert (tree.version, tree.listed()) == (before, ("n1", "n2"))


def test_removing_an_unknown_node_is_an_error():
    with pytest.raises(KeyError):
        tree_of(("n1", "a")).remove("n2")


def test_a_snapshot_includes_changes_of_zones_only_after_nodes_are_added_or_removed():
    tree, order = tree_of(("n1", "a"), ("n2", "b"), ("n3", "a")), NodeOrder()
    assert order.snapshot(tree) == ("n1", "n2", "n3")

    tree.put("n1", "b")
    assert order.snapshot(tree) == ("n1", "n2", "n3")

    tree.put("n4", "a")
    assert order.snapshot(tree) == ("n3", "n2", "n4", "n1")


def test_a_node_removed_and_added_between_snapshots_keeps_its_position():
    tree, order = tree_of(("n1", "a"), ("n2", "a")), NodeOrder()
    order.snapshot(tree)

    tree.remove("n1")
    tree.put("n1", "a")

    assert order.snapshot(tree) == ("n1", "n2")


def test_a_removed_node_leaves_the_order():
    tree, order = tree_of(("n1", "a"), ("n2", "a")), NodeOrder()
    order.snapshot(tree)

    tree.remove("n1")

    assert order.snapshot(tree) == ("n2",)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz "))))
def test_every_node_is_in_the_order_exactly_once(changes):
    tree = NodeTree()
    for name, zone in changes:
        if zone == " " and name in tree:
            tree.remove(name)
        else:
            tree.put(name, zone)

    assert sorted(tree.listed()) == sorted(set(tree.listed()))
    assert len(tree.listed()) == len(tree)


def test_a_recorded_order_is_compared_after_a_last_snapshot():
    zone = {"topology.kubernetes.io/zone": "a"}
    ops = [
        {"op": "add", "name": "n1", "labels": zone},
        {"op": "add", "name": "n2", "labels": zone},
        {"op": "snapshot"},
        {"op": "update", "name": "n1", "labels": {}},
        {"op": "remove", "name": "n2"},
    ]

    ours, found = check_node_order({"ops": ops, "order": ["n1"]})

    assert (ours, found) == ({"order": ["n1"]}, [])


def test_an_unknown_operation_is_refused():
    with pytest.raises(AssertionError, match="not known"):
        check_node_order({"ops": [{"op": "paint", "name": "n1"}], "order": []})


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.lists(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("abc")), max_size=4),
        )
    )
)
def test_nodes_added_together_are_ordered_as_if_added_one_by_one(steps):
    at_once, one_by_one = NodeTree(), NodeTree()
    for is_one, nodes in steps:
        before = at_once.version
        if is_one and nodes:
            at_once.put(*nodes[0])
            nodes = nodes[:1]
        else:
            at_once.put_all([name for name, _ in nodes], [zone for _, zone in nodes])
        for name, zone in nodes:
            one_by_one.put(name, zone)
        assert at_once.version >= before

    assert len(at_once) == len(one_by_one)
    assert at_once.listed() == one_by_one.listed()

"""Nodes that offer a resource: also in views, with amounts of 0, and after changes of nodes."""

import numpy as np

from roadstead.plugins.offered_resources import NAMES_MAX, OfferedResources
from tests.builders import GPU, node, table_of


def fleet():
    return table_of(node("a", others={GPU: 2}), node("b"), node("c", others={GPU: 0}))


def test_an_amount_of_0_is_offered_and_an_absent_one_is_not():
    assert OfferedResources().offering(fleet(), GPU).tolist() == [True, False, True]
    assert not OfferedResources().offering(fleet(), "example.org/none").any()


def test_views_and_copies_have_the_answers_of_their_rows():
    table, offered = fleet(), OfferedResources()
    rows = np.array([2, 1])
    for _ in range(2):
        assert offered.offering(table.view(rows), GPU).tolist() == [True, False]
        assert offered.offering(table.copy_rows(rows), GPU).tolist() == [True, False]
        assert offered.offering(table, GPU).tolist() == [True, False, True]


def test_changes_of_nodes_count():
    table, offered = fleet(), OfferedResources()
    offered.offering(table, GPU)
    table.update_node(node("b", others={GPU: 1}))
    assert offered.offering(table, GPU).all()
    table.remove_node("a")
    table.add_node(node("d"))
    assert dict(zip(table.node_names(), offered.offering(table, GPU), strict=True)) == {
        "b": True,
        "c": True,
        "d": False,
    }


def test_many_resources_do_not_fill_the_memory():
    table, offered = fleet(), OfferedResources()
    for number in range(2 * NAMES_MAX):
        assert not offered.offering(table, f"example.org/r{number}").any()
    assert offered.offering(table, GPU).tolist() == [True, False, True]

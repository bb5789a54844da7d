"""The nodes of a table by name, in the order of their arrival."""

import pytest

from roadstead.facts.node import HOSTNAME_LABEL
from roadstead.facts.node_list import NodeList
from roadstead.nodes.known_nodes import KnownNodes
from roadstead.nodes.table import NodeTable
from tests.builders import node

NODES = [node(name, labels={HOSTNAME_LABEL: name}) for name in ("n3", "n1", "n2")]


def known():
    table = NodeTable()
    table.add_nodes(NodeList.of(NODES))
    return table, KnownNodes(table)


def test_nodes_are_found_by_name_with_all_their_facts():
    _, nodes = known()

    assert dict(nodes) == {facts.name: facts for facts in NODES}
    assert "n1" in nodes
    assert "n9" not in nodes
    with pytest.raises(KeyError):
        nodes["n9"]


def test_nodes_on_any_rows_are_in_order_of_arrival():
    table, nodes = known()

    table.remove_node("n3")
    table.add_node(NODES[0])

    assert list(nodes) == ["n1", "n2", "n3"]
    assert len(nodes) == 3

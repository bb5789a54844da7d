"""A list of node classes and names equals the nodes from which it was made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import HOSTNAME_LABEL, NodeFacts, class_of_node
from roadstead.facts.node_list import NodeList
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import pack, unpack
from tests.builders import node
from tests.strategies import ZONE, nodes

A, B = (node(name, labels={HOSTNAME_LABEL: name, ZONE: "a"}) for name in ("n1", "n2"))
C = node("n3", cpu=1)


@given(st.lists(nodes()))
def test_a_list_contains_the_nodes_from_which_it_was_made(given):
    made = NodeList.of(given)

    assert list(made) == given
    assert [made[place] for place in range(len(made))] == given
    assert list(made[1:3]) == given[1:3]


@given(st.lists(nodes()))
def test_a_list_can_be_encoded_and_decoded(given):
    made = NodeList.of(given)

    assert from_wire(NodeList, unpack(pack(to_wire(made)))) == made


def test_nodes_that_differ_only_in_names_are_one_class():
    made = NodeList.of([A, B, C, A])

    assert made.classes == (class_of_node(A), class_of_node(C))
    assert made.codes.tolist() == [0, 0, 1, 0]


def test_a_list_made_from_a_list_is_the_same_object():
    made = NodeList.of([A, C])

    assert NodeList.of(made) is made


def test_nodes_are_selected_by_index_in_order():
    assert list(NodeList.of([A, B, C]).at(np.array([2, 0]))) == [C, A]


def test_an_empty_list_has_no_nodes():
    assert list(NodeList()) == []


@pytest.mark.parametrize(
    ("names", "codes"),
    [(("n1", "n2"), [0]), (("n1",), [1]), (("n1",), [-1])],
)
def test_inconsistent_columns_are_refused(names, codes):
    with pytest.raises(ValueError, match="class"):
        NodeList.from_columns((NodeFacts(""),), names, np.array(codes, dtype=np.int32))

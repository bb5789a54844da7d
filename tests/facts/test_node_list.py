"""A list of node classes and names equals the nodes from which it was made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import HOSTNAME_LABEL, NodeFacts, class_of_node
from roadstead.facts.node_list import NodeList
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from tests.builders import node
from tests.strategies import ZONE, nodes

A, B = (node(name, labels={HOSTNAME_LABEL: name, ZONE: "a"}) for name in ("n1", "n2"))
C = node("n3", cpu=1)


@given(st.lists(nodes()))
def test_a_list_has_the_nodes_it_was_made_of(given):
    made = NodeList.of(given)

    assert list(made) == given
    assert [made[place] for place in range(len(made))] == given
    assert list(made[1:3]) == given[1:3]


@given(st.lists(nodes()))
def test_a_list_crosses_the_wire(given):
    made = NodeList.of(given)

    assert from_wire(NodeList, unpack(pack(to_wire(made)))) == made


def test_nodes_that_differ_in_their_names_alone_are_of_one_class():
    made = NodeList.of([A, B, C, A])

    assert made.classes == (class_of_node(A), class_of_node(C))
    assert made.codes.tolist() == [0, 0, 1, 0]


def test_a_list_is_made_of_a_list_by_taking_it():
    made = NodeList.of([A, C])

    assert NodeList.of(made) is made


def test_nodes_of_some_places_are_taken_in_their_order():
    assert list(NodeList.of([A, B, C]).at(np.array([2, 0]))) == [C, A]


def test_an_empty_list_has_no_nodes():
    assert list(NodeList()) == []


@pytest.mark.parametrize(
    ("names", "codes"),
    [(("n1", "n2"), [0]), (("n1",), [1]), (("n1",), [-1])],
)
def test_columns_that_do_not_fit_are_refused(names, codes):
    with pytest.raises(ValueError, match="class"):
        NodeList.from_columns((NodeFacts(""),), names, np.array(codes, dtype=np.int32))

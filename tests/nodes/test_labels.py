import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.nodes.labels import MISSING, LabelColumn
from tests.builders import named, node, require, table_of, term
from tests.strategies import clusters, expressions, terms

RACKS = table_of(
    node("n1", labels={"rack": "r1", "cores": "4"}),
    node("n2", labels={"rack": "r2", "cores": "16"}),
    node("n3"),
)


@pytest.mark.parametrize(
    ("requirement", "matching"),
    [
        (require("rack", "In", "r1", "r9"), [True, False, False]),
        (require("rack", "NotIn", "r1"), [False, True, True]),
        (require("rack", "Exists"), [True, True, False]),
        (require("rack", "DoesNotExist"), [False, False, True]),
        (require("cores", "Gt", "4"), [False, True, False]),
        (require("cores", "Lt", "16"), [True, False, False]),
        (require("rack", "Gt", "1"), [False, False, False]),
        (require("no-such-key", "NotIn", "x"), [True, True, True]),
        (require("no-such-key", "In", "x"), [False, False, False]),
    ],
)
def test_a_requirement_evaluates_values_and_absence(requirement, matching):
    assert RACKS.match(requirement).tolist() == matching


def test_a_term_requires_all_its_expressions_and_fields():
    wanted = term(require("rack", "Exists"), fields=[require("metadata.name", "NotIn", "n1")])

    assert RACKS.match_term(wanted).tolist() == [False, True, False]


def test_a_term_of_names_matches_nodes_with_these_names():
    assert RACKS.match_term(named("n3", "elsewhere")).tolist() == [False, False, True]


def test_an_unknown_field_is_read_as_empty():
    answers = [
        RACKS.match_term(term(fields=[require("metadata.uid", op, value)])).tolist()
        for op, value in (("In", ""), ("In", "n1"), ("NotIn", ""), ("NotIn", "n1"))
    ]

    assert answers == [[True] * 3, [False] * 3, [False] * 3, [True] * 3]


def test_an_empty_or_invalid_term_matches_nothing():
    assert not RACKS.match_term(term()).any()
    assert not RACKS.match_term(term(require("rack", "Exists"), error="no")).any()


def test_a_growing_column_keeps_its_codes_and_new_rows_lack_the_label():
    column = LabelColumn(2)
    column.codes[1] = column.values.code("x")

    column.grow(4)

    assert column.codes.tolist() == [MISSING, 0, MISSING, MISSING]
    assert column.codes.dtype == np.int32


@given(clusters, st.one_of(expressions.map(term), terms))
def test_matching_columns_equals_matching_each_node(cluster, wanted):
    table = table_of(*(facts for facts, _ in cluster))

    matching = table.match_term(wanted).tolist()

    assert matching == [wanted.matches(dict(f.labels), f.name) for f, _ in cluster]


@given(clusters, expressions)
def test_a_label_value_without_nodes_does_not_matter(cluster, requirement):
    table = table_of(*(facts for facts, _ in cluster))
    for facts, _ in cluster[::2]:
        table.remove_node(facts.name)

    matching = dict(zip(table.names, table.match(requirement).tolist(), strict=True))

    left = {facts.name: dict(facts.labels) for facts, _ in cluster[1::2]}
    assert matching == {name: requirement.matches(labels) for name, labels in left.items()}

"""The rows that changed since a version are the same, however the table finds them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.nodes.table import MAX_LAST_ROWS
from tests.builders import node, pod, table_of

PODS = (pod(cpu=10), pod(cpu=20))
STEPS = st.lists(
    st.tuples(st.sampled_from(("add", "many", "remove", "nominate", "node")), st.integers(0, 5)),
    max_size=40,
)


def by_reading(table, version):
    return np.flatnonzero(table.columns.version[: len(table)] > version).tolist()


@settings(max_examples=50)
@given(steps=STEPS, repeats=st.integers(1, 2))
def test_rows_changed_since_every_version_are_those_of_the_column(steps, repeats):
    table = table_of(*(node(f"n{number}") for number in range(6)))
    classes = [table.classes.pod_class(facts) for facts in PODS]
    versions, placed, renewed = [table.version], [], []
    for what, row in steps * repeats:
        name = table.columns.names[row]
        if what == "add":
            table.add_pod(name, classes[0])
            placed.append(name)
        elif what == "many":
            table.add_pods([row, 0, row, 1, 2], [classes[1]] * 5)
        elif what == "nominate":
            table.nominate(name, classes[0])
        elif what == "node":
            table.update_node(node(name, cpu=len(versions)))
            renewed.append((table.version, row))
        elif placed:
            table.remove_pod(placed.pop(), classes[0])
        versions.append(table.version)

    for version in versions:
        assert table.rows_changed_since(version).tolist() == by_reading(table, version)
        rows = sorted({row for at, row in renewed if at > version})
        assert table.facts_changed_since(version).tolist() == rows
    assert table.rows_version == versions[0]


def test_nodes_that_are_added_or_removed_change_all_rows():
    table = table_of(*(node(f"n{number}") for number in range(3)))
    for change in (lambda: table.add_node(node("n3")), lambda: table.remove_node("n0")):
        change()
        assert table.rows_version == table.node_version == table.version


def test_more_changes_than_are_remembered_are_found_by_reading():
    table = table_of(*(node(f"n{number}") for number in range(6)))
    pod_class, before = table.classes.pod_class(PODS[0]), table.version
    for number in range(2 * MAX_LAST_ROWS):
        table.add_pod(f"n{number % 3}", pod_class)

    assert table.rows_changed_since(before).tolist() == [0, 1, 2]
    assert table.rows_changed_since(table.version).tolist() == []

"""Rows whose devices changed are found by the position of an earlier answer."""

from __future__ import annotations

from roadstead.devices.quick import Verdict
from roadstead.devices.screen import MARKED_MAX
from roadstead.facts.devices import Placement
from roadstead.nodes.table import NodeTable
from roadstead.plugins.screened_nodes import ScreenedNodes
from tests.builders import node, table_of
from tests.devices.making import (
    EVERYWHERE,
    allocate,
    allocator,
    claim,
    device,
    request,
    slice_of,
)

NAMES = ("n0", "n1", "n2")


def own_slice(name: str, *devices: str):
    places = Placement(node_name=name)
    return slice_of(*map(device, devices), name=name, pool=name, place=places)


def screened(*names: str):
    """Return an allocator with two devices on each node, its screened nodes, and a table."""
    made = allocator(*(own_slice(name, "a", "b") for name in names))
    table = table_of(*map(node, names))
    nodes = ScreenedNodes(made.nodes)
    made.screen(made.plan((claim(request()),)), nodes.numbers(table))
    return made, nodes, table


def names_since(nodes: ScreenedNodes, table: NodeTable, position: int):
    rows, end = nodes.rows_since(table, position)
    return (None if rows is None else {table.names[row] for row in rows}), end


def test_only_rows_whose_devices_changed_are_listed():
    made, nodes, table = screened(*NAMES)
    _, end = names_since(nodes, table, 0)
    assert names_since(nodes, table, end) == (set(), end)

    found = allocate(made, claim(request()), node="n1")[0]
    made.in_use.add(found)
    made.in_use.remove(found)

    changed, later = names_since(nodes, table, end)
    assert changed == {"n1"}
    assert names_since(nodes, table, later) == (set(), later)


def test_an_older_position_lists_the_changes_of_all_later_ones():
    made, nodes, table = screened(*NAMES)
    _, end = names_since(nodes, table, 0)
    for name in ("n2", "n0"):
        made.in_use.add(allocate(made, claim(request()), node=name)[0])
        names_since(nodes, table, end)

    assert names_since(nodes, table, end)[0] == {"n0", "n2"}


def test_a_node_with_other_labels_is_listed():
    _, nodes, table = screened(*NAMES)
    _, end = names_since(nodes, table, 0)

    table.update_node(node("n1", labels={"rack": "2"}))

    assert names_since(nodes, table, end)[0] == {"n1"}


def test_all_rows_may_have_changed_where_many_nodes_see_a_pool():
    names = [f"n{number}" for number in range(MARKED_MAX + 1)]
    shared = slice_of(device("net"), name="shared", pool="shared", place=EVERYWHERE)
    made = allocator(shared)
    table = table_of(*map(node, names))
    nodes = ScreenedNodes(made.nodes)
    made.screen(made.plan((claim(request()),)), nodes.numbers(table))
    _, end = names_since(nodes, table, 0)

    made.in_use.add(allocate(made, claim(request()), node="n1")[0])

    assert names_since(nodes, table, end)[0] is None


def test_a_single_row_has_the_number_that_it_has_among_others():
    made, nodes, table = screened(*NAMES)
    plan, alone = made.plan((claim(request()),)), ScreenedNodes(made.nodes)

    for row in range(len(NAMES)):
        assert alone.number(table, row) == nodes.numbers(table)[row]
        assert nodes.number(table, row) == nodes.numbers(table)[row]
        assert made.known_verdict(plan, alone.number(table, row)) is Verdict.YES
    made.in_use.add(allocate(made, claim(request(count=2)), node="n1")[0])
    number = alone.number(table, 1)
    assert made.known_verdict(plan, number) is Verdict.UNKNOWN, "no such node was screened"
    made.screen(plan, nodes.numbers(table))
    assert made.known_verdict(plan, number) is Verdict.NO
    table.update_node(node("n2", labels={"rack": "r"}))
    assert alone.number(table, 2) == made.nodes.put("n2", (("rack", "r"),))

"""The nodes of a Ray cluster on a terminal: a table, and below it their problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from roadstead.protocol.errors import printable
from roadstead.report.ray_nodes import CheckedNode, RayNodeUse
from roadstead.report.text_table import Cells, Column, print_table, text_column

CLOCKS_S: Final = 5.0
"""Difference of clocks from which the table shows it; no decision depends on clocks."""


def print_nodes(console: Console, nodes: Sequence[CheckedNode], address: str) -> None:
    """Print the table of the nodes, and the problems below it."""
    usable = [node for node in nodes if not node.problem]
    free = sum(node.free_cpus for node in usable)
    title = f"Ray at {address}: {len(usable)} of {len(nodes)} nodes can run Roadstead, "
    columns = [
        *(text_column("node"), text_column("address"), Column("CPUs free"), text_column("Python")),
        *(
            text_column("roadstead"),
            text_column("kernel"),
            text_column("journal"),
            text_column("result"),
        ),
    ]
    print_table(console, f"{title}{free:g} CPUs free", columns, [_row(node) for node in nodes])
    for node in nodes:
        where = printable(f"{node.name} ({node.address})")
        if node.problem:
            console.print(Text(f"{where}: {printable(node.problem)}."))
        elif abs(node.clock_s) > CLOCKS_S:
            side = "ahead" if node.clock_s > 0 else "behind"
            text_of = f"{where}: its clock is {abs(node.clock_s):.0f} s {side}, as in its logs."
            console.print(Text(text_of))


def print_ray_nodes(console: Console, uses: Sequence[RayNodeUse]) -> None:
    """Print which processes of a run are on which node of its Ray cluster."""
    columns = [
        *(text_column("node"), text_column("address"), Column("CPUs free before"), Column("load")),
        text_column("processes"),
    ]
    rows: list[Cells] = [
        (
            printable(each.name),
            printable(each.address),
            f"{each.free_cpus:g} of {each.cpus:g}",
            "-" if each.load is None else f"{each.load:.1f}",
            ", ".join(each.processes),
        )
        for each in uses
    ]
    print_table(console, "Nodes of the Ray cluster", columns, rows)


def _row(node: CheckedNode) -> tuple[str, ...]:
    return (
        printable(node.name),
        printable(node.address),
        f"{node.free_cpus:g} of {node.cpus:g}",
        printable(node.python) or "-",
        printable(node.version) or "-",
        printable(node.kernel) or "-",
        "-" if node.sees_journal is None else "seen" if node.sees_journal else "not seen",
        "problem" if node.problem else "ok",
    )

"""Results of the check of a Ray cluster's nodes, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from roadstead.report.text_table import Column, print_table, text

CLOCKS_S: Final = 5.0
"""Difference of clocks from which the table shows it; no decision depends on clocks."""


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """One node of a Ray cluster.

    problem: why it cannot run Roadstead, with the remedy; "" if it can. kernel: whether its machine
    code is there. sees_journal: None if no folder was given. clock_s: its clock minus this one's.
    """

    name: str
    address: str
    cpus: float
    free_cpus: float
    labels: dict[str, str]
    python: str = ""
    version: str = ""
    kernel: str = ""
    sees_journal: bool | None = None
    clock_s: float = 0.0
    problem: str = ""


def as_json(nodes: Sequence[CheckedNode]) -> list[dict[str, object]]:
    """Return one object per node."""
    return [asdict(node) for node in nodes]


def print_nodes(console: Console, nodes: Sequence[CheckedNode], address: str) -> None:
    """Print the table of the nodes, and the problems below it."""
    usable = [node for node in nodes if not node.problem]
    free = sum(node.free_cpus for node in usable)
    title = f"Ray at {address}: {len(usable)} of {len(nodes)} nodes can run Roadstead, "
    columns = [
        *(text("node"), text("address"), Column("CPUs free"), text("Python")),
        *(text("roadstead"), text("kernel"), text("journal"), text("result")),
    ]
    print_table(console, f"{title}{free:g} CPUs free", columns, [_row(node) for node in nodes])
    for node in nodes:
        where = f"{node.name} ({node.address})"
        if node.problem:
            console.print(Text(f"{where}: {node.problem}."))
        elif abs(node.clock_s) > CLOCKS_S:
            side = "ahead" if node.clock_s > 0 else "behind"
            text_of = f"{where}: its clock is {abs(node.clock_s):.0f} s {side}, as in its logs."
            console.print(Text(text_of))


def _row(node: CheckedNode) -> tuple[str, ...]:
    return (
        node.name,
        node.address,
        f"{node.free_cpus:g} of {node.cpus:g}",
        node.python or "-",
        node.version or "-",
        node.kernel or "-",
        "-" if node.sees_journal is None else "seen" if node.sees_journal else "not seen",
        "problem" if node.problem else "ok",
    )

"""Results of the check of a Ray cluster's nodes, and their JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


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

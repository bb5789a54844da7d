"""Results of the check of a Ray cluster's nodes, and their JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from roadstead.report.json_value import Json


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """One node of a Ray cluster.

    problem: why it cannot run Roadstead, with the remedy; "" if it can. kernel: "compiled", or why
    not. sees_journal: whether it sees the folder of the journal; None if the command has none.
    clock_s: the node's clock minus that of this machine.
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


@dataclass(frozen=True, slots=True)
class RayNodeUse:
    """A node of a joined Ray cluster and the processes of a run on it.

    free_cpus, load: before the processes started there. load: processes of the machine that ran or
    waited for a CPU, on average of a minute; None if unknown.
    """

    name: str
    address: str
    cpus: float
    free_cpus: float
    load: float | None
    processes: tuple[str, ...]

    def __str__(self) -> str:
        before = f"{self.free_cpus:g} of {self.cpus:g} CPUs free before"
        if self.load is not None:
            before += f", load {self.load:.1f}"
        return f"{', '.join(self.processes)} on {self.name} ({self.address}, {before})"


def ray_nodes_part(uses: Sequence[RayNodeUse]) -> dict[str, Json]:
    """The part of a document on the nodes of a joined cluster; empty on one machine."""
    nodes: list[Json] = [asdict(each) | {"processes": list(each.processes)} for each in uses]
    return {"ray_nodes": nodes} if nodes else {}


def as_json(nodes: Sequence[CheckedNode]) -> list[dict[str, object]]:
    """Return one object per node."""
    return [asdict(node) for node in nodes]

"""Placement of a run's processes on the nodes of a Ray cluster that the run joins.

Ray gives no guarantee for actors that reserve nothing: it may put all of them on one node, even on
a head without CPUs. So each process reserves CPUs, and its node is chosen here: control on one
node, schedulers and workers spread over all of them (docs/decisions/0047).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.actors.names import BINDER, CACHE, CONTROL, JOURNAL_COPY, QUEUE, SCHEDULER
from roadstead.config.ray import Role

EPSILON = 1e-9
"""CPUs: Ray counts in parts of 1/10,000, and sums of such parts are not exact."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node of a Ray cluster. port: of its raylet."""

    id: str
    name: str
    address: str
    port: int
    cpus: float
    free_cpus: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why processes cannot be placed now."""

    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for the nodes of each process.

    cpus: that each reserves. labels: that the nodes of a role must have. control_on: ids of the
    nodes whose disk holds the journal; None if any node may hold it, or without a journal. near: id
    of the driver's node. copy_near: of the node that had the copy of the journal last.
    """

    cpus: float = 1.0
    labels: Mapping[Role, Mapping[str, str]] = field(default_factory=dict)
    control_on: frozenset[str] | None = None
    near: str = ""
    copy_near: str = ""


def role_of(process: str) -> Role:
    """Return the role of a process by its name."""
    if process in (CONTROL, QUEUE, CACHE, BINDER):
        return "control"
    if process == JOURNAL_COPY:
        return "copy"
    return "scheduler" if process.startswith(SCHEDULER) else "worker"


def place(
    processes: Sequence[str],
    nodes: Iterable[RayNode],
    rules: Rules,
    node_of: Mapping[str, str],
) -> dict[str, RayNode] | Shortage:
    """Return the node of each process, or why there is none for one of them.

    node_of: process → id of its node, for the processes that run already; schedulers and workers
    are spread with these counted.
    """
    free = {node.id: node.free_cpus for node in nodes}
    by_id = {node.id: node for node in nodes}
    found: dict[str, RayNode] = {}
    control = [name for name in processes if role_of(name) == "control"]
    if control:
        node = _control_node(len(control) * rules.cpus, by_id, free, rules, node_of)
        if isinstance(node, str):
            return Shortage(node)
        found |= dict.fromkeys(control, node)
        free[node.id] -= len(control) * rules.cpus
    if JOURNAL_COPY in processes:
        copy = _copy_node(by_id, free, rules, {**_ids(found), **node_of})
        if isinstance(copy, str):
            return Shortage(copy)
        found[JOURNAL_COPY] = copy
        free[copy.id] -= rules.cpus
    count = Counter((role_of(name), node_id) for name, node_id in node_of.items())
    for name in processes:
        role = role_of(name)
        if role in ("control", "copy"):
            continue
        fits = _fitting(role, rules.cpus, by_id, free, rules)
        if isinstance(fits, str):
            return Shortage(fits)
        node = min(fits, key=lambda each: (count[role, each.id], -free[each.id], each.name))
        found[name] = node
        free[node.id] -= rules.cpus
        count[role, node.id] += 1
    return found


def _control_node(
    cpus: float,
    nodes: Mapping[str, RayNode],
    free: Mapping[str, float],
    rules: Rules,
    node_of: Mapping[str, str],
) -> RayNode | str:
    """Return the node of queue, cache and binder, or why there is none.

    They stay together. By preference: where one of them runs, the driver's node, most free CPUs.
    """
    allowed = nodes
    if rules.control_on is not None:
        allowed = {key: nodes[key] for key in nodes if key in rules.control_on}
        wanted = rules.labels.get("control", {})
        if not any(_has(node, wanted) for node in allowed.values()):
            which = f"with the labels of the control ({_listed(wanted)})" if wanted else "left"
            return f"no node {which} has the folder of the journal"
    fits = _fitting("control", cpus, allowed, free, rules)
    if isinstance(fits, str):
        return fits
    colocated = {node_id for name, node_id in node_of.items() if role_of(name) == "control"}

    def rank(node: RayNode) -> tuple[bool, bool, float, str]:
        return node.id not in colocated, node.id != rules.near, -free[node.id], node.name

    return min(fits, key=rank)


def _ids(found: Mapping[str, RayNode]) -> dict[str, str]:
    return {name: node.id for name, node in found.items()}


def _copy_node(
    nodes: Mapping[str, RayNode], free: Mapping[str, float], rules: Rules, taken: Mapping[str, str]
) -> RayNode | str:
    """Return the node of the journal's copy, another one than control's; else why there is none.

    By preference: the one that had it before, since its disk may have most of it; one with the
    labels of control, which is to run there if the binder's node is lost; most free CPUs.
    """
    control = {node_id for name, node_id in taken.items() if role_of(name) == "control"}
    others = {key: node for key, node in nodes.items() if key not in control}
    if not others:
        return "the copy of the journal needs another node than the binder's, and there is none"
    fits = _fitting("copy", rules.cpus, others, free, rules)
    if isinstance(fits, str):
        return fits
    wanted = rules.labels.get("control", {})

    def rank(node: RayNode) -> tuple[bool, bool, float, str]:
        return node.id != rules.copy_near, not _has(node, wanted), -free[node.id], node.name

    return min(fits, key=rank)


def _fitting(
    role: Role,
    cpus: float,
    nodes: Mapping[str, RayNode],
    free: Mapping[str, float],
    rules: Rules,
) -> list[RayNode] | str:
    """Return the nodes that one process, or all of control, can run on; else why there is none."""
    labels = rules.labels.get(role, {})
    labelled = [node for node in nodes.values() if _has(node, labels)]
    if not labelled:
        if not labels:
            return f"there is no node for the {role}"
        return f"no node has the labels that the {role} needs ({_listed(labels)})"
    fits = [node for node in labelled if free[node.id] >= cpus - EPSILON]
    if fits:
        return fits
    most = max(labelled, key=lambda node: free[node.id])
    who = "copy of the journal" if role == "copy" else role
    return (
        f"the {who} wants {cpus:g} CPU{'' if cpus == 1 else 's'} on one node, and the most that "
        f"is free is {max(0.0, free[most.id]):g} on {most}; in all "
        f"{sum(max(0.0, free[node.id]) for node in labelled):g} of "
        f"{sum(node.cpus for node in labelled):g} CPUs are free"
    )


def _has(node: RayNode, labels: Mapping[str, str]) -> bool:
    return all(node.labels.get(key) == value for key, value in labels.items())


def _listed(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())

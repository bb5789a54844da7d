"""Placement of a run's processes on the nodes of a Ray cluster that the run joins.

Ray gives no guarantee for actors that reserve nothing: it may put all of them on one node, even on
a head without CPUs. So each process reserves CPUs, and its node is chosen here: the control
processes (queue, cache and binder) on one node, schedulers and workers spread over all nodes
(docs/decisions/0047). "The driver" is Ray's driver, the process that started the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roadstead.actors.names import BINDER, CACHE, CONTROL, JOURNAL_COPY, QUEUE, SCHEDULER
from roadstead.config.ray import Role

CPU_TOLERANCE = 1e-9
"""A shortage of less than this many CPUs is a rounding error.

Ray counts CPUs in units of 1/10,000 and reports them as floats, whose sums are not exact.
"""


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
class Unplaceable:
    """Reason that processes cannot be placed now."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlacementConstraints:
    """Constraints and preferences of the choice of nodes.

    cpus: how many each process reserves. labels: which ones a node must have for a role.
    journal_node_ids: nodes on which the binder can open the journal; None for any node.
    driver_node_id: the driver's node, preferred for control. last_copy_node_id: the node that had
    the journal's copy last, preferred for the copy. The last two are "" for none.
    """

    cpus: float = 1.0
    labels: Mapping[Role, Mapping[str, str]] = field(default_factory=dict)
    journal_node_ids: frozenset[str] | None = None
    driver_node_id: str = ""
    last_copy_node_id: str = ""


def role_of(process: str) -> Role:
    """Return the role of a process of a run by its name (roadstead.actors.names)."""
    # "control" is one process with queue, cache and binder in it; they may also run apart.
    if process in (CONTROL, QUEUE, CACHE, BINDER):
        return "control"
    if process == JOURNAL_COPY:
        return "copy"
    # All other names are scheduler-N or worker-N.
    return "scheduler" if process.startswith(SCHEDULER) else "worker"


def place(
    processes: Sequence[str],
    nodes: Collection[RayNode],
    constraints: PlacementConstraints,
    node_of: Mapping[str, str],
) -> dict[str, RayNode] | Unplaceable:
    """Return the node of each process, or why there is none for one of them.

    node_of: process → id of its node, for the processes that run already, none of which is in
    `processes`. Schedulers are spread with running schedulers counted, workers likewise.
    """
    free_cpus = {node.id: node.free_cpus for node in nodes}
    by_id = {node.id: node for node in nodes}
    assigned: dict[str, RayNode] = {}
    # Processes with the fewest possible nodes first: control needs the CPUs of all its processes on
    # one node, the copy a node other than control's. Schedulers and workers may run anywhere.
    control = [name for name in processes if role_of(name) == "control"]
    if control:
        cpus = len(control) * constraints.cpus
        node = _control_node(cpus, by_id, free_cpus, constraints, node_of)
        if isinstance(node, str):
            return Unplaceable(node)
        assigned |= dict.fromkeys(control, node)
        free_cpus[node.id] -= cpus
    if JOURNAL_COPY in processes:
        # No name is in both maps, so that neither hides an entry of the other.
        control_node_of = {**_node_ids(assigned), **node_of}
        copy = _copy_node(by_id, free_cpus, constraints, control_node_of)
        if isinstance(copy, str):
            return Unplaceable(copy)
        assigned[JOURNAL_COPY] = copy
        free_cpus[copy.id] -= constraints.cpus
    count = Counter((role_of(name), node_id) for name, node_id in node_of.items())
    for name in processes:
        role = role_of(name)
        if role in ("control", "copy"):
            continue
        feasible = _feasible(role, constraints.cpus, by_id, free_cpus, constraints)
        if isinstance(feasible, str):
            return Unplaceable(feasible)
        # Fewest processes of the same role, since they are spread; then most free CPUs; then by
        # name, so that the choice does not depend on the order in which Ray lists the nodes.
        node = min(
            feasible, key=lambda each: (count[role, each.id], -free_cpus[each.id], each.name)
        )
        assigned[name] = node
        free_cpus[node.id] -= constraints.cpus
        count[role, node.id] += 1
    return assigned


def room_for(
    role: Role,
    others: Sequence[str],
    nodes: Sequence[RayNode],
    constraints: PlacementConstraints,
    node_of: Mapping[str, str],
) -> int:
    """Return how many processes of a role fit on the nodes that have the labels of the role.

    others: names of other new processes, which are placed first; the result is 0 if these do not
    fit. node_of: as for `place`. Processes that reserve nothing count as one CPU each.
    """
    labels, cpus = constraints.labels.get(role, {}), constraints.cpus or 1.0
    placed = place(others, nodes, replace(constraints, cpus=cpus), node_of)
    if isinstance(placed, Unplaceable):
        return 0
    count = Counter(node.id for node in placed.values())
    labelled = (node for node in nodes if _has_labels(node, labels))
    free = (node.free_cpus - count[node.id] * cpus for node in labelled)
    return sum(max(0, int((each + CPU_TOLERANCE) / cpus)) for each in free)


def _control_node(
    cpus: float,
    nodes: Mapping[str, RayNode],
    free_cpus: Mapping[str, float],
    constraints: PlacementConstraints,
    node_of: Mapping[str, str],
) -> RayNode | str:
    """Return one node for all control processes that are to be placed, or why there is none.

    Preferred: a node where another control process runs, then the driver's, then the one with the
    most free CPUs.
    """
    allowed = nodes
    if constraints.journal_node_ids is not None:
        allowed = {key: nodes[key] for key in nodes if key in constraints.journal_node_ids}
        labels = constraints.labels.get("control", {})
        if not any(_has_labels(node, labels) for node in allowed.values()):
            text = _format_labels(labels)
            which = f"with the labels of the control ({text})" if labels else "left"
            return f"no node {which} has the folder of the journal"
    feasible = _feasible("control", cpus, allowed, free_cpus, constraints)
    if isinstance(feasible, str):
        return feasible
    control_node_ids = {key for name, key in node_of.items() if role_of(name) == "control"}

    def rank(node: RayNode) -> tuple[bool, bool, float, str]:
        return (
            node.id not in control_node_ids,
            node.id != constraints.driver_node_id,
            -free_cpus[node.id],
            node.name,
        )

    return min(feasible, key=rank)


def _node_ids(assigned: Mapping[str, RayNode]) -> dict[str, str]:
    return {name: node.id for name, node in assigned.items()}


def _copy_node(
    nodes: Mapping[str, RayNode],
    free_cpus: Mapping[str, float],
    constraints: PlacementConstraints,
    node_of: Mapping[str, str],
) -> RayNode | str:
    """Return a node without control processes for the journal's copy, or why there is none.

    Preferred: the node that had the copy before, whose disk may have most of the records already;
    then a node with the labels that control needs, since the binder is restarted at the copy if its
    own node is lost; then the one with the most free CPUs.
    """
    control_node_ids = {key for name, key in node_of.items() if role_of(name) == "control"}
    others = {key: node for key, node in nodes.items() if key not in control_node_ids}
    if not others:
        return "the copy of the journal needs another node than the binder's, and there is none"
    feasible = _feasible("copy", constraints.cpus, others, free_cpus, constraints)
    if isinstance(feasible, str):
        return feasible
    labels = constraints.labels.get("control", {})

    def rank(node: RayNode) -> tuple[bool, bool, float, str]:
        return (
            node.id != constraints.last_copy_node_id,
            not _has_labels(node, labels),
            -free_cpus[node.id],
            node.name,
        )

    return min(feasible, key=rank)


def _feasible(
    role: Role,
    cpus: float,
    nodes: Mapping[str, RayNode],
    free_cpus: Mapping[str, float],
    constraints: PlacementConstraints,
) -> list[RayNode] | str:
    """Return the nodes with the labels of a role and this many free CPUs, or why there is none."""
    labels = constraints.labels.get(role, {})
    labelled = [node for node in nodes.values() if _has_labels(node, labels)]
    if not labelled:
        if not labels:
            return f"there is no node for the {role}"
        return f"no node has the labels that the {role} needs ({_format_labels(labels)})"
    feasible = [node for node in labelled if free_cpus[node.id] >= cpus - CPU_TOLERANCE]
    if feasible:
        return feasible
    freest = max(labelled, key=lambda node: free_cpus[node.id])
    who = "copy of the journal" if role == "copy" else role
    return (
        f"the {who} wants {cpus:g} CPU{'' if cpus == 1 else 's'} on one node, and the most that "
        f"is free is {max(0.0, free_cpus[freest.id]):g} on {freest}; in all "
        f"{sum(max(0.0, free_cpus[node.id]) for node in labelled):g} of "
        f"{sum(node.cpus for node in labelled):g} CPUs are free"
    )


def _has_labels(node: RayNode, labels: Mapping[str, str]) -> bool:
    return all(node.labels.get(key) == value for key, value in labels.items())


def _format_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())

"""Sums of the requests of pods per node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.pod import PodFacts
from roadstead.report.result import NodeUse

PODS = "pods"
LEADING = ("cpu", "memory")
"""The first resources of a table."""


def node_use(
    nodes: Sequence[NodeFacts],
    running: Iterable[tuple[str, PodFacts]],
    placed: Iterable[tuple[str, PodFacts]],
    preempted: Iterable[tuple[str, PodFacts]] = (),
) -> NodeUse:
    """Utilization of `nodes` by the pods `running` before the run, and by those it `placed`.

    preempted: running pods that were evicted for others. All three contain pairs of node name and
    pod; pods on nodes outside `nodes` are ignored. The resources are cpu and memory, then all
    others that a node offers, by name, then pods. An extended resource that the pod's node does not
    offer is provided by a device claim, and not counted.
    """
    offered = {resource for node in nodes for resource, _ in node.allocatable}
    resources = (*LEADING, *sorted(offered.difference(LEADING)), PODS)
    column = {resource: index for index, resource in enumerate(resources)}
    row = {node.name: index for index, node in enumerate(nodes)}
    allocatable = np.zeros((len(nodes), len(resources)), dtype=np.int64)
    for index, node in enumerate(nodes):
        for resource, amount in node.allocatable:
            allocatable[index, column[resource]] = amount
        allocatable[index, column[PODS]] = node.allocatable_pods
    before = np.zeros_like(allocatable)
    _add(before, running, row, column, nodes)
    after = before.copy()
    _add(after, placed, row, column, nodes)
    removed = np.zeros_like(allocatable)
    _add(removed, preempted, row, column, nodes)
    after -= removed
    return NodeUse(
        nodes=tuple(node.name for node in nodes),
        zones=tuple(zone_text(node.zone) for node in nodes),
        resources=resources,
        allocatable=allocatable,
        before=before,
        after=after,
    )


def _add(
    use: NDArray[np.int64],
    pods: Iterable[tuple[str, PodFacts]],
    row: dict[str, int],
    column: dict[str, int],
    nodes: Sequence[NodeFacts],
) -> None:
    """Add the requests of pods to the rows of their nodes. row, column: node, resource → index."""
    # Requests by resource. By id of the facts, which many pods share; the facts are kept so that no
    # id is used again.
    vectors: dict[int, tuple[PodFacts, NDArray[np.int64]]] = {}
    for node, facts in pods:
        index = row.get(node)
        if index is None:
            continue
        known = vectors.get(id(facts))
        if known is None:
            known = vectors[id(facts)] = (facts, _vector(facts, column))
        use[index] += known[1]
        if facts.extended_requests:
            # A device claim provides what the node does not offer; see `node_use`.
            offered = {name for name, _ in nodes[index].allocatable}
            for each in {each.resource for each in facts.extended_requests}.difference(offered):
                if each in column:
                    use[index, column[each]] -= known[1][column[each]]


def _vector(facts: PodFacts, column: dict[str, int]) -> NDArray[np.int64]:
    vector = np.zeros(len(column), dtype=np.int64)
    for resource, amount in facts.requests:
        if resource in column:
            vector[column[resource]] = amount
    vector[column[PODS]] = 1
    return vector

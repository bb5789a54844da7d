"""UncountedNodes: nodes of a simulated run's cache; the scheduler's table counts their pods.

In a live run cache and scheduler are two processes with a table each. Here one thread has both, and
one table is enough: the cache stores the nodes of pods only, and its changes go to that table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts


class UncountedNodes:
    """A `NodeStore` (see `roadstead.placements`) that stores nodes and counts no pods on them."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeFacts] = {}

    @property
    def nodes(self) -> Mapping[str, NodeFacts]:
        return self._nodes

    def add_node(self, facts: NodeFacts) -> None:
        self._nodes[facts.name] = facts

    def add_nodes(self, nodes: NodeList) -> None:
        self._nodes.update((facts.name, facts) for facts in nodes)

    def update_node(self, facts: NodeFacts) -> None:
        self._nodes[facts.name] = facts

    def remove_node(self, name: str) -> None:
        del self._nodes[name]

    def missing(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name not in self._nodes}

    def add_pod(self, node_name: str, facts: PodFacts, count: int = 1) -> None:
        """Count nothing."""

    def add_pods(self, node_names: Sequence[str], pods: Sequence[PodFacts]) -> Sequence[str]:
        return node_names

    def remove_pod(self, node_name: str, facts: PodFacts) -> None:
        """Count nothing."""

    def node_names(self) -> Collection[str]:
        return self._nodes.keys()

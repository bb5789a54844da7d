"""Partitions of nodes by zone (mode `partitioned`): large zones are split, small ones share one.

The nodes at the start are assigned together (`assign_first`): zones in order of size go to the
partition with the fewest nodes, and a zone larger than a fair share (nodes divided by partitions,
rounded up) is split first. A node added later joins the smallest partition that has its zone and
less than a fair share, or the smallest of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.nodes.view import Rows


class Partitioning:
    """Node name → partition number, and how many nodes each partition has (`sizes`).

    _zones: by partition, the number of its nodes in each zone. _partition_of: node name →
    (partition, zone).
    """

    __slots__ = ("_partition_of", "_zones", "sizes")

    def __init__(self, partitions: int) -> None:
        assert partitions >= 1, "at least one partition"
        self.sizes = [0] * partitions
        self._zones: list[Counter[str]] = [Counter() for _ in range(partitions)]
        self._partition_of: dict[str, tuple[int, str]] = {}

    def assign_first(self, nodes: Iterable[NodeFacts]) -> list[list[NodeFacts]]:
        """Assign the nodes at the start; return those of each partition, in their given order."""
        by_zone: dict[str, list[NodeFacts]] = {}
        for facts in nodes:
            by_zone.setdefault(facts.zone, []).append(facts)
        total = sum(map(len, by_zone.values()))
        # Rounded up, as in `assign`.
        fair_share = -(-total // len(self.sizes)) or 1
        chunks = [
            zone[at : at + fair_share]
            for zone in by_zone.values()
            for at in range(0, len(zone), fair_share)
        ]
        chunks.sort(key=lambda chunk: (-len(chunk), chunk[0].name))
        assigned: list[list[NodeFacts]] = [[] for _ in self.sizes]
        for chunk in chunks:
            partition = self._smallest(range(len(self.sizes)))
            for facts in chunk:
                self._put(facts, partition)
            assigned[partition] += chunk
        return assigned

    def assign(self, facts: NodeFacts) -> int:
        """Return the partition of a node; a new one is assigned, a changed one keeps its own."""
        known = self._partition_of.get(facts.name)
        if known is not None:
            return known[0]
        with_zone = [partition for partition, zones in enumerate(self._zones) if zones[facts.zone]]
        fair_share = -(-(sum(self.sizes) + 1) // len(self.sizes))
        below_share = [partition for partition in with_zone if self.sizes[partition] < fair_share]
        partition = self._smallest(below_share or range(len(self.sizes)))
        self._put(facts, partition)
        return partition

    def assign_all(self, nodes: NodeList) -> list[Rows]:
        """Assign nodes, the first ones by `assign_first`; return the indices of each partition."""
        if not any(self.sizes):
            self.assign_first(nodes)
        partitions = np.array([self.assign(facts) for facts in nodes], dtype=np.intp)
        return [np.flatnonzero(partitions == partition) for partition in range(len(self.sizes))]

    def partition_of(self, node_name: str) -> int:
        """Return the partition of a node. KeyError for an unknown one."""
        return self._partition_of[node_name][0]

    def remove(self, node_name: str) -> int:
        """Remove a node; return the partition it was in. KeyError for an unknown node."""
        partition, zone = self._partition_of.pop(node_name)
        self.sizes[partition] -= 1
        self._zones[partition][zone] -= 1
        return partition

    def _put(self, facts: NodeFacts, partition: int) -> None:
        self._partition_of[facts.name] = (partition, facts.zone)
        self.sizes[partition] += 1
        self._zones[partition][facts.zone] += 1

    def _smallest(self, partitions: Iterable[int]) -> int:
        return min(partitions, key=lambda partition: (self.sizes[partition], partition))


class OnePartition(Partitioning):
    """A single partition, which needs no data about nodes."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1)

    def assign_first(self, nodes: Iterable[NodeFacts]) -> list[list[NodeFacts]]:
        return [list(nodes)]

    def assign(self, facts: NodeFacts) -> int:
        return 0

    def assign_all(self, nodes: NodeList) -> list[Rows]:
        return [np.arange(len(nodes))]

    def partition_of(self, node_name: str) -> int:
        return 0

    def remove(self, node_name: str) -> int:
        return 0


def partitioning_over(partitions: int) -> Partitioning:
    """Return the partitioning for a number of partitions."""
    return OnePartition() if partitions == 1 else Partitioning(partitions)

"""Which shard a node belongs to: by zone, large zones split, small ones sharing a shard.

A fleet that is known at the start is dealt out at once (`plan`): zones in order of size go to the
shard with the fewest nodes, and a zone larger than a fair share is cut into parts first. A node
that comes later joins the smallest shard that has its zone, or the smallest of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.nodes.view import Rows


class Sharding:
    """Node name → shard number, and how many nodes each shard has."""

    __slots__ = ("_shard_of", "_zones", "sizes")

    def __init__(self, shards: int) -> None:
        assert shards >= 1, "at least one shard"
        self.sizes = [0] * shards
        self._zones: list[Counter[str]] = [Counter() for _ in range(shards)]
        self._shard_of: dict[str, tuple[int, str]] = {}

    def plan(self, nodes: Iterable[NodeFacts]) -> list[list[NodeFacts]]:
        """Deals out a fleet; the nodes of each shard, in their given order."""
        by_zone: dict[str, list[NodeFacts]] = {}
        for facts in nodes:
            by_zone.setdefault(facts.zone, []).append(facts)
        total = sum(map(len, by_zone.values()))
        fair = -(-total // len(self.sizes)) or 1
        parts = [
            zone[at : at + fair] for zone in by_zone.values() for at in range(0, len(zone), fair)
        ]
        parts.sort(key=lambda part: (-len(part), part[0].name))
        dealt: list[list[NodeFacts]] = [[] for _ in self.sizes]
        for part in parts:
            shard = self._smallest(range(len(self.sizes)))
            for facts in part:
                self._put(facts, shard)
            dealt[shard] += part
        return dealt

    def place(self, facts: NodeFacts) -> int:
        """The shard of a node that comes (or comes again with changed facts)."""
        known = self._shard_of.get(facts.name)
        if known is not None:
            return known[0]
        having = [shard for shard, zones in enumerate(self._zones) if zones[facts.zone]]
        fair = -(-(sum(self.sizes) + 1) // len(self.sizes))
        roomy = [shard for shard in having if self.sizes[shard] < fair]
        shard = self._smallest(roomy or range(len(self.sizes)))
        self._put(facts, shard)
        return shard

    def deal(self, nodes: NodeList) -> list[Rows]:
        """Deals out nodes that come: the places of each shard's in the list."""
        if not any(self.sizes):
            self.plan(nodes)
        shards = np.array([self.place(facts) for facts in nodes], dtype=np.intp)
        return [np.flatnonzero(shards == shard) for shard in range(len(self.sizes))]

    def shard_of(self, node_name: str) -> int:
        """The shard of a known node. KeyError for another."""
        return self._shard_of[node_name][0]

    def remove(self, node_name: str) -> int:
        """A node goes; the shard it was in. KeyError for an unknown node."""
        shard, zone = self._shard_of.pop(node_name)
        self.sizes[shard] -= 1
        self._zones[shard][zone] -= 1
        return shard

    def _put(self, facts: NodeFacts, shard: int) -> None:
        self._shard_of[facts.name] = (shard, facts.zone)
        self.sizes[shard] += 1
        self._zones[shard][facts.zone] += 1

    def _smallest(self, shards: Iterable[int]) -> int:
        return min(shards, key=lambda shard: (self.sizes[shard], shard))


class OneShard(Sharding):
    """Everything is in the one shard that there is: nothing has to be known of a node."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1)

    def plan(self, nodes: Iterable[NodeFacts]) -> list[list[NodeFacts]]:
        return [list(nodes)]

    def place(self, facts: NodeFacts) -> int:
        return 0

    def deal(self, nodes: NodeList) -> list[Rows]:
        return [np.arange(len(nodes))]

    def shard_of(self, node_name: str) -> int:
        return 0

    def remove(self, node_name: str) -> int:
        return 0


def sharding_over(shards: int) -> Sharding:
    """How nodes are dealt to so many shards."""
    return OneShard() if shards == 1 else Sharding(shards)

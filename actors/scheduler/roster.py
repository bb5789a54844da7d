"""The scheduler's copy of all nodes in their order, which sampling and extenders need."""

from __future__ import annotations

import numpy as np

from roadstead.actors.messages import ROSTER, RosterAsk, RosterPage
from roadstead.actors.seam import Ref
from roadstead.cycle.narrowing import Roster
from roadstead.facts.node import NodeFacts
from roadstead.nodes.node_order import NodeOrder


class RosterCopy:
    """Asks the cache at the start of a cycle. whole: nodes with all their facts, not just names."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._version = -1
        self._order = NodeOrder()
        self._nodes: dict[str, tuple[NodeFacts, int]] = {}
        self._roster = Roster()
        self.worker_seqs: tuple[int, ...] = ()

    async def take(self, cache: Ref, timeout_s: float) -> Roster:
        """The nodes of a cycle that begins now."""
        first = await self._page(cache, 0, timeout_s)
        while first.version != self._version:
            pages = [first]
            while pages[-1].version == first.version and _count(pages) < first.total:
                pages.append(await self._page(cache, _count(pages), timeout_s))
            if pages[-1].version == first.version:
                self._renew(pages)
            else:
                # Nodes came or went between two pages.
                first = await self._page(cache, 0, timeout_s)
        self.worker_seqs = first.worker_seqs
        return self._roster

    async def _page(self, cache: Ref, start: int, timeout_s: float) -> RosterPage:
        ask = RosterAsk(self._version, start, self._whole)
        return await cache.call(ROSTER, ask, timeout_s=timeout_s)

    def _renew(self, pages: list[RosterPage]) -> None:
        self._nodes = {}
        for page in pages:
            nodes = page.nodes or tuple(NodeFacts(name) for name in page.names)
            arrivals = np.frombuffer(page.arrivals, np.int64).tolist()
            for facts, arrival in zip(nodes, arrivals, strict=True):
                self._nodes[facts.name] = facts, arrival
        self._order.renew(tuple(self._nodes))
        found = [self._nodes[name] for name in self._order.names]
        arrivals_in_order = np.array([arrival for _, arrival in found], dtype=np.int64)
        self._roster = Roster(tuple(facts for facts, _ in found), arrivals_in_order)
        self._version = pages[0].version


def _count(pages: list[RosterPage]) -> int:
    return sum(len(page.names) for page in pages)

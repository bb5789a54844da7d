"""PodOutcomes: what became of pods at the binder, in the order in which clients page through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from roadstead.actors.messages import BoundPage, PageAsk, PreemptedNote, PreemptedPage
from roadstead.binder import Released


class PodOutcomes:
    """bound: pod UID → node, in commit order, of pods that a run bound and that are still there.
    preempted: pods that are gone, in the order in which they went."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.preempted: list[PreemptedNote] = []
        self._evictions: dict[str, tuple[str, str]] = {}

    def begin_eviction(self, uids: Iterable[str], preemptor: str, node_name: str) -> None:
        """Pods are about to be evicted for a preemptor, which is to have their node."""
        self._evictions |= dict.fromkeys(uids, (preemptor, node_name))

    def released(self, effect: Released) -> None:
        """A pod is gone for good; if it was bound, it is not any more."""
        uid = effect.uid
        self.bound.pop(uid, None)
        preemptor, node_name = self._evictions.pop(uid, ("", effect.node_name))
        self.preempted.append(PreemptedNote(uid, effect.key, node_name, preemptor))

    def recovered(self, bound: Iterable[tuple[str, str]]) -> None:
        """Pods were bound, (uid, node), by an earlier life."""
        self.bound.update(bound)

    def recovered_gone(self, notes: Sequence[PreemptedNote]) -> None:
        """Pods went during an earlier life."""
        self.preempted += notes
        for note in notes:
            self.bound.pop(note.uid, None)

    def bound_page(self, ask: PageAsk) -> BoundPage:
        """Committed binds in commit order."""
        page = list(islice(self.bound.items(), ask.start, ask.start + ask.count))
        uids, nodes = tuple(uid for uid, _ in page), tuple(node for _, node in page)
        return BoundPage(uids, nodes, len(self.bound))

    def preempted_page(self, ask: PageAsk) -> PreemptedPage:
        """Evicted pods in the order of their eviction."""
        page = self.preempted[ask.start : ask.start + ask.count]
        return PreemptedPage(tuple(page), len(self.preempted))

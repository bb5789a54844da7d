"""PodOutcomes: what became of pods at the binder, in the order in which it became durable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roadstead.binder.pods import Released


@dataclass(frozen=True, slots=True)
class GonePod:
    """A pod that was deleted, or evicted for `preemptor`, from a node ("" for one that waited)."""

    uid: str
    key: str
    node_name: str
    preemptor: str


class PodOutcomes:
    """bound: pod UID → node, in commit order, of pods that a run bound and that are still there.
    preempted: pods that are gone, in the order in which they went."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.preempted: list[GonePod] = []
        self._evictions: dict[str, tuple[str, str]] = {}

    def begin_eviction(self, uids: Iterable[str], preemptor: str, node_name: str) -> None:
        """Pods are about to be evicted for a preemptor, which is to have their node."""
        self._evictions |= dict.fromkeys(uids, (preemptor, node_name))

    def released(self, effect: Released) -> None:
        """A pod is gone for good; if it was bound, it is not any more."""
        uid = effect.uid
        self.bound.pop(uid, None)
        preemptor, node_name = self._evictions.pop(uid, ("", effect.node_name))
        self.preempted.append(GonePod(uid, effect.key, node_name, preemptor))

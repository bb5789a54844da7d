"""PodOutcomes: what became of pods at the binder, in the order in which it became durable."""

from __future__ import annotations

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

    def released(self, effect: Released) -> None:
        """A pod is gone for good; if it was bound, it is not any more."""
        self.bound.pop(effect.uid, None)
        gone = GonePod(effect.uid, effect.key, effect.node_name, effect.preemptor)
        self.preempted.append(gone)

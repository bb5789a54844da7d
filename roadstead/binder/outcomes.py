"""PodOutcomes: bound and removed pods, in the order in which that became durable."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.binder.pods import Released


@dataclass(frozen=True, slots=True)
class RemovedPod:
    """A pod that was deleted, or evicted for `preemptor`, from a node ("" if it was not bound)."""

    uid: str
    key: str
    node_name: str
    preemptor: str


class PodOutcomes:
    """The outcomes of pods that are bound or removed.

    bound: pod UID → node, in commit order, of pods that the run bound and that still exist.
    removed: evicted and deleted pods, in the order of their removal.
    """

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}
        self.removed: list[RemovedPod] = []

    def released(self, command: Released) -> None:
        """Record that a pod is removed; it is no longer listed as bound."""
        self.bound.pop(command.uid, None)
        pod = RemovedPod(command.uid, command.key, command.node_name, command.preemptor)
        self.removed.append(pod)

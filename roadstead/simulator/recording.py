"""Recorders: receivers of the history of a simulated run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from roadstead.simulator.component import ClusterView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roadstead.facts.devices import DeviceClaimFacts
    from roadstead.facts.node import NodeFacts
    from roadstead.queue.reports import PendingReason
    from roadstead.simulator.component import Note
    from roadstead.simulator.simulated_pods import SimulatedPod, SimulatedPods
    from roadstead.simulator.virtual_cluster import VirtualCluster


class RecordedWorld(ClusterView, Protocol):
    """The fleet as recorders read it."""

    simulated_pods: SimulatedPods
    cluster: VirtualCluster


class Recorder:
    """A recorder that records nothing; the methods are called in the order of what happens."""

    def pod_ended(self, pod: SimulatedPod) -> None:
        """Record a pod that has ended."""

    def bound(self, now_us: int, pod: SimulatedPod) -> None:
        """Record that a pod was bound to its node."""

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        """Record an attempt that bound no pod, and its reason.

        nominated: the node to which the pod was nominated, or "". victims: UIDs of the pods that
        were preempted for it there.
        """

    def note(self, now_us: int, note: Note) -> None:
        """Record an event of the fleet."""

    def node(self, now_us: int, name: str, facts: NodeFacts | None, *, is_new: bool) -> None:
        """Record that a node was added, changed or removed. facts: None if it was removed."""

    def claims(
        self, world: RecordedWorld, changed: Sequence[DeviceClaimFacts], removed: Sequence[str]
    ) -> None:
        """Record changes of claims of devices.

        changed: in their new state. removed: keys of those that do not exist any more.
        """

    def sample(self, world: RecordedWorld) -> None:
        """Record the state of the fleet now."""


class Recorders(Recorder):
    """Several recorders, which are called one after the other."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders

    def pod_ended(self, pod: SimulatedPod) -> None:
        for each in self._recorders:
            each.pod_ended(pod)

    def bound(self, now_us: int, pod: SimulatedPod) -> None:
        for each in self._recorders:
            each.bound(now_us, pod)

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        for each in self._recorders:
            each.not_bound(now_us, pod, reason, nominated, victims)

    def note(self, now_us: int, note: Note) -> None:
        for each in self._recorders:
            each.note(now_us, note)

    def node(self, now_us: int, name: str, facts: NodeFacts | None, *, is_new: bool) -> None:
        for each in self._recorders:
            each.node(now_us, name, facts, is_new=is_new)

    def claims(
        self, world: RecordedWorld, changed: Sequence[DeviceClaimFacts], removed: Sequence[str]
    ) -> None:
        for each in self._recorders:
            each.claims(world, changed, removed)

    def sample(self, world: RecordedWorld) -> None:
        for each in self._recorders:
            each.sample(world)

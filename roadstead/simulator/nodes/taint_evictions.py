"""TaintEvictions: when pods are evicted from nodes with NoExecute taints.

Upstream: pkg/controller/tainteviction/taint_eviction.go, 1.34 (processPodOnNode).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roadstead.facts.taints import Taint
from roadstead.simulator.scenario import TimedToleration
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.times import NEVER_US


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """A pod to evict at a time, unless the plan is cancelled. taints: their text for events."""

    uid: str
    at_us: int
    taints: str


def tolerated_us(tolerations: Sequence[TimedToleration], taints: Iterable[Taint]) -> int:
    """Return for how long taints are tolerated: 0 if one is not, NEVER_US for ever.

    The first toleration that matches a taint counts for it; the shortest time counts for all.
    """
    times: list[int] = []
    for taint in taints:
        matching = next((each for each in tolerations if each.tolerates(taint)), None)
        if matching is None:
            return 0
        times.append(matching.tolerated_us)
    return min((each for each in times if each != NEVER_US), default=NEVER_US)


class TaintEvictions:
    """The pods that will be evicted for the taints of their nodes, and when."""

    def __init__(self) -> None:
        # By UID of the pod.
        self._planned: dict[str, PlannedEviction] = {}

    def plan_evictions(
        self, pods: Iterable[SimulatedPod], taints: Sequence[Taint], now_us: int
    ) -> Iterator[PlannedEviction]:
        """Plan for pods on a node with these NoExecute taints; yield the new plans.

        A plan that exists is kept even if its time would now be another one, as upstream.
        """
        for pod in pods:
            time_us = tolerated_us(pod.no_execute, taints) if taints else NEVER_US
            if time_us == NEVER_US:
                self.forget(pod.uid)
            elif not time_us or pod.uid not in self._planned:
                names = ", ".join(each.key for each in taints)
                plan = PlannedEviction(pod.uid, now_us + time_us, names)
                self._planned[pod.uid] = plan
                yield plan

    def forget(self, uid: str) -> None:
        """Cancel the plan for a pod."""
        self._planned.pop(uid, None)

    def pop_due(self, uid: str, now_us: int) -> PlannedEviction | None:
        """Remove and return the plan for a pod that is to be evicted now; None if there is none."""
        plan = self._planned.get(uid)
        if plan is None or plan.at_us > now_us:
            return None
        return self._planned.pop(uid)

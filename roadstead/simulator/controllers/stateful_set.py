"""StatefulSet: numbered pods, each with its name and claims, one after another.

Upstream: pkg/controller/statefulset (stateful_set_control.go).
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.simulator.component import ClusterView, Command, CreatePods
from roadstead.simulator.controllers.core import ControllerCore, end_pod
from roadstead.simulator.scenario import ControllerChange, ControllerPlan
from roadstead.simulator.simulated_pods import SimulatedPod


class StatefulSetCore(ControllerCore):
    """A StatefulSet.

    A pod has its ordinal until it has ended; all sets and dictionaries are by ordinal. `_leaving`:
    the pod terminates. `_missing`: wanted, but without a pod. `_condemned`: with a pod beyond the
    replicas (upstream's word). `_old`: with a pod of another template than the wanted one, which
    does not terminate. `_available_below`: all wanted ordinals below it have an available pod.

    Every new pod has the wanted template, though a rollout may not have reached its ordinal yet:
    upstream's newVersionedStatefulSetPod uses the old template only for ordinals below `partition`,
    which is 0 here. With the strategy OnDelete a rollout never finishes (completeRollingUpdate).
    """

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self._pods: dict[int, SimulatedPod] = {}
        self._template_of: dict[int, int] = {}
        self._available: set[int] = set()
        self._leaving: set[int] = set()
        self._missing: set[int] = set()
        self._condemned: set[int] = set()
        self._old: set[int] = set()
        self._available_below = plan.first_ordinal
        self._is_rolling = False

    @property
    def _ordinals(self) -> range:
        first = self.plan.first_ordinal
        return range(first, first + self.replicas)

    # What happens to the controller.

    def create(self) -> None:
        super().create()
        self._missing = set(self._ordinals)

    def change(self, change: ControllerChange) -> None:
        template = self.template
        super().change(change)
        wanted = self._ordinals
        self._missing = {each for each in wanted if each not in self._pods}
        self._condemned = {each for each in self._pods if each not in wanted}
        self._available_below = min(self._available_below, wanted.stop)
        if self.template != template and not self._is_same(template):
            remaining = self._pods.keys() - self._leaving
            self._old = {each for each in remaining if not self._is_same(self._template_of[each])}
            self._is_rolling = True
            self.note("rollout started")

    def _is_same(self, template: int) -> bool:
        """Whether a template makes the same pods as the wanted one."""
        templates = self.plan.templates
        return templates[template] == templates[self.template]

    # What happens to its pods.

    def pod_created(self, pod: SimulatedPod) -> None:
        ordinal = pod.ordinal
        self._pods[ordinal] = pod
        self._template_of[ordinal] = self.template
        self._missing.discard(ordinal)

    def pod_available(self, pod: SimulatedPod) -> None:
        if self._pods.get(pod.ordinal) is pod and pod.ordinal not in self._leaving:
            self._available.add(pod.ordinal)

    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        ordinal = pod.ordinal
        if self._pods.get(ordinal) is not pod or ordinal in self._leaving:
            return False
        self._mark_leaving(ordinal)
        return True

    def _mark_leaving(self, ordinal: int) -> None:
        self._leaving.add(ordinal)
        self._available.discard(ordinal)
        self._old.discard(ordinal)
        self._available_below = min(self._available_below, ordinal)

    def pod_ended(self, pod: SimulatedPod) -> None:
        ordinal = pod.ordinal
        if self._pods.get(ordinal) is not pod:
            return
        del self._pods[ordinal], self._template_of[ordinal]
        self._leaving.discard(ordinal)
        self._condemned.discard(ordinal)
        if ordinal in self._ordinals:
            self._missing.add(ordinal)

    def remaining(self) -> Iterable[SimulatedPod]:
        pods = (pod for each, pod in self._pods.items() if each not in self._leaving)
        return sorted(pods, key=lambda pod: pod.number)

    # What it does.

    def sync(self, world: ClusterView) -> list[Command]:
        if self.plan.is_parallel:
            # In the order of ordinals, though none waits for another.
            commands = self._create(sorted(self._missing))
            for ordinal in sorted(self._condemned - self._leaving, reverse=True):
                commands += self._delete(ordinal)
            return commands + self._update()
        if (first := self._first_not_available()) is not None:
            return self._create([first]) if first in self._missing else []
        return self._delete_last() if self._condemned else self._update()

    def _first_not_available(self) -> int | None:
        """Return the lowest wanted ordinal without an available pod; None if there is none."""
        for ordinal in range(self._available_below, self._ordinals.stop):
            if ordinal not in self._available:
                return ordinal
            self._available_below = ordinal + 1
        return None

    def _create(self, ordinals: Iterable[int]) -> list[Command]:
        lifecycle = self.plan.templates[self.template].lifecycle
        pods = tuple(
            self.new_pod(
                *self.plan.pod(self.template, ordinal),
                lifecycle,
                ordinal,
                reuses_name=True,
            )
            for ordinal in ordinals
        )
        return [CreatePods(pods, controller=self.plan.index)] if pods else []

    def _delete(self, ordinal: int) -> list[Command]:
        self._mark_leaving(ordinal)
        return [end_pod(self._pods[ordinal])]

    def _delete_last(self) -> list[Command]:
        """Delete the pod with the highest condemned ordinal, if it does not terminate already.

        A pod that is not available is deleted only if no lower condemned pod is unavailable
        (processCondemned).
        """
        last = max(self._condemned)
        if last in self._leaving:
            return []
        if last not in self._available and last != min(self._condemned - self._available):
            return []
        return self._delete(last)

    def _update(self) -> list[Command]:
        """Delete the highest pod with an old template, if all pods above it are available."""
        if self.plan.updates_on_delete or not self._is_rolling:
            return []
        for ordinal in reversed(self._ordinals):
            if ordinal in self._old:
                return self._delete(ordinal)
            if ordinal not in self._available:
                return []
        self._is_rolling = False
        self.note("rollout finished")
        return []

    def validate(self) -> None:
        wanted = self._ordinals
        for ordinal, pod in self._pods.items():
            assert pod.ordinal == ordinal, f"{pod.uid} is counted as ordinal {ordinal}"
        if self.is_live:
            assert self._missing == {each for each in wanted if each not in self._pods}
            assert self._condemned == {each for each in self._pods if each not in wanted}
        remaining = self._pods.keys() - self._leaving
        assert self._available <= remaining, "pods that left count"
        assert self._old <= remaining, "pods that left are to be replaced"
        assert all(each in self._available for each in range(wanted.start, self._available_below))

"""Controllers: the component that runs the controllers of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.simulator.component import ClusterView, Commands, Component, WakeAt
from roadstead.simulator.controllers.core import ControllerCore
from roadstead.simulator.controllers.daemon_set import DaemonSetCore
from roadstead.simulator.controllers.deployment import DeploymentCore
from roadstead.simulator.controllers.job import JobCore
from roadstead.simulator.controllers.replica_set import ReplicaSetCore
from roadstead.simulator.controllers.stateful_set import StatefulSetCore
from roadstead.simulator.scenario import ControllerKind, ControllerPlan
from roadstead.simulator.simulated_pods import LifeState, SimulatedPod
from roadstead.simulator.times import NEVER_US, SECOND_US

PAUSE_US: Final = SECOND_US
"""How long a controller pauses when a pod ended at the time of its creation.

The pod that replaces it might end immediately, too, so that virtual time would never pass.
"""

_CORES: Final[Mapping[ControllerKind, type[ControllerCore]]] = {
    "Deployment": DeploymentCore,
    "ReplicaSet": ReplicaSetCore,
    "StatefulSet": StatefulSetCore,
    "DaemonSet": DaemonSetCore,
    "Job": JobCore,
}

Key = tuple[str | int, ...]
"""The key of a `WakeAt`: an action, the index of a controller, and further arguments."""


class Controllers(Component):
    """All controllers of a scenario; a pod's `controller` is its index here.

    plans: `CompiledScenario.controllers`. seed: of durations and failures. cores: by index.
    """

    def __init__(self, plans: Sequence[ControllerPlan], seed: int) -> None:
        self.cores = [_CORES[plan.kind](plan, seed) for plan in plans]
        self._daemon_sets = [each for each in self.cores if isinstance(each, DaemonSetCore)]
        # By index of the controller: whether a `sync` at the current time is planned; the end of
        # its pause (PAUSE_US), before which no `sync` is made.
        self._is_woken = [False] * len(plans)
        self._pauses_until_us = [0] * len(plans)

    def attach(self, world: ClusterView) -> None:
        self._world = world

    def begin(self) -> Iterator[WakeAt]:
        for core in self.cores:
            plan = core.plan
            yield WakeAt(plan.created_us, ("create", plan.index))
            for number, change in enumerate(plan.changes):
                yield WakeAt(change.at_us, ("change", plan.index, number))
            if plan.deleted_us != NEVER_US:
                yield WakeAt(plan.deleted_us, ("delete", plan.index))

    def wake(self, key: Key) -> Commands:
        action, index = key[0], int(key[1])
        core = self.cores[index]
        if action == "sync":
            return self._sync(index)
        if action == "available":
            return self._make_available(index, str(key[2]))
        if action == "create":
            core.create()
            return self._wake_now(index)
        if action == "change":
            core.change(core.plan.changes[int(key[2])])
            return self._wake_now(index)
        assert action == "delete", f"nothing wakes a controller with the key {key}"
        # A finished Job is deleted, too: it exists until then, though it does nothing any more.
        return [*core.delete(), *core.pop_notes()]

    # What happens to pods and nodes.

    def pod_created(self, pod: SimulatedPod) -> Commands:
        if pod.controller >= 0:
            self.cores[pod.controller].pod_created(pod)
        return ()

    def pod_started(self, pod: SimulatedPod) -> Commands:
        index = pod.controller
        if index < 0:
            return ()
        core, min_ready_us = self.cores[index], self.cores[index].plan.min_ready_us
        if min_ready_us:
            at_us = self._world.now_us + min_ready_us
            return (WakeAt(at_us, ("available", index, pod.uid)),)
        core.pod_available(pod)
        return self._wake_now(index)

    def _make_available(self, index: int, uid: str) -> Commands:
        pod = self._world.pods.get(uid)
        if pod is None or pod.state is not LifeState.RUNNING:
            return ()
        self.cores[index].pod_available(pod)
        return self._wake_now(index)

    def pod_terminating(self, pod: SimulatedPod) -> Commands:
        index = pod.controller
        return self._remove_pod(index, pod) if index >= 0 else ()

    def pod_ended(self, pod: SimulatedPod) -> Commands:
        index = pod.controller
        if index < 0:
            return ()
        commands = self._remove_pod(index, pod)
        self.cores[index].pod_ended(pod)
        return commands

    def _remove_pod(self, index: int, pod: SimulatedPod) -> Commands:
        core, now_us = self.cores[index], self._world.now_us
        # The controller did not delete the pod itself.
        is_unexpected = core.pod_leaves(pod, now_us)
        if is_unexpected and pod.created_us == now_us and not core.replaces_at_once:
            until_us = now_us + PAUSE_US
            if self._pauses_until_us[index] == until_us:
                return ()
            self._pauses_until_us[index] = until_us
            return (WakeAt(until_us, ("sync", index)),)
        return self._wake_now(index)

    def node_put(self, facts: NodeFacts, *, is_new: bool) -> Commands:
        return self._node_changed(facts.name)

    def node_dropped(self, name: str) -> Commands:
        return self._node_changed(name)

    def _node_changed(self, name: str) -> Commands:
        for each in self._daemon_sets:
            each.node_changed(name)
        return [wake for each in self._daemon_sets for wake in self._wake_now(each.plan.index)]

    # When a controller acts.

    def _wake_now(self, index: int) -> tuple[WakeAt, ...]:
        """Plan a `sync` at this time, after all commands that are not carried out yet."""
        if self._is_woken[index] or not self.cores[index].is_live:
            return ()
        self._is_woken[index] = True
        return (WakeAt(self._world.now_us, ("sync", index)),)

    def _sync(self, index: int) -> Commands:
        self._is_woken[index] = False
        core = self.cores[index]
        if not core.is_live or self._world.now_us < self._pauses_until_us[index]:
            return ()
        return [*core.sync(self._world), *core.pop_notes()]

    def validate(self) -> None:
        """Check the counts of all controllers (O(pods))."""
        for core in self.cores:
            core.validate()

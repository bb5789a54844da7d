"""DaemonSet: a pod on each node that may run it.

Upstream: pkg/controller/daemon (daemon_controller.go, update.go). Its pods name their node in a
required node affinity, and the scheduler places them.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.manifests.daemons import may_continue, should_run
from roadstead.simulator.component import ClusterView, Command, CreatePods, NewPod
from roadstead.simulator.controllers.core import ControllerCore, end_pod
from roadstead.simulator.scenario import ControllerChange, ControllerPlan
from roadstead.simulator.simulated_pods import LifeState, SimulatedPod


class DaemonSetCore(ControllerCore):
    """A DaemonSet.

    A node has its pod until the pod has ended. By node: `_pods`, `_available`, `_leaving` (the pod
    terminates), `_wanted` (should run a pod), `_changed` (to check, in the order of the changes),
    `_old` (the pod has an old template, in the order of creation), `_facts` (those of the node's
    pods with the present template, as one object). `_node_of`: by the pod's ordinal. `_checks_all`:
    the next `sync` checks all nodes. With the strategy OnDelete a rollout never finishes, as
    upstream.
    """

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self._pods: dict[str, SimulatedPod] = {}
        self._node_of: dict[int, str] = {}
        self._available: set[str] = set()
        self._leaving: set[str] = set()
        self._wanted: set[str] = set()
        self._changed: dict[str, None] = {}
        self._old: dict[str, None] = {}
        self._facts: dict[str, PodFacts] = {}
        self._checks_all = True
        self._is_rolling = False

    # What happens to the controller.

    def change(self, change: ControllerChange) -> None:
        before = self.plan.templates[self.template]
        super().change(change)
        if self.plan.templates[self.template] == before:
            return
        self._facts.clear()
        self._old = dict.fromkeys(each for each in self._pods if each not in self._leaving)
        self._checks_all = True
        self._is_rolling = True
        self.note("rollout started")

    def node_changed(self, name: str) -> None:
        """Store that a node was added, changed or removed; the next `sync` checks it."""
        self._changed[name] = None

    # What happens to its pods.

    def pod_created(self, pod: SimulatedPod) -> None:
        self._pods[self._node_of[pod.ordinal]] = pod

    def pod_available(self, pod: SimulatedPod) -> None:
        node = self._node_of.get(pod.ordinal)
        if node is not None and node not in self._leaving:
            self._available.add(node)

    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        node = self._node_of.get(pod.ordinal)
        if node is None or node in self._leaving:
            return False
        self._mark_leaving(node)
        return True

    def _mark_leaving(self, node: str) -> None:
        self._leaving.add(node)
        self._available.discard(node)
        self._old.pop(node, None)

    def pod_ended(self, pod: SimulatedPod) -> None:
        node = self._node_of.pop(pod.ordinal)
        del self._pods[node]
        self._leaving.discard(node)
        self._changed[node] = None

    def remaining(self) -> Iterable[SimulatedPod]:
        pods = (pod for each, pod in self._pods.items() if each not in self._leaving)
        return sorted(pods, key=lambda pod: pod.number)

    # What it does.

    def sync(self, world: ClusterView) -> list[Command]:
        commands: list[Command] = []
        pods: list[NewPod] = []
        for name in self._nodes_to_check(world):
            node, pod = world.nodes.get(name), self._pods.get(name)
            is_wanted = node is not None and should_run(self._template_facts, node)
            (self._wanted.add if is_wanted else self._wanted.discard)(name)
            if pod is None:
                if node is not None and is_wanted:
                    pods.append(self._new_pod(node))
            elif name not in self._leaving and not self._stays(pod, node):
                commands += self._delete(name)
        commands += self._update(len(pods))
        if pods:
            commands.append(CreatePods(tuple(pods), controller=self.plan.index))
        return commands

    def _nodes_to_check(self, world: ClusterView) -> dict[str, None]:
        """Return the nodes that changed, in order; all nodes after a change of the template."""
        changed, self._changed = self._changed, {}
        if self._checks_all:
            self._checks_all = False
            changed = dict.fromkeys(world.nodes) | changed
        return changed

    @property
    def _template_facts(self) -> PodFacts:
        return self.plan.templates[self.template].facts

    def _stays(self, pod: SimulatedPod, node: NodeFacts | None) -> bool:
        """Whether a pod is not to be deleted. node: None if it was removed."""
        if node is None:
            # The removal of a node ends the pods on it; a pending pod would never fit anywhere.
            return pod.state is not LifeState.PENDING
        # A weaker condition than `should_run`: a NoSchedule taint keeps new pods away, and deletes
        # none.
        return may_continue(self._template_facts, node)

    def _new_pod(self, node: NodeFacts) -> NewPod:
        number = self.created_pods
        named = self.plan.pod_on_node(self.template, node, number)
        assert named is not None, f"{self.subject} does not run on {node.name}"
        name, facts = named
        self._node_of[number] = node.name
        # Equal facts are one object, as classes are found by identity.
        facts = self._facts.setdefault(node.name, facts)
        return self.new_pod(name, facts, self.plan.templates[self.template].lifecycle, number)

    def _delete(self, node: str) -> list[Command]:
        self._mark_leaving(node)
        return [end_pod(self._pods[node])]

    def _update(self, created: int) -> list[Command]:
        """Delete pods with an old template (rollingUpdate).

        All of them that are not available; of the others as many as `maxUnavailable` allows: that
        many nodes may have no available pod. created: number of pods that this `sync` creates.
        """
        if self.plan.updates_on_delete or not self._is_rolling:
            return []
        max_unavailable = self.plan.max_unavailable.of(len(self._wanted), rounds_up=True) or 1
        unhealthy = [each for each in self._old if each not in self._available]
        healthy = [each for each in self._old if each in self._available]
        unavailable = len(self._pods) - len(self._available) + created
        commands: list[Command] = []
        for node in [*unhealthy, *healthy[: max(0, max_unavailable - unavailable)]]:
            commands += self._delete(node)
        if not self._old and not unavailable and not commands:
            self._is_rolling = False
            self.note("rollout finished")
        return commands

    def validate(self) -> None:
        assert len(self._node_of) == len(self._pods), f"{self.subject} waits for pods"
        for number, node in self._node_of.items():
            assert self._pods[node].ordinal == number, f"{node} has another pod than it should"
        assert self._available <= self._pods.keys() - self._leaving, "pods that left count"

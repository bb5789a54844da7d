"""ReplicaSet: a number of pods of one template (upstream pkg/controller/replicaset)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from roadstead.simulator.component import ClusterView, Command, CreatePods, EndPod, NewPod
from roadstead.simulator.controllers.core import ControllerCore, end_pod
from roadstead.simulator.controllers.deletion_order import first_to_delete
from roadstead.simulator.scenario import ControllerPlan
from roadstead.simulator.simulated_pods import SimulatedPod


class ReplicaSetState:
    """The pods of one template.

    name_prefix: of the pods' names. template: index of its template. order: number among the sets
    of its Deployment, by creation. replicas: how many pods are wanted. active: pods that neither
    terminate nor have ended, by UID. available: UIDs of active pods that have run for
    `min_ready_us`. desired_replicas, max_replicas: replicas of the Deployment, without and with the
    surge, when the set was scaled last (upstream's annotations).
    """

    __slots__ = (
        "active",
        "available",
        "desired_replicas",
        "max_replicas",
        "name_prefix",
        "order",
        "replicas",
        "template",
    )

    def __init__(self, name_prefix: str, template: int, order: int = 0) -> None:
        self.name_prefix, self.template, self.order = name_prefix, template, order
        self.replicas = self.desired_replicas = self.max_replicas = 0
        self.active: dict[str, SimulatedPod] = {}
        self.available: set[str] = set()

    def pop_excess(self, related: Iterable[SimulatedPod], now_us: int) -> list[SimulatedPod]:
        """Remove and return the pods that exceed the replicas.

        related: see `first_to_delete`; it is read only if there are such pods.
        """
        excess = len(self.active) - self.replicas
        if excess <= 0:
            return []
        chosen = first_to_delete(self.active.values(), related, excess, now_us)
        for pod in chosen:
            self.remove(pod.uid)
        return chosen

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        del self.active[uid]
        self.available.discard(uid)


class ReplicaSetsCore(ControllerCore):
    """A controller whose pods belong to ReplicaSets.

    sets: by the prefix of their pods' names, in the order of their creation.
    """

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self.sets: dict[str, ReplicaSetState] = {}
        # By UID of an active pod.
        self._set_of: dict[str, ReplicaSetState] = {}
        # By ordinal of a pod whose creation is a command that is not carried out yet.
        self._creating: dict[int, ReplicaSetState] = {}

    def pod_created(self, pod: SimulatedPod) -> None:
        replica_set = self._set_of[pod.uid] = self._creating.pop(pod.ordinal)
        replica_set.active[pod.uid] = pod

    def pod_available(self, pod: SimulatedPod) -> None:
        replica_set = self._set_of.get(pod.uid)
        if replica_set is not None:
            replica_set.available.add(pod.uid)

    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        replica_set = self._set_of.pop(pod.uid, None)
        if replica_set is not None:
            replica_set.remove(pod.uid)
        return replica_set is not None

    def remaining(self) -> Iterable[SimulatedPod]:
        pods = [pod for each in self.sets.values() for pod in each.active.values()]
        return sorted(pods, key=lambda pod: pod.number)

    def set_for(self, template: int) -> ReplicaSetState:
        """Return the set of a template; it is created if no equal template had one before."""
        name_prefix = self.plan.templates[template].name_prefix
        replica_set = self.sets.get(name_prefix)
        if replica_set is None:
            replica_set = self.sets[name_prefix] = ReplicaSetState(
                name_prefix, template, len(self.sets)
            )
        return replica_set

    def remove_excess(self, replica_set: ReplicaSetState, now_us: int) -> list[EndPod]:
        """Return the deletions of the pods that exceed a set's replicas."""
        related = (pod for each in self.sets.values() for pod in each.active.values())
        chosen = replica_set.pop_excess(related, now_us)
        for pod in chosen:
            del self._set_of[pod.uid]
        return [end_pod(pod) for pod in chosen]

    def create_missing(self, replica_set: ReplicaSetState) -> list[Command]:
        """Return the creation of the pods that are missing to a set's replicas."""
        missing = replica_set.replicas - len(replica_set.active)
        if missing <= 0:
            return []
        pods = tuple(self._new_pod(replica_set) for _ in range(missing))
        return [CreatePods(pods, controller=self.plan.index)]

    def _new_pod(self, replica_set: ReplicaSetState) -> NewPod:
        number = self.created_pods
        name, facts = self.plan.pod(replica_set.template, number)
        self._creating[number] = replica_set
        lifecycle = self.plan.templates[replica_set.template].lifecycle
        return self.new_pod(name, facts, lifecycle, number)

    def validate(self) -> None:
        assert not self._creating, f"{self.subject} waits for pods that it creates"
        owned = {uid: each for each in self.sets.values() for uid in each.active}
        assert owned == self._set_of, f"{self.subject} has pods of no ReplicaSet"
        for each in self.sets.values():
            assert each.available <= each.active.keys(), f"{each.name_prefix} counts pods that left"


_ONLY: Final = 0
"""Index of the template from which a ReplicaSet creates pods: it has no rollouts."""


class ReplicaSetCore(ReplicaSetsCore):
    """A ReplicaSet without a Deployment."""

    def sync(self, world: ClusterView) -> list[Command]:
        replica_set = self.set_for(_ONLY)
        replica_set.replicas = self.replicas
        return [*self.remove_excess(replica_set, world.now_us), *self.create_missing(replica_set)]

"""ReplicaSet: so many pods of one template (upstream pkg/controller/replicaset)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from roadstead.simulator.component import Command, CreatePods, EndPod, NewPod, World
from roadstead.simulator.controllers.core import ControllerCore, end_pod
from roadstead.simulator.controllers.deletion_order import first_to_delete
from roadstead.simulator.scenario import ControllerPlan
from roadstead.simulator.simulated_pods import SimulatedPod


class ReplicaSet:
    """The pods of one template.

    base: prefix of the pods' names. template: index of its template. order: among the sets of its
    Deployment, by creation. replicas: how many pods are wanted. active: pods that neither terminate
    nor have ended, by UID. available: UIDs of those that have run long enough. desired, most:
    number of replicas of the Deployment and its greatest number of pods when the set was scaled
    last (upstream's annotations).
    """

    __slots__ = (
        "active",
        "available",
        "base",
        "desired",
        "most",
        "order",
        "replicas",
        "template",
    )

    def __init__(self, base: str, template: int, order: int = 0) -> None:
        self.base, self.template, self.order = base, template, order
        self.replicas = self.desired = self.most = 0
        self.active: dict[str, SimulatedPod] = {}
        self.available: set[str] = set()

    def pop_excess(self, related: Iterable[SimulatedPod], now_us: int) -> list[SimulatedPod]:
        """Return pods that are too many, which are active no more.

        related: see `first_to_delete`; read only if there are too many.
        """
        excess = len(self.active) - self.replicas
        if excess <= 0:
            return []
        chosen = first_to_delete(self.active.values(), related, excess, now_us)
        for life in chosen:
            self.remove(life.uid)
        return chosen

    def remove(self, uid: str) -> None:
        """Count a pod out."""
        del self.active[uid]
        self.available.discard(uid)


class SetsOfPods(ControllerCore):
    """A controller whose pods belong to ReplicaSets.

    sets: by the prefix of their pods' names, in the order of their creation.
    """

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self.sets: dict[str, ReplicaSet] = {}
        self._set_of: dict[str, ReplicaSet] = {}
        self._creating: dict[int, ReplicaSet] = {}

    def pod_created(self, life: SimulatedPod) -> None:
        owner = self._set_of[life.uid] = self._creating.pop(life.ordinal)
        owner.active[life.uid] = life

    def pod_available(self, life: SimulatedPod) -> None:
        owner = self._set_of.get(life.uid)
        if owner is not None:
            owner.available.add(life.uid)

    def pod_leaves(self, life: SimulatedPod, now_us: int) -> bool:
        owner = self._set_of.pop(life.uid, None)
        if owner is not None:
            owner.remove(life.uid)
        return owner is not None

    def remaining(self) -> Iterable[SimulatedPod]:
        lives = [life for each in self.sets.values() for life in each.active.values()]
        return sorted(lives, key=lambda life: life.number)

    def set_for(self, template: int) -> ReplicaSet:
        """Return the set of a template; a template that was there before has the same one."""
        base = self.plan.templates[template].base
        found = self.sets.get(base)
        if found is None:
            found = self.sets[base] = ReplicaSet(base, template, len(self.sets))
        return found

    def remove_excess(self, owner: ReplicaSet, now_us: int) -> list[EndPod]:
        """Return the deletions of pods that a set has too many."""
        related = (life for each in self.sets.values() for life in each.active.values())
        chosen = owner.pop_excess(related, now_us)
        for life in chosen:
            del self._set_of[life.uid]
        return [end_pod(life) for life in chosen]

    def create_missing(self, owner: ReplicaSet) -> list[Command]:
        """Return the creation of the pods that a set lacks."""
        missing = owner.replicas - len(owner.active)
        if missing <= 0:
            return []
        pods = tuple(self._make(owner) for _ in range(missing))
        return [CreatePods(pods, controller=self.plan.index)]

    def _make(self, owner: ReplicaSet) -> NewPod:
        number = self.created_pods
        name, facts = self.plan.pod(owner.template, number)
        self._creating[number] = owner
        lifecycle = self.plan.templates[owner.template].lifecycle
        return self.new_pod(name, facts, lifecycle, number)

    def validate(self) -> None:
        assert not self._creating, f"{self.subject} waits for pods that it asked for"
        owned = {uid: each for each in self.sets.values() for uid in each.active}
        assert owned == self._set_of, f"{self.subject} has pods of no ReplicaSet"
        for each in self.sets.values():
            assert each.available <= each.active.keys(), f"{each.base} counts pods that left"


_ONLY: Final = 0
"""Index of the template from which a ReplicaSet creates pods: it has no rollouts."""


class ReplicaSetCore(SetsOfPods):
    """A ReplicaSet without a Deployment."""

    def sync(self, world: World) -> list[Command]:
        owner = self.set_for(_ONLY)
        owner.replicas = self.replicas
        return [*self.remove_excess(owner, world.now_us), *self.create_missing(owner)]

"""Deployment: a ReplicaSet for each template, and the rollout from old ones to the new one.

Upstream: pkg/controller/deployment (sync.go, rolling.go, recreate.go). Upstream makes one step in
each sync; here, where no time passes between them, one `sync` makes all steps that are possible.
"""

from __future__ import annotations

from roadstead.simulator.component import ClusterView, Command
from roadstead.simulator.controllers.replica_set import ReplicaSetsCore, ReplicaSetState
from roadstead.simulator.controllers.rolling import new_set_size, proportional_sizes, resolve_bounds
from roadstead.simulator.scenario import ControllerChange, ControllerPlan
from roadstead.simulator.simulated_pods import SimulatedPod


class DeploymentCore(ReplicaSetsCore):
    """A Deployment.

    `_commands`: of the current `sync`, at `_now_us`. `_leaving`: with the strategy Recreate, UIDs
    of pods that terminate.
    """

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self._commands: list[Command] = []
        self._leaving: dict[str, None] = {}
        self._is_rolling = False
        self._now_us = 0

    def change(self, change: ControllerChange) -> None:
        before = self.plan.templates[self.template].name_prefix
        super().change(change)
        name_prefix = self.plan.templates[self.template].name_prefix
        if name_prefix != before:
            self._is_rolling = True
            self.note("rollout started", name_prefix)

    def pod_ended(self, pod: SimulatedPod) -> None:
        self._leaving.pop(pod.uid, None)

    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        if self.plan.recreates:
            self._leaving[pod.uid] = None
        return super().pod_leaves(pod, now_us)

    def sync(self, world: ClusterView) -> list[Command]:
        self._now_us = world.now_us
        if self._was_rescaled():
            self._scale_in_proportion()
        if self.plan.recreates:
            self._recreate()
        else:
            # Each step may allow the next one; no time passes between them.
            while self._grow_new() or self._shrink_old():
                pass
        for each in self.sets.values():
            self._commands += self.create_missing(each)
        self._note_if_finished()
        commands, self._commands = self._commands, []
        return commands

    # Sizes.

    @property
    def _bounds(self) -> tuple[int, int]:
        """Numbers of pods that may be above and below the replicas."""
        if self.plan.recreates:
            return 0, 0
        return resolve_bounds(self.plan.max_surge, self.plan.max_unavailable, self.replicas)

    def _old_sets(self) -> list[ReplicaSetState]:
        """Return the sets of other templates that have replicas, the oldest first."""
        new = self.plan.templates[self.template].name_prefix
        return [each for each in self.sets.values() if each.name_prefix != new and each.replicas]

    def _total(self) -> int:
        return sum(each.replicas for each in self.sets.values())

    def _scale(self, replica_set: ReplicaSetState, replicas: int) -> None:
        """Scale a set, and store the replicas of the Deployment in it.

        As in upstream's annotations desired-replicas and max-replicas, from which `_was_rescaled`
        and `proportional_sizes` read later how the Deployment has changed.
        """
        replica_set.replicas = replicas
        replica_set.desired_replicas = self.replicas
        replica_set.max_replicas = self.replicas + self._bounds[0]
        deletions = self.remove_excess(replica_set, self._now_us)
        if self.plan.recreates:
            self._leaving |= dict.fromkeys(each.uid for each in deletions)
        self._commands += deletions

    # Scaling of the Deployment (sync.go).

    def _was_rescaled(self) -> bool:
        """Whether the Deployment's replicas changed since a set was scaled (isScalingEvent)."""
        return any(
            each.replicas and each.desired_replicas != self.replicas for each in self.sets.values()
        )

    def _scale_in_proportion(self) -> None:
        """Scale the sets; in a rollout all of them, which keeps their proportions (scale).

        Sets that keep their size are scaled, too: `_scale` stores the Deployment's new replicas in
        them, after which `_was_rescaled` is false.
        """
        active = [each for each in self.sets.values() if each.replicas]
        new = self.sets.get(self.plan.templates[self.template].name_prefix)
        if len(active) == 1:
            self._scale(active[0], self.replicas)
        elif new is not None and self._is_complete(new) and new.desired_replicas == self.replicas:
            # The new set has its size already: the old ones are left over from the rollout.
            for each in self._old_sets():
                self._scale(each, 0)
        elif not self.plan.recreates:
            sizes = proportional_sizes(active, self.replicas, self._bounds[0])
            for each, size in zip(active, sizes, strict=True):
                self._scale(each, size)

    def _is_complete(self, new: ReplicaSetState) -> bool:
        """Whether all replicas are available pods of the new template."""
        return new.replicas == self.replicas == len(new.available)

    # Rolling updates (rolling.go).

    def _grow_new(self) -> bool:
        """Scale the new set up as far as the surge allows; return whether its size changed."""
        new = self.set_for(self.template)
        if new.replicas == self.replicas:
            return False
        if new.replicas > self.replicas:
            size = self.replicas
        else:
            size = new_set_size(new.replicas, self._total(), self.replicas, self._bounds[0])
        if size == new.replicas:
            return False
        self._scale(new, size)
        return True

    def _shrink_old(self) -> bool:
        """Scale old sets down as far as pods may be missing; return whether a size changed."""
        old = self._old_sets()
        if not old:
            return False
        new = self.set_for(self.template)
        min_available = self.replicas - self._bounds[1]
        # Pods of the new set that are not available yet do not allow the removal of old ones.
        allowed = self._total() - min_available - (new.replicas - len(new.available))
        if allowed <= 0:
            return False
        available = sum(len(each.available) for each in self.sets.values())
        removed = self._scale_down(old, allowed, only_unavailable=True)
        removed += self._scale_down(old, available - min_available, only_unavailable=False)
        return removed > 0

    def _scale_down(
        self, old: list[ReplicaSetState], allowed: int, *, only_unavailable: bool
    ) -> int:
        """Scale old sets down by at most `allowed` pods; return by how many.

        only_unavailable: each set by at most its number of pods that are not available.
        """
        removed = 0
        for each in old:
            removable = each.replicas - (len(each.available) if only_unavailable else 0)
            count = min(allowed - removed, removable)
            if count > 0:
                self._scale(each, each.replicas - count)
                removed += count
        return removed

    # The strategy Recreate (recreate.go).

    def _recreate(self) -> None:
        """Delete all old pods; when all are gone, create the new ones."""
        new = self.set_for(self.template)
        for each in self._old_sets():
            self._scale(each, 0)
        has_old = any(each.active for each in self.sets.values() if each is not new)
        if not has_old and not self._leaving and new.replicas != self.replicas:
            self._scale(new, self.replicas)

    def _note_if_finished(self) -> None:
        new = self.set_for(self.template)
        if self._is_rolling and self._is_complete(new) and not self._old_sets():
            self._is_rolling = False
            self.note("rollout finished", new.name_prefix)

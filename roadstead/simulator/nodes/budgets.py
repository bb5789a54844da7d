"""Budgets: how many disruptions each PodDisruptionBudget allows at present.

Upstream: pkg/controller/disruption/disruption.go, 1.34 (getExpectedPodCount, countHealthyPods,
updatePdbStatus), and the checks of pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import PodFacts
from roadstead.simulator.scenario import (
    NEVER_US,
    BudgetPlan,
    ControllerPlan,
    InitialPod,
)
from roadstead.simulator.simulated_pods import LifeState, SimulatedPod

UNSCALED: Final = frozenset({"DaemonSet", "Job"})
"""Controllers without a number of replicas that upstream can read."""


def replicas_at(plan: ControllerPlan, now_us: int) -> int | None:
    """Return the replicas that a controller shall have; None if it does not exist at the time."""
    if now_us < plan.created_us or (plan.deleted_us != NEVER_US and now_us >= plan.deleted_us):
        return None
    replicas = plan.replicas
    for change in plan.changes:
        if change.at_us <= now_us and change.replicas is not None:
            replicas = change.replicas
    return replicas


@dataclass(slots=True)
class _Budget:
    """A budget, its controllers, and its healthy pods.

    initial: number of its pods at the start that have an owner, which is no controller of the
    scenario. is_unscaled: one of these owners has no replicas. current: as it was when it was last
    recounted.
    """

    plan: BudgetPlan
    controllers: tuple[ControllerPlan, ...]
    initial: int
    is_unscaled: bool
    current: DisruptionBudget
    healthy: dict[str, None] = field(default_factory=dict)

    def allowed(self, now_us: int) -> int:
        """Return how many disruptions are allowed."""
        desired = self.desired(now_us)
        return 0 if desired is None else max(0, len(self.healthy) - desired)

    def desired(self, now_us: int) -> int | None:
        """Return how many pods shall be healthy; None if no disruption is allowed in any case."""
        least, most_missing = self.plan.min_available, self.plan.max_unavailable
        if most_missing is None and least is not None and least.basis_points is None:
            return least.count
        expected = self._expected(now_us)
        # As upstream, pods without a controller that has replicas are not expected.
        if not expected or (most_missing is None and least is None):
            return None
        if most_missing is not None:
            return max(0, expected - most_missing.of(expected, rounds_up=True))
        assert least is not None
        return least.of(expected, rounds_up=True)

    def _expected(self, now_us: int) -> int:
        found = [(each, replicas_at(each, now_us)) for each in self.controllers]
        scales = [scale for _, scale in found if scale is not None]
        has_unscaled = any(each.kind in UNSCALED for each, scale in found if scale is not None)
        if self.is_unscaled or has_unscaled:
            return 0
        return sum(scales) + self.initial


class Budgets:
    """All budgets of a scenario, and the pods that count as healthy for them.

    version: changes whenever a pod begins or ceases to count.
    """

    def __init__(
        self,
        plans: Sequence[BudgetPlan],
        controllers: Sequence[ControllerPlan] = (),
        pods: Iterable[InitialPod] = (),
    ) -> None:
        initial = list(pods)
        self._budgets = [_budget(plan, controllers, initial) for plan in plans]
        self._of_pods: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[_Budget, ...]] = {}
        self._touched: dict[int, _Budget] = {}
        self._is_counted = False
        self.version = 0

    def change_times_us(self) -> Iterator[int]:
        """Yield the times at which the numbers change without a change of pods."""
        for plan in {id(each): each for one in self._budgets for each in one.controllers}.values():
            yield plan.created_us
            yield from (each.at_us for each in plan.changes if each.replicas is not None)
            if plan.deleted_us != NEVER_US:
                yield plan.deleted_us

    def count(self, life: SimulatedPod, *, is_node_ready: bool) -> None:
        """Count a pod as healthy if it runs on a node that is ready, else as not healthy."""
        is_healthy = is_node_ready and life.state is LifeState.RUNNING
        for budget in self._of(life.facts):
            if is_healthy == (life.uid in budget.healthy):
                continue
            self.version += 1
            self._touched[id(budget)] = budget
            if is_healthy:
                budget.healthy[life.uid] = None
            else:
                del budget.healthy[life.uid]

    def refusal(self, life: SimulatedPod, now_us: int) -> str:
        """Return why the Eviction API refuses to evict a pod; "" if it does not.

        As upstream, budgets guard running pods only, and no pod can have two of them.
        """
        if life.state is not LifeState.RUNNING:
            return ""
        budgets = self._of(life.facts)
        if len(budgets) > 1:
            return f"{len(budgets)} budgets select it, and the Eviction API supports one"
        for budget in budgets:
            healthy, desired = len(budget.healthy), budget.desired(now_us)
            # By upstream's IfHealthyBudget, the default policy for unhealthy pods.
            if life.uid not in budget.healthy and desired and healthy >= desired:
                return ""
            if not budget.allowed(now_us):
                name = f"{budget.plan.namespace}/{budget.plan.name}"
                wanted = "no disruption" if desired is None else f"{desired} healthy pods"
                return f"budget {name} needs {wanted} and has {healthy}"
        return ""

    def evicted(self, life: SimulatedPod) -> None:
        """Count a pod whose eviction is under way as not healthy."""
        self.count(life, is_node_ready=False)

    def recount(
        self, now_us: int, *, is_whole: bool = False
    ) -> tuple[DisruptionBudget, ...] | None:
        """Return all budgets if one allows another number now, and the first time, else None.

        is_whole: numbers of replicas may have changed, too.
        """
        is_changed, self._is_counted = not self._is_counted, True
        for budget in self._budgets if is_whole else self._touched.values():
            allowed = budget.allowed(now_us)
            if allowed != budget.current.disruptions_allowed:
                budget.current = replace(budget.current, disruptions_allowed=allowed)
                is_changed = True
        self._touched.clear()
        return tuple(each.current for each in self._budgets) if is_changed else None

    def _of(self, facts: PodFacts) -> tuple[_Budget, ...]:
        if not self._budgets:
            return ()
        key = facts.namespace, facts.labels
        found = self._of_pods.get(key)
        if found is None:
            found = tuple(each for each in self._budgets if _selects(each.plan, facts))
            self._of_pods[key] = found
        return found


def _budget(
    plan: BudgetPlan, controllers: Sequence[ControllerPlan], pods: Iterable[InitialPod]
) -> _Budget:
    mine = [
        each for each in controllers if any(_selects(plan, one.facts) for one in each.templates)
    ]
    owners = [each.facts.owner for each in pods if each.facts.owner and _selects(plan, each.facts)]
    is_unscaled = any(each.kind in UNSCALED for each in owners)
    current = DisruptionBudget(plan.namespace, plan.name, plan.selector)
    return _Budget(plan, tuple(mine), len(owners), is_unscaled, current)


def _selects(plan: BudgetPlan, facts: PodFacts) -> bool:
    """Whether a budget selects a pod; one with an empty selector selects all of its namespace."""
    return (
        facts.namespace == plan.namespace
        and plan.selector is not None
        and plan.selector.matches(dict(facts.labels))
    )

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
from roadstead.simulator.scenario import BudgetPlan, ControllerPlan, InitialPod
from roadstead.simulator.simulated_pods import LifeState, SimulatedPod
from roadstead.simulator.times import NEVER_US

UNSCALED: Final = frozenset({"DaemonSet", "Job"})
"""Controllers without a subresource `scale`, from which upstream reads the number of replicas."""

MAX_CACHED_LABELS: Final = 4096
"""Maximum number of distinct labels whose budgets are cached, so that memory is bounded."""


def replicas_at(plan: ControllerPlan, now_us: int) -> int | None:
    """Return the wanted replicas of a controller; None if it does not exist at the time."""
    if now_us < plan.created_us or (plan.deleted_us != NEVER_US and now_us >= plan.deleted_us):
        return None
    replicas = plan.replicas
    for change in plan.changes:
        if change.at_us <= now_us and change.replicas is not None:
            replicas = change.replicas
    return replicas


@dataclass(slots=True)
class _Budget:
    """A budget, the controllers whose pods it selects, and its healthy pods.

    initial_pods: number of selected pods of the manifests that have an owner; each counts as one
    replica. is_unscaled: one of these owners is UNSCALED. current: the result of the last recount.
    healthy: by UID. A Share with `basis_points` is a percentage, without them a number (`count`).
    """

    plan: BudgetPlan
    controllers: tuple[ControllerPlan, ...]
    initial_pods: int
    is_unscaled: bool
    current: DisruptionBudget
    healthy: dict[str, None] = field(default_factory=dict)

    def allowed(self, now_us: int) -> int:
        """Return how many disruptions are allowed."""
        desired = self.desired(now_us)
        return 0 if desired is None else max(0, len(self.healthy) - desired)

    def desired(self, now_us: int) -> int | None:
        """Return the wanted number of healthy pods; None if no disruption is ever allowed."""
        min_available, max_unavailable = self.plan.min_available, self.plan.max_unavailable
        if (
            max_unavailable is None
            and min_available is not None
            and min_available.basis_points is None
        ):
            return min_available.count
        expected = self._expected(now_us)
        # As upstream, only controllers with replicas have an expected number of pods. Where no such
        # number is known, maxUnavailable and percentages allow no disruption.
        if not expected or (max_unavailable is None and min_available is None):
            return None
        if max_unavailable is not None:
            return max(0, expected - max_unavailable.of(expected, rounds_up=True))
        assert min_available is not None
        return min_available.of(expected, rounds_up=True)

    def _expected(self, now_us: int) -> int:
        """Return the wanted replicas of all controllers; 0 if one has no such number."""
        replicas_of = [(each, replicas_at(each, now_us)) for each in self.controllers]
        scales = [scale for _, scale in replicas_of if scale is not None]
        has_unscaled = any(
            each.kind in UNSCALED for each, scale in replicas_of if scale is not None
        )
        if self.is_unscaled or has_unscaled:
            return 0
        return sum(scales) + self.initial_pods


class Budgets:
    """All budgets of a scenario, and the pods that count as healthy for them.

    version: increased whenever a pod becomes healthy or unhealthy.
    """

    def __init__(
        self,
        plans: Sequence[BudgetPlan],
        controllers: Sequence[ControllerPlan] = (),
        pods: Iterable[InitialPod] = (),
    ) -> None:
        initial_pods = list(pods)
        self._budgets = [_budget(plan, controllers, initial_pods) for plan in plans]
        # The budgets that select pods, by namespace and labels.
        self._of_pods: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[_Budget, ...]] = {}
        # Budgets to recount, by id.
        self._changed: dict[int, _Budget] = {}
        self._was_recounted = False
        self.version = 0

    def change_times_us(self) -> Iterator[int]:
        """Yield the times at which wanted replicas change, without a change of pods."""
        # Once for each controller, though several budgets may select its pods.
        plans = {id(plan): plan for budget in self._budgets for plan in budget.controllers}
        for plan in plans.values():
            yield plan.created_us
            yield from (each.at_us for each in plan.changes if each.replicas is not None)
            if plan.deleted_us != NEVER_US:
                yield plan.deleted_us

    def count(self, pod: SimulatedPod, *, is_node_ready: bool) -> None:
        """Count a pod as healthy if it runs on a node that is ready, else as not healthy."""
        is_healthy = is_node_ready and pod.state is LifeState.RUNNING
        for budget in self._selecting(pod.facts):
            if is_healthy == (pod.uid in budget.healthy):
                continue
            self.version += 1
            self._changed[id(budget)] = budget
            if is_healthy:
                budget.healthy[pod.uid] = None
            else:
                del budget.healthy[pod.uid]

    def refusal(self, pod: SimulatedPod, now_us: int) -> str:
        """Return why the Eviction API refuses to evict a pod; "" if it does not.

        As upstream, budgets protect running pods only, and a pod with two budgets is refused.
        """
        if pod.state is not LifeState.RUNNING:
            return ""
        budgets = self._selecting(pod.facts)
        if len(budgets) > 1:
            return f"{len(budgets)} budgets select it, and the Eviction API supports one"
        for budget in budgets:
            healthy, desired = len(budget.healthy), budget.desired(now_us)
            # Upstream's IfHealthyBudget, the default unhealthyPodEvictionPolicy: a pod that is not
            # healthy may be evicted if enough others are.
            if pod.uid not in budget.healthy and desired and healthy >= desired:
                return ""
            if not budget.allowed(now_us):
                name = f"{budget.plan.namespace}/{budget.plan.name}"
                wanted = "no disruption" if desired is None else f"{desired} healthy pods"
                return f"budget {name} needs {wanted} and has {healthy}"
        return ""

    def count_evicted(self, pod: SimulatedPod) -> None:
        """Count a pod whose eviction is under way as not healthy."""
        self.count(pod, is_node_ready=False)

    def recount(
        self, now_us: int, *, with_replicas: bool = False
    ) -> tuple[DisruptionBudget, ...] | None:
        """Return all budgets if one allows another number now, or at the first call; else None.

        with_replicas: numbers of replicas may have changed, so that all are recounted.
        """
        is_changed, self._was_recounted = not self._was_recounted, True
        for budget in self._budgets if with_replicas else self._changed.values():
            allowed = budget.allowed(now_us)
            if allowed != budget.current.disruptions_allowed:
                budget.current = replace(budget.current, disruptions_allowed=allowed)
                is_changed = True
        self._changed.clear()
        return tuple(each.current for each in self._budgets) if is_changed else None

    def _selecting(self, facts: PodFacts) -> tuple[_Budget, ...]:
        if not self._budgets:
            return ()
        key = facts.namespace, facts.labels
        budgets = self._of_pods.get(key)
        if budgets is None:
            budgets = tuple(each for each in self._budgets if _selects(each.plan, facts))
            if len(self._of_pods) >= MAX_CACHED_LABELS:
                self._of_pods.clear()
            self._of_pods[key] = budgets
        return budgets


def _budget(
    plan: BudgetPlan, controllers: Sequence[ControllerPlan], pods: Iterable[InitialPod]
) -> _Budget:
    selected_controllers = [
        each
        for each in controllers
        if any(_selects(plan, template.facts) for template in each.templates)
    ]
    owners = [each.facts.owner for each in pods if each.facts.owner and _selects(plan, each.facts)]
    is_unscaled = any(each.kind in UNSCALED for each in owners)
    current = DisruptionBudget(plan.namespace, plan.name, plan.selector)
    return _Budget(plan, tuple(selected_controllers), len(owners), is_unscaled, current)


def _selects(plan: BudgetPlan, facts: PodFacts) -> bool:
    """Whether a budget selects a pod; an empty selector selects all pods of the namespace."""
    return (
        facts.namespace == plan.namespace
        and plan.selector is not None
        and plan.selector.matches(dict(facts.labels))
    )

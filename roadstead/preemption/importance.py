"""The order of pods by importance, and the pods whose eviction violates a disruption budget.

A `Resident` is one pod on a node.
Upstream: pkg/scheduler/util/utils.go (MoreImportantPod) and
plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from roadstead.facts.disruption import DisruptionBudget
from roadstead.nodes.residents import Resident


def by_importance(pods: Iterable[Resident]) -> list[Resident]:
    """Sort pods: higher priority first, then earlier start, then the given order.

    A pod without a start time is last of its priority: upstream uses the current time for it.
    """
    return sorted(pods, key=lambda pod: (-pod.pod_class.facts.priority, start_order(pod.started_s)))


def start_order(started_s: float | None) -> float:
    return math.inf if started_s is None else started_s


def violations_of(pods: Sequence[Resident], budgets: Iterable[DisruptionBudget]) -> list[bool]:
    """Return whether each pod's eviction violates a budget, if evicted in this order: bool[pod].

    Each pod counts against the budgets that select it, unless it is already among their
    disruptedPods.
    """
    violates = [False] * len(pods)
    for budget in budgets:
        # As upstream, a budget without or with an empty selector selects nothing.
        if budget.selector is None or not budget.selector.requirements:
            continue
        allowed = budget.disruptions_allowed
        for index, pod in enumerate(pods):
            if _selects(budget, pod):
                allowed -= 1
                violates[index] |= allowed < 0
    return violates


def _selects(budget: DisruptionBudget, pod: Resident) -> bool:
    if pod.pod_class.facts.namespace != budget.namespace or not pod.pod_class.labels:
        return False
    assert budget.selector is not None
    name = pod.key.partition("/")[2]
    return name not in budget.disrupted_pods and budget.selector.matches(pod.pod_class.labels)

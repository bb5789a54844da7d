"""Which pods matter more, and whose loss a disruption budget forbids.

Upstream: pkg/scheduler/util/utils.go (MoreImportantPod) and
plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from roadstead.facts.disruption import DisruptionBudget
from roadstead.nodes.residents import Resident


def by_importance(pods: Iterable[Resident]) -> list[Resident]:
    """Higher priority first, then who has run for longer, then who came first.

    Upstream takes the present for the start of a pod that has none, which is later than all.
    """
    return sorted(pods, key=lambda pod: (-pod.info.facts.priority, started(pod.started_s)))


def started(started_s: float | None) -> float:
    return math.inf if started_s is None else started_s


def violate(pods: Sequence[Resident], budgets: Iterable[DisruptionBudget]) -> list[bool]:
    """Whether a budget misses each pod, were they to go in this order: bool[pod].

    Each pod uses up the budgets that select it; one that is disrupted already uses up nothing.
    """
    missed = [False] * len(pods)
    for budget in budgets:
        if budget.selector is None or not budget.selector.requirements:
            continue
        left = budget.disruptions_allowed
        for place, pod in enumerate(pods):
            if _selects(budget, pod):
                left -= 1
                missed[place] |= left < 0
    return missed


def _selects(budget: DisruptionBudget, pod: Resident) -> bool:
    if pod.info.facts.namespace != budget.namespace or not pod.info.labels:
        return False
    assert budget.selector is not None
    name = pod.key.partition("/")[2]
    return name not in budget.disrupted_pods and budget.selector.matches(pod.info.labels)

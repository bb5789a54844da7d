"""Disruption budgets: preemption prefers victims whose eviction violates none of them.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption (filterPodsWithPDBViolation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.facts.selectors import LabelSelector

if TYPE_CHECKING:
    from roadstead.protocol import objects


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget.

    selector: None matches nothing, and so does one without requirements.
    disruptions_allowed: how many more of its pods may be evicted. disrupted_pods: names of pods
    whose eviction is under way; they are not counted again.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    disruptions_allowed: int = 0
    disrupted_pods: tuple[str, ...] = ()


def compile_budgets(
    budgets: Iterable[objects.PodDisruptionBudget],
) -> tuple[DisruptionBudget, ...]:
    """Compile validated budgets, in order.

    A budget whose selector does not parse selects nothing, as upstream.
    """
    # Imported here: every actor imports this module, only for its facts; manifest models are large.
    from roadstead.facts.parse_selectors import SelectorError, parse_label_selector

    def selector_of(budget: objects.PodDisruptionBudget) -> LabelSelector | None:
        try:
            return parse_label_selector(budget.spec.selector)
        except SelectorError:
            return None

    return tuple(
        DisruptionBudget(
            each.metadata.namespace,
            each.metadata.name,
            selector_of(each),
            each.status.disruptions_allowed,
            tuple(sorted(each.status.disrupted_pods)),
        )
        for each in budgets
    )

"""Evictions: whom a pod may drive out, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import PodFacts
from roadstead.invariants.world import selects


@dataclass(slots=True)
class Evictions:
    """Pods by key, since an eviction names its preemptor so.

    Budgets are counted, not enforced: upstream goes beyond one where no other victims would do, and
    the journal does not say which others there were. Nor does a preemptor that waits at the end
    break a rule: a pod of higher priority may have taken the room.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _pods: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    _budgets: list[tuple[DisruptionBudget, int]] = field(default_factory=list)
    _preemptors: set[str] = field(default_factory=set)

    def begin(self, budgets: tuple[DisruptionBudget, ...]) -> None:
        """The budgets of a cluster."""
        self._budgets = [(each, each.disruptions_allowed) for each in budgets]

    def know(self, uid: str, key: str, facts: PodFacts) -> None:
        """A pod that may be a preemptor, as it is now."""
        self._pods.setdefault(key, {})[uid] = facts

    def evict(self, key: str, victim: PodFacts, preemptor: str) -> Iterator[str]:
        """I2: who drives a pod out has a higher priority, and may drive out at all."""
        self.counts["evictions"] += 1
        if self._is_beyond(key, victim):
            self.counts["beyond_budget"] += 1
        # Another pod of the same name may be there by now.
        known = list(self._pods.get(preemptor, {}).values())
        if not preemptor or not known:
            return
        self._preemptors.add(preemptor)
        if not any(each.priority > victim.priority for each in known):
            best = max(each.priority for each in known)
            yield f"priority {victim.priority}, evicted for {preemptor} of priority {best}"
        elif all(each.preemption_policy == "Never" for each in known):
            yield f"evicted for {preemptor}, which preempts never"

    def finish(self, waiting: set[str]) -> None:
        """waiting: UIDs of the pods that wait at the end."""
        unhelped = [key for key in self._preemptors if waiting & self._pods[key].keys()]
        self.counts["preemptors_waiting"] = len(unhelped)

    def _is_beyond(self, key: str, victim: PodFacts) -> bool:
        """Whether a budget that the victim counts for allowed no more; each is charged."""
        name, is_beyond = key.partition("/")[2], False
        for place, (budget, left) in enumerate(self._budgets):
            selector = budget.selector
            if (
                budget.namespace == victim.namespace
                and name not in budget.disrupted_pods
                and selector is not None
                and bool(selector.requirements)
                and selects(selector, dict(victim.labels))
            ):
                self._budgets[place] = budget, left - 1
                is_beyond |= left < 1
        return is_beyond

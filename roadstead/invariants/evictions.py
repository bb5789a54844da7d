"""Evictions: which pods may be evicted for which, and counts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import PodFacts
from roadstead.invariants.world import selects


@dataclass(slots=True)
class EvictionChecks:
    """Checks of evictions, and their counts.

    _pods: by key (namespace/name), then by UID: the record of an eviction has the preemptor's key.
    _budgets: each with the number of disruptions that it still allows. _preemptors: keys.

    Evictions beyond a budget are counted, not reported: upstream allows them if no other victims
    suffice, and the journal does not record the alternatives. Nor does a preemptor that waits at
    the end violate a rule: a pod of higher priority may have used the room.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _pods: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    _budgets: list[tuple[DisruptionBudget, int]] = field(default_factory=list)
    _preemptors: set[str] = field(default_factory=set)

    def begin(self, budgets: tuple[DisruptionBudget, ...]) -> None:
        """Set the budgets of the cluster."""
        self._budgets = [(each, each.disruptions_allowed) for each in budgets]

    def record_pod(self, uid: str, key: str, facts: PodFacts) -> None:
        """Add or update a pod that may be a preemptor."""
        self._pods.setdefault(key, {})[uid] = facts

    def evict(self, key: str, victim: PodFacts, preemptor: str) -> Iterator[str]:
        """I2: the preemptor has a higher priority, and its policy allows preemption."""
        self.counts["evictions"] += 1
        if self._is_beyond(key, victim):
            self.counts["beyond_budget"] += 1
        # There may be several pods of this name, one after another.
        preemptor_pods = list(self._pods.get(preemptor, {}).values())
        if not preemptor or not preemptor_pods:
            return
        self._preemptors.add(preemptor)
        if not any(each.priority > victim.priority for each in preemptor_pods):
            best = max(each.priority for each in preemptor_pods)
            yield f"priority {victim.priority}, evicted for {preemptor} of priority {best}"
        elif all(each.preemption_policy == "Never" for each in preemptor_pods):
            yield f"evicted for {preemptor}, which preempts never"

    def finish(self, waiting: set[str]) -> None:
        """Count the preemptors that wait at the end. waiting: UIDs of all pods that do."""
        still_waiting = [key for key in self._preemptors if waiting & self._pods[key].keys()]
        self.counts["preemptors_waiting"] = len(still_waiting)

    def _is_beyond(self, key: str, victim: PodFacts) -> bool:
        """Whether a budget that covers the victim was used up; charge each such budget."""
        name, is_beyond = key.partition("/")[2], False
        for index, (budget, left) in enumerate(self._budgets):
            selector = budget.selector
            if (
                budget.namespace == victim.namespace
                and name not in budget.disrupted_pods
                and selector is not None
                and bool(selector.requirements)
                and selects(selector, dict(victim.labels))
            ):
                self._budgets[index] = budget, left - 1
                is_beyond |= left < 1
        return is_beyond

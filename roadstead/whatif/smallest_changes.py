"""The smallest changes that admit a pod which the scheduler refuses, each proven by scheduling.

A change admits a pod if the scheduler places the pod with it; admission by the API server is not
meant. Its parts are the single changes in it, such as each toleration that it adds. Order: fewer
parts first; then tolerations, dropped restrictions, reduced requests, preemption; then the smaller
reduction, or the fewer evicted pods; then the text. Pairs of changes are tried only if no single
change but preemption admits the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from roadstead.facts.pod import Pod, PodFacts
from roadstead.report.fit_result import AdmittingChange, ChangeKind
from roadstead.report.result import PreemptedPod
from roadstead.whatif.changes import (
    Change,
    drops,
    reduced,
    reduction_text,
    reductions,
    tolerations,
    unit_of,
)
from roadstead.whatif.sandbox import Sandbox, without_preemption

RUNS_MAX: Final = 400
"""Maximum number of changes that are tried for one pod."""

PRIORITY_MAX: Final = 2**31 - 2
"""Maximum priority of a pod that a higher one, which fits an int32, can preempt."""

_RANK: Final[dict[ChangeKind, int]] = {"tolerate": 0, "drop": 1, "reduce": 2, "preempt": 3}


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """changes: those that admit the pod, smallest first. tried: how many changes were tried."""

    changes: tuple[AdmittingChange, ...]
    tried: int


def smallest_changes(sandbox: Sandbox, pod: Pod, runs_max: int = RUNS_MAX) -> FoundChanges:
    """Find the smallest changes with which a pod is placed; the sandbox is left as it was.

    pod: one that the scheduler refuses without preemption.
    """
    search = _ChangeSearch(sandbox, pod, runs_max)
    changes = list(search.singles()) or list(search.pairs())
    changes += search.preemption()
    changes.sort(key=_order)
    return FoundChanges(tuple(changes), search.tried)


def _order(change: AdmittingChange) -> tuple[int, list[int], float, int, str]:
    ranks = sorted(_RANK[each] for each in change.kinds)
    return change.parts, ranks, change.share, len(change.evicts), change.text


@dataclass(slots=True)
class _ChangeSearch:
    """Try changes of one pod. tried: number of tries so far, each of which schedules a copy.

    The `text` of a reduction is only the name of its resource.
    """

    sandbox: Sandbox
    pod: Pod
    runs_max: int
    tried: int = 0
    # Changes that do not admit the pod by themselves.
    failed: list[Change] = field(default_factory=list)

    def singles(self) -> Iterator[AdmittingChange]:
        """Try every change by itself; those that do not admit the pod remain for pairs."""
        facts, nodes = self.pod[1], self.sandbox.nodes.values()
        for change in (*tolerations(facts, nodes), *drops(facts), *reductions(facts)):
            admitting = self._admitted((change,))
            if admitting is None:
                self.failed.append(change)
            else:
                yield admitting

    def pairs(self) -> Iterator[AdmittingChange]:
        """Try pairs of changes, none of which admits the pod by itself."""
        for pair in combinations(self.failed, 2):
            if (admitting := self._admitted(pair)) is not None:
                yield admitting

    def preemption(self) -> Iterator[AdmittingChange]:
        """Try to evict pods: with the smallest priority that suffices.

        A pod that may not preempt is first allowed to, with its own priority.
        """
        facts = self.pod[1]
        is_disabled = facts.preemption_policy == "Never"
        if (
            is_disabled
            and (admitting := self._preempting(facts.priority, "allow preemption")) is not None
        ):
            yield admitting
            return
        priorities = self.sandbox.priorities()
        higher = sorted(each for each in priorities if facts.priority <= each <= PRIORITY_MAX)
        low, high = 0, len(higher)
        best: AdmittingChange | None = None
        # Each try takes time. A higher priority may evict all that a lower one may, so the smallest
        # that suffices is found by bisection.
        while low < high:
            middle = (low + high) // 2
            priority = higher[middle] + 1
            text = f"give it priority {priority}{' and allow preemption' if is_disabled else ''}"
            if (admitting := self._preempting(priority, text)) is not None:
                best, high = admitting, middle
            else:
                low = middle + 1
        if best is not None:
            yield best

    def _admitted(self, changes: Sequence[Change]) -> AdmittingChange | None:
        """Return the changes as one, if the scheduler places the pod with them."""
        facts = self.pod[1]
        for each in changes:
            facts = each.edit(facts)
        node = self._node_for(facts)
        if not node:
            return None
        texts = [each.text for each in changes if each.kind != "reduce"]
        share = 0.0
        for each in changes:
            if each.kind == "reduce":
                facts, node, reduced_share = self._least_reduced(facts, each.text, node)
                share += reduced_share
                old, new = dict(self.pod[1].requests)[each.text], dict(facts.requests)[each.text]
                texts.append(reduction_text(each.text, old, new))
        kinds = tuple(each.kind for each in changes for _ in range(each.size))
        return AdmittingChange(kinds, ", and ".join(texts), node, round(share, 6))

    def _least_reduced(
        self, facts: PodFacts, resource: str, node: str
    ) -> tuple[PodFacts, str, float]:
        """Return the facts with the largest request of a resource that is placed, by bisection.

        Also their node, and by which share of the pod's own request it is reduced.
        """
        unit, old = unit_of(resource), dict(self.pod[1].requests)[resource]
        low, high = dict(facts.requests)[resource], old
        while high - low > unit:
            middle = low + max(unit, (high - low) // 2 // unit * unit)
            tried = reduced(facts, resource, middle)
            if other_node := self._node_for(tried):
                low, node, facts = middle, other_node, tried
            else:
                high = middle
        return facts, node, (old - low) / old

    def _node_for(self, facts: PodFacts) -> str:
        """Return the node on which a pod with these facts is placed, evicting no other; else ""."""
        node, _ = self._try(without_preemption(facts))
        return node

    def _preempting(self, priority: int, text: str) -> AdmittingChange | None:
        facts = replace(self.pod[1], priority=priority, preemption_policy="PreemptLowerPriority")
        node, preempted = self._try(facts)
        if not node or not preempted:
            return None
        evicts = tuple(each.pod for each in preempted)
        return AdmittingChange(("preempt",), text, node, evicts=evicts)

    def _try(self, facts: PodFacts) -> tuple[str, tuple[PreemptedPod, ...]]:
        """Schedule a pod and undo that; return its node, "" for none, and the evicted pods."""
        if self.tried >= self.runs_max:
            return "", ()
        self.tried += 1
        copy = self.sandbox.copy_of((self.pod[0], facts))
        scheduled = self.sandbox.schedule([copy])
        self.sandbox.remove([copy[0].uid])
        self.sandbox.restore_preempted(scheduled.preempted)
        return scheduled.placed.get(copy[0].uid, ""), scheduled.preempted

"""The dry run: find the victims without which a pod would fit, on nodes where evictions may help.

On a copy of a node's row (`RowOverlay`), all pods of lower priority are removed. If the preemptor
still does not fit, the node is no candidate. Otherwise the removed pods are added back one by one:
first those whose eviction would violate a disruption budget, then the others, each group in order
of importance. A pod with which the preemptor does not fit is removed again: it is a victim.

The filters run for many rows at once, in as many rounds as the fullest row has pods of lower
priority. The `Evaluation` of the preemptor's class has the filters' result for each row, a code:
PASSED, EXCLUDED by PreFilter, or k > 0 for its status `statuses[k - 1]`. It also caches the dry
run of each row; for the next pod of the class only rows that changed are tried again
(`roadstead.framework.dry_run_cache`). A `Resident` is one pod on a node.

Upstream: pkg/scheduler/framework/preemption/preemption.go (findCandidates, DryRunPreemption) and
plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode, PodEligibleToPreemptOthers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from roadstead.facts.disruption import DisruptionBudget
from roadstead.framework.dry_run_cache import DryRunRow
from roadstead.framework.evaluation import EXCLUDED, Evaluation
from roadstead.framework.row_overlay import PASSED, RowOverlay
from roadstead.framework.tie_break import in_order
from roadstead.framework.victims import (
    Candidate,
    DryRun,
    DryRunResult,
    Victim,
    are_enough,
    shortlist,
)
from roadstead.nodes.residents import Resident
from roadstead.nodes.table import NodeTable, Rows
from roadstead.preemption.importance import by_importance, violations_of
from roadstead.protocol.status import Code

NO_VICTIMS = "No preemption victims found for incoming pod"

_WITHOUT_VICTIMS = DryRunRow(reasons=(NO_VICTIMS,))

ROWS_PER_STEP = 128
"""Rows that are copied and tried at a time; the last step may try more than are needed."""


def dry_run(
    evaluation: Evaluation, request: DryRun, budgets: Sequence[DisruptionBudget]
) -> DryRunResult:
    """Try rows until there are enough candidates: `request.size`, one of them without violations.

    evaluation: of the preemptor's class; it must be up to date. The rows are in pseudorandom order,
    determined by `request.pod_hash`, or in the order of their names if that is None.
    """
    if _waits_for_victims(evaluation):
        return DryRunResult(waits=True)
    table = evaluation.table
    # Rows on which the pod might fit without other pods.
    rows = evaluation.helpful_rows()
    names, hashes = table.columns.names, table.columns.name_hash[rows]
    rows = rows[in_order([names[row] for row in rows.tolist()], request.pod_hash, hashes)]
    # Cached results of other budgets are dropped.
    evaluation.dry_runs.use(budgets)
    outcome = _Outcome()
    for start in range(0, len(rows), ROWS_PER_STEP):
        outcome.add(_results_of(evaluation, rows[start : start + ROWS_PER_STEP], budgets))
        # `shortlist` would drop all candidates of later rows.
        clean = len(outcome.candidates) - outcome.violating
        if are_enough(clean, outcome.violating, request.size):
            break
    return outcome.result(request.size)


@dataclass(slots=True)
class _Outcome:
    """Result of the rows tried so far.

    candidates: in the order in which they were found. violating: how many of them violate a budget.
    refused: the rows without a candidate.
    """

    candidates: list[Candidate] = field(default_factory=list)
    violating: int = 0
    refused: list[DryRunRow] = field(default_factory=list)

    def add(self, rows: Iterable[DryRunRow]) -> None:
        """Add the results of rows, in their order."""
        for each in rows:
            if each.candidate is None:
                self.refused.append(each)
                continue
            self.candidates.append(each.candidate)
            self.violating += bool(each.candidate.violations)

    def result(self, size: int) -> DryRunResult:
        if self.candidates:
            return DryRunResult(shortlist(self.candidates, size))
        counts = Counter(reason for each in self.refused for reason in each.reasons)
        errors = {each.error for each in self.refused if each.error}
        reasons = tuple(sorted(counts.items()))
        return DryRunResult(nodes=len(self.refused), reasons=reasons, errors=tuple(sorted(errors)))


def _waits_for_victims(evaluation: Evaluation) -> bool:
    """Whether victims of the pod's earlier preemption still terminate on its nominated node.

    False if no preemption can help on that node (PodEligibleToPreemptOthers).
    """
    name, table = evaluation.pod.facts.nominated_node_name, evaluation.table
    if not name or not table.has_node(name):
        return False
    row = table.row_of(name)
    if evaluation.pre_filter.status.is_success:
        code = int(evaluation.codes[row])
        if code == EXCLUDED or (code and not _may_help(evaluation, code)):
            return False
    elif evaluation.pre_filter.status.code is not Code.UNSCHEDULABLE:
        return False
    priority = evaluation.pod.facts.priority
    return any(
        pod_class.facts.is_preempted and pod_class.facts.priority < priority
        for pod_class in table.pods(row)
    )


def _may_help(evaluation: Evaluation, code: int) -> bool:
    return evaluation.statuses[code - 1].code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def _lower_priority_pods(table: NodeTable, row: int, priority: int) -> list[Resident]:
    """Return the pods of lower priority on a row, in order of arrival.

    Pods of which the table knows only the class follow, with an empty UID and key.
    """
    unnamed = dict(table.pods(row))
    lower = []
    for pod in table.residents.on(table.columns.names[row]):
        unnamed[pod.pod_class] -= 1
        if pod.pod_class.facts.priority < priority:
            lower.append(pod)
    for pod_class, count in unnamed.items():
        if pod_class.facts.priority < priority:
            lower += [Resident(uid="", key="", started_s=None, pod_class=pod_class)] * count
    return lower


def _results_of(
    evaluation: Evaluation, rows: Rows, budgets: Sequence[DisruptionBudget]
) -> list[DryRunRow]:
    """Return the result of each row, in their order: cached, or tried if the row changed."""
    cache, versions = evaluation.dry_runs, evaluation.table.columns.version[rows].tolist()
    cached = [cache.get(row, version) for row, version in zip(rows.tolist(), versions, strict=True)]
    uncached = [index for index, each in enumerate(cached) if each is None]
    tried = dict(zip(uncached, _try_rows(evaluation, rows[uncached], budgets), strict=True))
    for index, each in tried.items():
        cache.put(int(rows[index]), versions[index], each)
    return [tried[index] if each is None else each for index, each in enumerate(cached)]


def _try_rows(
    evaluation: Evaluation, rows: Rows, budgets: Sequence[DisruptionBudget]
) -> list[DryRunRow]:
    """Return the result of each row, in their order."""
    table, priority = evaluation.table, evaluation.pod.facts.priority
    removable = [_lower_priority_pods(table, row, priority) for row in rows.tolist()]
    with_removable = [index for index, pods in enumerate(removable) if pods]
    results = [_WITHOUT_VICTIMS] * len(rows)
    if with_removable:
        pods_of_rows = [*filter(None, removable)]
        rows_dry_run = _RowsDryRun(evaluation, rows[with_removable], pods_of_rows, budgets)
        for index, each in zip(with_removable, rows_dry_run.run(), strict=True):
            results[index] = each
    return results


class _RowsDryRun:
    """The dry run of rows with pods of lower priority, all of which are removed at first.

    removable: these pods, by row. In the methods a row is an index into `rows`.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        rows: Rows,
        removable: Sequence[Sequence[Resident]],
        budgets: Sequence[DisruptionBudget],
    ) -> None:
        self._evaluation = evaluation
        self._overlay = RowOverlay(evaluation, rows)
        self._removable = removable
        self._budgets = budgets
        self._names = [evaluation.table.columns.names[row] for row in rows.tolist()]
        # (row, class, number of pods to add; -1 removes one).
        self._overlay.move(
            (row, pod.pod_class, -1) for row, pods in enumerate(removable) for pod in pods
        )

    def run(self) -> list[DryRunRow]:
        """Return for each row a candidate, or why the node is none."""
        rows = np.arange(len(self._names))
        codes = self._overlay.filter(rows)
        fitting = [_Reprieve(row, self._removable[row]) for row in rows[codes == PASSED].tolist()]
        for each in fitting:
            each.sort(self._budgets)
        self._reprieve(fitting)
        result_of = {each.row: self._result_of(each) for each in fitting}
        return [
            result_of[row] if code == PASSED else self._refused(code)
            for row, code in enumerate(codes.tolist())
        ]

    def _refused(self, code: int) -> DryRunRow:
        status = self._evaluation.statuses[code - 1]
        error = status.message if status.code is Code.ERROR else ""
        return DryRunRow(reasons=status.reasons, error=error)

    def _reprieve(self, fitting: Sequence[_Reprieve]) -> None:
        """Add back one pod of each row per round; remove it again if the preemptor does not fit."""
        turn = 0
        while unfinished := [each for each in fitting if turn < len(each.turns)]:
            pods = [each.pods[each.turns[turn]] for each in unfinished]
            added = zip(unfinished, pods, strict=True)
            self._overlay.move((each.row, pod.pod_class, 1) for each, pod in added)
            codes = self._overlay.filter(np.array([each.row for each in unfinished], dtype=np.intp))
            refused = np.flatnonzero(codes != PASSED).tolist()
            self._overlay.move((unfinished[n].row, pods[n].pod_class, -1) for n in refused)
            for index in refused:
                unfinished[index].victims.append(unfinished[index].turns[turn])
            turn += 1

    def _result_of(self, each: _Reprieve) -> DryRunRow:
        """Return the candidate of a row; an error without victims, as the pod fits there now."""
        name = self._names[each.row]
        if not each.victims:
            text = f'expected at least one victim pod on node "{name}"'
            return DryRunRow(reasons=(text,), error=text)
        victims = (each.pods[index] for index in sorted(each.victims))
        return DryRunRow(
            Candidate(
                name,
                tuple(
                    Victim(v.uid, v.key, v.pod_class.facts.priority, v.started_s) for v in victims
                ),
                sum(each.violates[index] for index in each.victims),
            )
        )


@dataclass(slots=True)
class _Reprieve:
    """A row on which the pod fits without any pod of lower priority (upstream's reprievePod).

    pods: those of lower priority, by importance. violates: by pod, whether its eviction violates a
    budget. turns: indices into `pods` in the order in which pods are added back. victims: indices
    of the pods with which the preemptor did not fit.
    """

    row: int
    pods: Sequence[Resident]
    violates: list[bool] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    victims: list[int] = field(default_factory=list)

    def sort(self, budgets: Sequence[DisruptionBudget]) -> None:
        """Put the pods in order of importance, and determine the turns."""
        self.pods = by_importance(self.pods)
        self.violates = violations_of(self.pods, budgets)
        self.turns = sorted(range(len(self.pods)), key=lambda index: not self.violates[index])

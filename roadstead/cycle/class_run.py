"""ClassRun: the totals of one class of pods over candidate rows, kept up to date pod by pod.

A class is evaluated over the candidates; what the shards kept back stands beside them as groups:
how many feasible rows, with which raw values of the normalizing plugins, and an upper bound of the
rest of their score (`floor`, the best row that was kept back). Within a group all rows are
normalized alike, so a candidate that beats every group's bound beats every row kept back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.extenders.chain import EXTENDER
from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Evaluation, Summaries
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.narrowed import Narrowing
from roadstead.framework.plugin import Extremes, Reads
from roadstead.framework.what_if import PASSED
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.status import SUCCESS, Code, Status

INFEASIBLE = -(2**63)
"""Below every total, also where extenders take scores away."""


@dataclass(frozen=True, slots=True)
class RestGroup:
    """Feasible rows that a shard kept back: same raw values of the normalizing plugins.

    raw: one value per normalizing plugin that scored, in order of execution.
    floor: the highest sum of weight * raw over the other plugins among these rows.
    """

    raw: tuple[int, ...]
    rows: int
    floor: int


@dataclass(slots=True)
class Rest:
    """All that was kept back for a class: feasible groups, and refusals of all other rows."""

    groups: tuple[RestGroup, ...]
    refused: Diagnosis


class ClassRun:
    """Totals of a class: int64[row] over the candidates, INFEASIBLE where a row cannot take it.

    narrowing: what sampling and extenders left over, for the one pod that is decided on it;
        applies: the rows are to be narrowed here (candidates of shards are narrowed already).
    """

    __slots__ = (
        "_bound",
        "_error",
        "_extremes",
        "_failure",
        "_fixed",
        "_is_fixed",
        "_live",
        "_still",
        "applies",
        "evaluation",
        "narrowing",
        "rest",
        "total",
    )

    def __init__(
        self, evaluation: Evaluation, rest: Rest, error: str = "", failure: Status | None = None
    ) -> None:
        """error: why scoring failed on a shard. failure: of a plugin before, which ends the cycle
        whatever may be left to compare."""
        self._error, self._failure = error, failure
        self.narrowing: Narrowing | None = None
        self.applies = False
        self.evaluation = evaluation
        self.rest = rest
        self.total: I64 = np.zeros(0, dtype=np.int64)
        self._extremes: dict[int, Extremes] = {}
        self._fixed: I64 = np.zeros(0, dtype=np.int64)
        self._is_fixed: Bools = np.zeros(0, dtype=np.bool_)
        self._live: list[int] = []
        self._still: list[int] = []
        self._bound = INFEASIBLE

    @property
    def error(self) -> str:
        """Why an extender, or scoring on a shard, failed; there are no candidates then."""
        return self._error or ("" if self.narrowing is None else self.narrowing.error)

    @property
    def normalizing(self) -> list[int]:
        """Indices of the score plugins that normalize and were not skipped."""
        scorers = self.evaluation.profile.score
        return [
            index
            for index, raw in enumerate(self.evaluation.raw)
            if raw is not None and scorers[index].plugin.normalizes
        ]

    @property
    def has_feasible(self) -> bool:
        return bool(self.rest.groups) or bool(self.evaluation.feasible.any())

    def filter(self, node_count: int, filters: Summaries) -> str:
        """Evaluate PreFilter and Filter where anything changed; the error that ends the cycle."""
        evaluation = self.evaluation
        evaluation.update(node_count, filters)
        failure = self.filter_failure()
        if failure is not None:
            return failure.message
        if self.applies and self.narrowing is not None:
            evaluation.narrow(self.narrowing.narrowed)
        if self.narrowing is not None and self.narrowing.error:
            return self.narrowing.error
        status = evaluation.pre_filter.status
        return status.message if status.code is Code.ERROR else ""

    def score(self, scores: Summaries) -> Status:
        """Score what changed and sum it up, after `filter`; an Error status for a failure.

        The failure ends the cycle only where nodes are to be compared.
        """
        if not self.has_feasible:
            return Status()
        scored, redone = self.evaluation.update_scores(scores)
        if not scored.is_success:
            return scored
        return self._sum(redone)

    def _sum(self, redone: Rows | None) -> Status:
        """Sums up the rows whose scores changed (None: all); an Error ends the cycle."""
        status = SUCCESS
        try:
            if redone is None or self._extremes_moved(redone):
                status = self._sum_all()
            elif len(redone):
                status = self._sum_rows(redone)
        except PluginFailure as failure:
            status = normalize_failure(failure.status)
        if not status.is_success:
            self.evaluation.forget_scores()
        return status

    def filter_failure(self) -> Status | None:
        """What failed up to Filter, on some node, and ends the cycle; None where all answered."""
        if self._failure is not None:
            return self._failure
        evaluation = self.evaluation
        if not evaluation.pre_filter.status.is_success:
            return None
        for code, status in enumerate(evaluation.statuses, start=1):
            if status.code is Code.ERROR and (evaluation.codes == code).any():
                return status
        return next((each for each in self.rest.refused.refused if each.code is Code.ERROR), None)

    def _extremes_moved(self, rows: Rows) -> bool:
        flipped = (self.total[rows] == INFEASIBLE) == self.evaluation.feasible[rows]
        scorers = self.evaluation.profile.score
        live = any(scorers[index].plugin.reads is not Reads.NODE for index in self.normalizing)
        if not (live or flipped.any()):
            return False
        return any(self._find_extremes(i) != self._extremes.get(i) for i in self.normalizing)

    def _find_extremes(self, index: int) -> Extremes | None:
        raw = self.evaluation.raw[index]
        assert raw is not None
        feasible = raw[self.evaluation.feasible]
        found = Extremes.of(feasible) if len(feasible) else None
        place = self.normalizing.index(index)
        for group in self.rest.groups:
            value = Extremes(group.raw[place], group.raw[place])
            found = value if found is None else found.merge(value)
        return found

    def _sum_all(self) -> Status:
        self._extremes = {
            index: found
            for index in self.normalizing
            if (found := self._find_extremes(index)) is not None
        }
        feasible = np.flatnonzero(self.evaluation.feasible)
        scorers = self.evaluation.profile.score
        self._live = [i for i, each in enumerate(scorers) if each.plugin.reads is not Reads.NODE]
        self._still = [i for i in range(len(scorers)) if i not in self._live]
        rows = len(self.evaluation.feasible)
        self._fixed = np.zeros(rows, dtype=np.int64)
        self._is_fixed = np.zeros(rows, dtype=np.bool_)
        self.total = np.full(rows, INFEASIBLE, dtype=np.int64)
        status = self._find_bound()
        return self._sum_rows(feasible) if status.is_success else status

    def _sum_rows(self, rows: Rows) -> Status:
        """Sums up some rows; what plugins that read NODE facts say of a row is summed once."""
        feasible = self.evaluation.feasible[rows]
        if not feasible.all():
            self.total[rows[~feasible]] = INFEASIBLE
            rows = rows[feasible]
        fixed = self._is_fixed[rows]
        if not fixed.all():
            # A row that was not feasible before, as when a pod has left it.
            status = self._add(self._still, rows[~fixed], self._fixed)
            if not status.is_success:
                return status
            self._is_fixed[rows] = True
        self.total[rows] = self._fixed[rows] if self.evaluation.profile.score else self._alone
        if self.narrowing is not None:
            self.total[rows] += self._added(rows)
        return self._add(self._live, rows, self.total)

    @property
    def _alone(self) -> int:
        """The total without any score plugin; extenders' scores start at 0, as upstream."""
        return 0 if self.narrowing is not None and self.narrowing.scores else 1

    def _added(self, rows: Rows) -> I64:
        """What extenders add to the totals of some rows."""
        assert self.narrowing is not None
        names, scores = self.evaluation.table.columns.names, self.narrowing.scores
        return np.array([scores.get(names[row], 0) for row in rows.tolist()], dtype=np.int64)

    def _add(self, plugins: Sequence[int], rows: Rows, into: I64) -> Status:
        """Adds the weighted scores of some plugins for some rows; an Error for one out of range."""
        for index in plugins:
            scores = self.normalized(index, rows)
            if scores is None or not len(rows):
                continue
            each = self.evaluation.profile.score[index]
            refused = out_of_range(each.plugin.name, scores)
            if refused is not None:
                return refused
            into[rows] += each.weight * scores
        return Status()

    def normalized(self, index: int, rows: Rows) -> I64 | None:
        """Normalized scores of one plugin: int64[rows]; None where it was skipped."""
        raw = self.evaluation.raw[index]
        if raw is None:
            return None
        plugin = self.evaluation.profile.score[index].plugin
        if not plugin.normalizes or not len(rows):
            return raw[rows]
        extremes = self._extremes[index]
        return plugin.normalize(self.evaluation.state, self.evaluation.pod, raw[rows], extremes)

    def bound(self) -> int:
        """No row that was kept back has a higher total than this (INFEASIBLE if none was)."""
        return self._bound

    def _find_bound(self) -> Status:
        """Finds the bound of what was kept back; an Error for a score out of range there."""
        scorers = self.evaluation.profile.score
        indices = self.normalizing
        best = INFEASIBLE
        for group in self.rest.groups:
            total = group.floor if scorers or not self._alone else 1
            for index, value in zip(indices, group.raw, strict=True):
                raw = np.array([value], dtype=np.int64)
                plugin = scorers[index].plugin
                state, pod = self.evaluation.state, self.evaluation.pod
                score = plugin.normalize(state, pod, raw, self._extremes[index])
                refused = out_of_range(plugin.name, score)
                if refused is not None:
                    return refused
                total += scorers[index].weight * int(score[0])
            best = max(best, total)
        self._bound = best
        return Status()

    def only_row(self) -> int | None:
        """The one feasible row of all nodes, where there is one, and it is among the candidates."""
        feasible = self.evaluation.feasible
        if np.count_nonzero(feasible) != 1 or self.feasible_count() != 1:
            return None
        return int(feasible.argmax())

    def feasible_count(self) -> int:
        """Feasible rows of all nodes."""
        if self._error:
            return self.passed_count()
        kept_back = sum(group.rows for group in self.rest.groups)
        return int(self.evaluation.feasible.sum()) + kept_back

    def passed_count(self) -> int:
        """Rows that no filter refused, also where scoring failed and shards told no groups."""
        if not self.evaluation.pre_filter.status.is_success:
            return 0
        refused = self.diagnosis().refused.values()
        return self.evaluation.node_count - sum(refused)

    @property
    def _extender(self) -> tuple[str, ...]:
        return (EXTENDER,) if self.narrowing is not None and self.narrowing.by_extender else ()

    def diagnosis(self) -> Diagnosis:
        """Why no row can take the class: candidates counted now, the rest as the shards said."""
        evaluation = self.evaluation
        outcome = evaluation.pre_filter
        result = Diagnosis(
            evaluation.node_count,
            outcome.status,
            outcome.unreached,
            (*(outcome.narrowed_by if outcome.node_names is not None else ()), *self._extender),
        )
        for status in () if self.narrowing is None else self.narrowing.strangers:
            result.add(status, 1)
        result.see_priority(self.rest.refused.lowest_priority)
        result.see_priority(lowest_priority(evaluation.table))
        if result.pre_filter.is_success:
            result.merge(self.rest.refused)
            count_refusals(evaluation, result, np.ones(len(evaluation.codes), dtype=np.bool_))
        return result


def count_refusals(evaluation: Evaluation, into: Diagnosis, where: Bools) -> None:
    """Counts the refused rows of an evaluation by status."""
    chosen = where & (evaluation.codes != PASSED)
    # Codes begin with EXCLUDED, at -1.
    by_code = np.bincount(evaluation.codes[chosen] + 1)
    for place in np.flatnonzero(by_code).tolist():
        code, count = place - 1, int(by_code[place])
        if code == EXCLUDED:
            into.add(excluded_status(evaluation.pre_filter.narrowed_by), count)
            continue
        into.add(evaluation.statuses[code - 1], count)


def lowest_priority(table: NodeTable) -> int | None:
    """The lowest priority of all pods on the rows; None where there are none."""
    return min((info.facts.priority for info in table.class_counts), default=None)

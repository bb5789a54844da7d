"""ClassRun: the total scores of one pod class on all rows, updated before each pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.extenders.chain import EXTENDER
from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Evaluation
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import Extremes, Reads
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.framework.what_if import PASSED
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.status import SUCCESS, Code, Status

INFEASIBLE = -(2**63)
"""Below every total, even if extenders subtract points."""


class ClassRun:
    """Totals of a class: int64[row], INFEASIBLE for rows that are not feasible.

    search_result: the result of sampling and extenders for the one pod that is decided with it.
    """

    __slots__ = (
        "_extremes",
        "_fixed",
        "_is_fixed",
        "_live",
        "_static",
        "evaluation",
        "search_result",
        "total",
    )

    def __init__(self, evaluation: Evaluation) -> None:
        self.search_result: SearchResult | None = None
        self.evaluation = evaluation
        self.total: I64 = np.zeros(0, dtype=np.int64)
        self._extremes: dict[int, Extremes] = {}
        self._fixed: I64 = np.zeros(0, dtype=np.int64)
        self._is_fixed: Bools = np.zeros(0, dtype=np.bool_)
        self._live: list[int] = []
        self._static: list[int] = []

    @property
    def error(self) -> str:
        """The error of a failed extender, or ""."""
        return "" if self.search_result is None else self.search_result.error

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
        return bool(self.evaluation.feasible.any())

    def filter(self, pre_filter: PreFilterOutcome) -> str:
        """Evaluate Filter for changed rows; return the error that ends the cycle, or ""."""
        evaluation = self.evaluation
        evaluation.update(pre_filter)
        if self.search_result is not None:
            # A filter that fails on a node that the search did not visit has no effect.
            evaluation.restrict(self.search_result.found_nodes)
        elif (failure := self.evaluation.filter_failure()) is not None:
            return failure.message
        if self.error:
            return self.error
        status = evaluation.pre_filter.status
        return status.message if status.code is Code.ERROR else ""

    def score(self, pre_score: PreScoreOutcome) -> Status:
        """Score changed rows and sum up their totals, after `filter`; an Error for a failure.

        The failure ends the cycle only if more than one node is feasible.
        """
        if not self.has_feasible:
            return Status()
        scored, redone = self.evaluation.update_scores(pre_score)
        if not scored.is_success:
            return scored
        return self._sum(redone)

    def _sum(self, redone: Rows | None) -> Status:
        """Sum up the rows whose scores changed (None: all); an Error ends the cycle."""
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

    def _extremes_moved(self, rows: Rows) -> bool:
        flipped = (self.total[rows] == INFEASIBLE) == self.evaluation.feasible[rows]
        scorers = self.evaluation.profile.score
        live = any(scorers[index].plugin.reads is not Reads.NODE for index in self.normalizing)
        # Raw scores from node facts do not change: extremes move only if a row's feasibility did.
        if not (live or flipped.any()):
            return False
        return any(self._find_extremes(i) != self._extremes.get(i) for i in self.normalizing)

    def _find_extremes(self, index: int) -> Extremes | None:
        raw = self.evaluation.raw[index]
        assert raw is not None
        feasible = raw[self.evaluation.feasible]
        return Extremes.of(feasible) if len(feasible) else None

    def _sum_all(self) -> Status:
        self._extremes = {
            index: found
            for index in self.normalizing
            if (found := self._find_extremes(index)) is not None
        }
        feasible = np.flatnonzero(self.evaluation.feasible)
        scorers = self.evaluation.profile.score
        # Placements change the scores of the first group only.
        self._live = [i for i, each in enumerate(scorers) if each.plugin.reads is not Reads.NODE]
        self._static = [i for i in range(len(scorers)) if i not in self._live]
        rows = len(self.evaluation.feasible)
        self._fixed = np.zeros(rows, dtype=np.int64)
        self._is_fixed = np.zeros(rows, dtype=np.bool_)
        self.total = np.full(rows, INFEASIBLE, dtype=np.int64)
        return self._sum_rows(feasible)

    def _sum_rows(self, rows: Rows) -> Status:
        """Sum up some rows; the scores of plugins that read only NODE facts are summed once."""
        feasible = self.evaluation.feasible[rows]
        if not feasible.all():
            self.total[rows[~feasible]] = INFEASIBLE
            rows = rows[feasible]
        fixed = self._is_fixed[rows]
        if not fixed.all():
            # These rows were not feasible before, for example until a pod left.
            status = self._add(self._static, rows[~fixed], self._fixed)
            if not status.is_success:
                return status
            self._is_fixed[rows] = True
        self.total[rows] = self._fixed[rows] if self.evaluation.profile.score else self._alone
        if self.search_result is not None:
            self.total[rows] += self._added(rows)
        return self._add(self._live, rows, self.total)

    @property
    def _alone(self) -> int:
        """The total without any score plugin; extenders' scores start at 0, as upstream."""
        return 0 if self.search_result is not None and self.search_result.scores else 1

    def _added(self, rows: Rows) -> I64:
        """Return the points that extenders add to the totals of some rows: int64[rows]."""
        assert self.search_result is not None
        names, scores = self.evaluation.table.columns.names, self.search_result.scores
        return np.array([scores.get(names[row], 0) for row in rows.tolist()], dtype=np.int64)

    def _add(self, plugins: Sequence[int], rows: Rows, into: I64) -> Status:
        """Add weighted scores of some plugins for some rows; an Error for one out of range."""
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
        """Return the normalized scores of one plugin: int64[rows]; None if it was skipped."""
        raw = self.evaluation.raw[index]
        if raw is None:
            return None
        plugin = self.evaluation.profile.score[index].plugin
        if not plugin.normalizes or not len(rows):
            return raw[rows]
        extremes = self._extremes[index]
        return plugin.normalize(
            self.evaluation.score_state, self.evaluation.pod, raw[rows], extremes
        )

    def only_row(self) -> int | None:
        """Return the feasible row if there is exactly one, else None."""
        feasible = self.evaluation.feasible
        return int(feasible.argmax()) if np.count_nonzero(feasible) == 1 else None

    def feasible_count(self) -> int:
        """Return the number of feasible rows."""
        return int(self.evaluation.feasible.sum())

    def passed_count(self) -> int:
        """Return the number of rows that no filter refused, visited by the search or not."""
        if not self.evaluation.pre_filter.status.is_success:
            return 0
        return int(np.count_nonzero(self.evaluation.codes == PASSED))

    @property
    def _extender(self) -> tuple[str, ...]:
        return (
            (EXTENDER,) if self.search_result is not None and self.search_result.by_extender else ()
        )

    def diagnosis(self) -> Diagnosis:
        """Return why no row is feasible for the class."""
        evaluation = self.evaluation
        outcome = evaluation.pre_filter
        result = Diagnosis(
            len(evaluation.table),
            outcome.status,
            outcome.unreached,
            (*(outcome.narrowed_by if outcome.node_names is not None else ()), *self._extender),
        )
        for status in () if self.search_result is None else self.search_result.unknown_nodes:
            result.add(status, 1)
        result.record_priority(lowest_priority(evaluation.table))
        if result.pre_filter.is_success:
            _count_refusals(evaluation, result)
        return result


def _count_refusals(evaluation: Evaluation, into: Diagnosis) -> None:
    """Count the refused rows of an evaluation by status."""
    # The lowest code is EXCLUDED, -1.
    by_code = np.bincount(evaluation.codes[evaluation.codes != PASSED] + 1)
    for place in np.flatnonzero(by_code).tolist():
        code, count = place - 1, int(by_code[place])
        if code == EXCLUDED:
            into.add(excluded_status(evaluation.pre_filter.narrowed_by), count)
            continue
        into.add(evaluation.statuses[code - 1], count)


def lowest_priority(table: NodeTable) -> int | None:
    """Return the lowest priority of all pods on the rows; None if there are none."""
    return min((info.facts.priority for info in table.class_counts), default=None)

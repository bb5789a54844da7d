"""ClassScores: the totals of one pod class on all rows, updated before each of its pods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.extenders.sequence import EXTENDER
from roadstead.facts.node import NodeFacts
from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Evaluation
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import Extremes, Reads
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.row_overlay import PASSED
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.status import SUCCESS, Code, Status

INFEASIBLE = -(2**63)
"""Below every total, even if extenders subtract points."""

_NO_SUMS: I64 = np.zeros(0, dtype=np.int64)
_NO_FLAGS: Bools = np.zeros(0, dtype=np.bool_)


class ClassScores:
    """The evaluation of a class and its totals.

    total: int64[row], INFEASIBLE for rows that are not feasible. _extremes: by index of the score
    plugin, the least and greatest raw score with which `total` was normalized. _static_plugins:
    indices of the score plugins that read only NODE facts; _static_sums: the sums of their weighted
    scores, int64[row], valid where _has_static_sum is true. _dynamic_plugins: indices of the other
    score plugins.
    search_result: the result of sampling and extenders; then only one pod is decided with this
    object.
    """

    __slots__ = (
        "_dynamic_plugins",
        "_extremes",
        "_has_static_sum",
        "_static_plugins",
        "_static_sums",
        "evaluation",
        "search_result",
        "total",
    )

    def __init__(self, evaluation: Evaluation) -> None:
        self.search_result: SearchResult | None = None
        self.evaluation = evaluation
        self.total: I64 = _NO_SUMS
        self._extremes: dict[int, Extremes] = {}
        self._static_sums: I64 = _NO_SUMS
        self._has_static_sum: Bools = _NO_FLAGS
        self._dynamic_plugins: list[int] = []
        self._static_plugins: list[int] = []

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
        """Run Filter on changed rows; return the error that ends the pod's cycle, or ""."""
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
        """Score changed rows and sum up their totals, after `filter`; return an Error on failure.

        The caller ignores the failure if only one node is feasible: upstream does not score then.
        """
        if not self.has_feasible:
            return Status()
        status, rescored = self.evaluation.update_scores(pre_score)
        if not status.is_success:
            return status
        return self._sum(rescored)

    def _sum(self, rescored: Rows | None) -> Status:
        """Sum up the rows whose scores changed (None: all); return an Error for a failure."""
        status = SUCCESS
        try:
            if rescored is None or self._must_normalize_anew(rescored):
                status = self._sum_all()
            elif len(rescored):
                status = self._sum_rows(rescored)
        except PluginFailure as failure:
            status = normalize_failure(failure.status)
        if not status.is_success:
            self.evaluation.forget_scores()
        return status

    def _must_normalize_anew(self, rows: Rows) -> bool:
        """Whether changed rows changed the extremes of a plugin, and so all normalized scores."""
        # `total` still shows which rows were feasible before.
        feasibility_changed = (self.total[rows] == INFEASIBLE) == self.evaluation.feasible[rows]
        scorers = self.evaluation.profile.score
        has_dynamic = any(
            scorers[index].plugin.reads is not Reads.NODE for index in self.normalizing
        )
        # Raw scores from NODE facts do not change: their extremes change only with feasibility.
        if not (has_dynamic or feasibility_changed.any()):
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
        # Placements do not change the scores of static plugins.
        self._dynamic_plugins = [
            i for i, each in enumerate(scorers) if each.plugin.reads is not Reads.NODE
        ]
        self._static_plugins = [i for i in range(len(scorers)) if i not in self._dynamic_plugins]
        rows = len(self.evaluation.feasible)
        self._static_sums = np.zeros(rows, dtype=np.int64)
        self._has_static_sum = np.zeros(rows, dtype=np.bool_)
        self.total = np.full(rows, INFEASIBLE, dtype=np.int64)
        return self._sum_rows(feasible)

    def _sum_rows(self, rows: Rows) -> Status:
        """Sum up some rows; the scores of static plugins are summed once for each row."""
        feasible = self.evaluation.feasible[rows]
        if not feasible.all():
            self.total[rows[~feasible]] = INFEASIBLE
            rows = rows[feasible]
        has_sum = self._has_static_sum[rows]
        if not has_sum.all():
            # These rows were not feasible before, for example until a pod left.
            status = self._add(self._static_plugins, rows[~has_sum], self._static_sums)
            if not status.is_success:
                return status
            self._has_static_sum[rows] = True
        self.total[rows] = (
            self._static_sums[rows]
            if self.evaluation.profile.score
            else self._total_without_plugins
        )
        if self.search_result is not None:
            self.total[rows] += self._extender_points(rows)
        return self._add(self._dynamic_plugins, rows, self.total)

    @property
    def _total_without_plugins(self) -> int:
        """The total without any score plugin, as upstream: 1, or 0 if extenders add scores."""
        return 0 if self.search_result is not None and self.search_result.scores else 1

    def _extender_points(self, rows: Rows) -> I64:
        """Return the points that extenders add to the totals of some rows: int64[rows]."""
        assert self.search_result is not None
        names, scores = self.evaluation.table.columns.names, self.search_result.scores
        return np.array([scores.get(names[row], 0) for row in rows.tolist()], dtype=np.int64)

    def _add(self, plugins: Sequence[int], rows: Rows, into: I64) -> Status:
        """Add weighted scores of some plugins for some rows; return an Error if out of range."""
        for index in plugins:
            scores = self.normalized(index, rows)
            if scores is None or not len(rows):
                continue
            scorer = self.evaluation.profile.score[index]
            failure = out_of_range(scorer.plugin.name, scores)
            if failure is not None:
                return failure
            into[rows] += scorer.weight * scores
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
    def _restricting_extender(self) -> tuple[str, ...]:
        """`EXTENDER` if extenders refused nodes, as one more name in `Diagnosis.restricted_by`."""
        return (
            (EXTENDER,) if self.search_result is not None and self.search_result.by_extender else ()
        )

    def diagnosis(self) -> Diagnosis:
        """Return why no row is feasible for the class."""
        evaluation = self.evaluation
        outcome = evaluation.pre_filter
        result = Diagnosis(
            len(evaluation.table),
            pre_filter=outcome.status,
            unreached=outcome.unreached,
            restricted_by=(*outcome.restricted_by, *self._restricting_extender),
        )
        for status in () if self.search_result is None else self.search_result.unknown_nodes:
            result.add(status, 1)
        result.record_priority(lowest_priority(evaluation.table))
        if result.pre_filter.is_success:
            _count_refusals(evaluation, result)
            result.refused_nodes = refused_nodes(evaluation)
        return result


def _count_refusals(evaluation: Evaluation, into: Diagnosis) -> None:
    """Count the refused rows of an evaluation by status."""
    # `bincount` counts from 0. The lowest code is EXCLUDED, -1: the row of a node that is not among
    # those to which PreFilter restricted the pod.
    counts = np.bincount(evaluation.codes[evaluation.codes != PASSED] + 1)
    for index in np.flatnonzero(counts).tolist():
        code, count = index - 1, int(counts[index])
        if code == EXCLUDED:
            into.add(excluded_status(evaluation.pre_filter.restricted_by), count)
            continue
        into.add(evaluation.statuses[code - 1], count)


def refused_nodes(evaluation: Evaluation) -> dict[str, tuple[NodeFacts, ...]]:
    """Return by plugin the nodes that its Filter refused, for plugins whose PostFilter reads them.

    Only rows refused by a status of the plugin count, not those that PreFilter excluded.
    """
    found = {}
    for plugin in evaluation.profile.post_filter:
        if not plugin.reads_refused_nodes:
            continue
        is_of_plugin = [each.plugin == plugin.name for each in evaluation.statuses]
        if any(is_of_plugin):
            # By code: PASSED is 0, the statuses follow, and EXCLUDED (-1) indexes the last.
            rows = np.flatnonzero(np.array([False, *is_of_plugin, False])[evaluation.codes])
            found[plugin.name] = tuple(map(evaluation.table.columns.node, rows.tolist()))
    return found


def lowest_priority(table: NodeTable) -> int | None:
    """Return the lowest priority of all pods on the rows; None if there are none."""
    return min((pod_class.facts.priority for pod_class in table.class_counts), default=None)

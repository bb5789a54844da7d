"""Evaluation of one pod class over one table, from PreFilter to raw scores, done incrementally.

The answer for a row depends on the outcome of PreFilter and PreScore (their status, node names and
data), and on the row itself. So after the first full run only changed rows are evaluated again, and
plugins that read only a node's own facts evaluate only the rows whose facts changed. Causes of
another full run: another outcome of PreFilter; added or removed nodes; changed nodes, if a plugin
reads nodes other than the row's.

    run_pre_filter()               PreFilter, over all rows as they are
    update(pre_filter)             Filter
    restrict(found_nodes)          if sampling or extenders exclude rows
    run_pre_score()                PreScore
    update_scores(pre_score)       Score

Filters that read only NODE facts are *static*, all others *live*.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes) and
framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.dry_run_cache import DryRunCache
from roadstead.framework.failures import (
    filter_status,
    out_of_range,
    score_failure,
)
from roadstead.framework.found_nodes import NOT_EVALUATED, FoundNodes
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import FilterPlugin, FilterResult, Plugin, Reads
from roadstead.framework.pre_filtering import NO_PRE_FILTER, PreFilterOutcome, run_pre_filter
from roadstead.framework.profile import Profile
from roadstead.framework.row_overlay import PASSED, RowOverlay, pods_to_yield_to
from roadstead.framework.scoring import (
    NO_PRE_SCORE,
    PreScoreOutcome,
    bare_scores,
    raw_scores,
    run_pre_score,
)
from roadstead.framework.worker_results import WorkerResults
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.protocol.status import SUCCESS, Code, Status

EXCLUDED = -1
"""Filter code of a row that PreFilter's node names exclude."""

_NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
_NO_CODES: I32 = np.zeros(0, dtype=np.int32)
_NO_FLAGS: Bools = np.zeros(0, dtype=np.bool_)
_ROW_SETS_MAX = 64
"""Sets of changed rows that wait for Score; more are merged, so that classes which are filtered
again and again without a Score use little memory."""
MAX_FORMER_STATUSES = 4096
"""How many unused statuses `Evaluation.statuses` may have: statuses that no row has any more. A
filter whose reasons contain the time makes one with each call. With more, all rows are filtered
again, and only the statuses of that run are kept."""
_NO_POSITION = np.int32(2**31 - 1)
"""In `Evaluation.positions`: no filter refused the row yet; above the position of any filter."""
_EXCLUDED_POSITION = -1
"""In `Evaluation.positions`: PreFilter excludes the row; below the position of any filter.

A refusal replaces one of a higher position, thus no filter replaces this one.
"""


class Evaluation:
    """Answers of a profile for one pod class over one table.

    codes: int32[row]: PASSED, EXCLUDED, or k > 0 for `statuses[k - 1]`.
    positions: int32[row], index in `Profile.filter` of the plugin that refused; _NO_POSITION for
        none.
    raw: per score plugin int64[row], or None where it was skipped.
    state, score_state: the CycleStates that Filter and Score read.
    pre_score: Success, or the Error of PreScore or Score.
    is_bare: feasible rows are scored as nodes without pods and images, because an extender returned
        node objects, which upstream uses in place of its own (`roadstead.nodes.bare`).
    worker_results: answers of users' plugins that workers computed, for the next full run; None
        once it has scored all rows.
    dry_runs: results of dry runs of preemption per row, for the present outcome of PreFilter.
    before_restriction: codes and feasible rows of Filter, while `restrict` has replaced them; else
        None.
    extender_scores: int64[row], scores that extenders add to the totals; None for none.
    """

    __slots__ = (
        "_facts_changed", "_has_failed", "_node_version", "_pending_pre_filter",
        "_pending_pre_score", "_scored_with", "_scores_failed", "_static_codes",
        "_static_positions", "_status_code", "_statuses_max", "_unscored", "_version",
        "before_restriction", "codes", "dry_runs", "extender_scores", "feasible", "is_bare", "pod",
        "positions", "pre_filter", "pre_score", "profile", "raw", "score_state", "state",
        "statuses", "table", "worker_results",
    )  # fmt: skip

    def __init__(self, profile: Profile, pod: PodClass, table: NodeTable) -> None:
        self.profile = profile
        self.pod = pod
        self.table = table
        self.codes: I32 = _NO_CODES
        self.feasible: Bools = _NO_FLAGS
        self.statuses: list[Status] = []
        self.pre_filter, self.state = NO_PRE_FILTER, NO_PRE_FILTER.state
        self.pre_score, self.score_state = SUCCESS, NO_PRE_SCORE.state
        self.raw: list[I64 | None] = []
        # The code of each of `statuses`, and with how many statuses the next run is a full one.
        self._status_code: dict[Status, int] = {}
        self._statuses_max = MAX_FORMER_STATUSES
        # The table's versions (of nodes, and of all) at the last update; -1: answers are outdated.
        self._node_version = self._version = -1
        # Rows that were filtered but not scored since; None: all rows.
        self._unscored: list[Rows] | None = None
        # Of these, the rows whose nodes' own facts changed.
        self._facts_changed: list[Rows] = []
        # The PreScore that `raw` was computed with; None if all rows must be scored again.
        self._scored_with: PreScoreOutcome | None = None
        # A plugin failed in PreScore or Score: the next update calls them again for all rows.
        self._scores_failed = False
        # The same of PreFilter and Filter.
        self._has_failed = False
        # Outcomes of `run_pre_filter` and `run_pre_score` that are not applied yet.
        self._pending_pre_filter: PreFilterOutcome | None = None
        self._pending_pre_score: PreScoreOutcome | None = None
        # `static_results`; None if they are not computed.
        self._static_codes: I32 | None = None
        self.before_restriction: tuple[I32, Bools] | None = None
        self.is_bare = False
        self.extender_scores: I64 | None = None
        self.worker_results: WorkerResults | None = None
        self.dry_runs = DryRunCache()

    def run_pre_filter(self) -> PreFilterOutcome:
        """Run PreFilter on the current table, without applying the outcome.

        Raises UnsupportedError if a plugin does not support the pod.
        """
        self._pending_pre_filter = outcome = run_pre_filter(self.profile, self.pod, self.table)
        return outcome

    def update(self, pre_filter: PreFilterOutcome) -> Rows | None:
        """Run Filter on changed rows, with an outcome of PreFilter; return these rows (None: all).

        After a failure the plugins are called again for all rows, as upstream does. PreFilter also
        runs again if the plugins' own state of the pod changed (`Profile.state_version`).
        """
        self._undo_restriction()
        # A pending outcome was computed for this update.
        if pre_filter is not self._pending_pre_filter and self._must_run_again(pre_filter):
            pre_filter = self.run_pre_filter()
        self._pending_pre_filter = None
        changed, facts_changed = self._rows_to_redo(pre_filter), _NO_ROWS
        if changed is None:
            self.restart(pre_filter)
            # They are of older nodes. `_run_filters` computes them again, but does not run if
            # PreFilter rejects the pod.
            self._static_codes = None
        else:
            # An equal outcome: stored, so that the next comparison is one by identity.
            self.pre_filter, self.state = pre_filter, pre_filter.state
            facts_changed = self.table.facts_changed_since(self._version)
            self._update_static(facts_changed)
        self._node_version, self._version = self.table.node_version, self.table.version
        if not self.pre_filter.status.is_success:
            self.feasible = np.zeros(len(self.table), dtype=np.bool_)
        elif changed is None or len(changed):
            self._run_filters(changed)
            self._apply_nominated(changed)
        if changed is None:
            self._unscored, self._facts_changed = None, []
        elif self._unscored is not None and len(changed):
            self._unscored = _with_rows(self._unscored, changed)
            self._facts_changed = _with_rows(self._facts_changed, facts_changed)
        return changed

    def restrict(self, found_nodes: FoundNodes) -> None:
        """Restrict the feasible rows to the result of a node search, until the next `update`.

        PreScore and Score run on the remaining rows. `before_restriction` has Filter's answers.
        """
        assert self.before_restriction is None, "restricted once between two updates"
        self.before_restriction, self.is_bare = (self.codes, self.feasible), found_nodes.is_bare
        # A search identifies nodes by arrival number, since it does not know this table's rows.
        arrivals = self.table.arrivals
        # As upstream: if PreFilter named nodes, a node that the search did not evaluate has the
        # status of a node that is not named.
        is_restricted = self.pre_filter.node_names is not None
        not_evaluated = EXCLUDED if is_restricted else self.intern(NOT_EVALUATED)
        remaining = np.isin(arrivals, found_nodes.remaining)
        codes = self.codes.copy()
        if found_nodes.evaluated is not None:
            codes[~np.isin(arrivals, found_nodes.evaluated)] = not_evaluated
        # Feasible rows that are neither refused by an extender nor remain were not reached.
        codes[self.feasible] = not_evaluated
        for status, refused in found_nodes.refused:
            codes[np.isin(arrivals, refused)] = self.intern(status)
        codes[remaining] = PASSED
        self.codes, self.feasible = codes, remaining
        if found_nodes.scores.any():
            score_of = dict(
                zip(found_nodes.remaining.tolist(), found_nodes.scores.tolist(), strict=True)
            )
            self.extender_scores = np.array(
                [score_of.get(each, 0) for each in arrivals.tolist()], np.int64
            )
        self._scored_with = None

    def _undo_restriction(self) -> None:
        if self.before_restriction is not None:
            self.codes, self.feasible = self.before_restriction
            self.before_restriction = self.extender_scores = self._scored_with = None
            self.is_bare = False

    def filter_failure(self) -> Status | None:
        """Return the Error of a filter on some node, which ends the cycle; None for none."""
        if not self.pre_filter.status.is_success:
            return None
        codes = self.codes if self.before_restriction is None else self.before_restriction[0]
        for code, status in enumerate(self.statuses, start=1):
            if status.code is Code.ERROR and (codes == code).any():
                return status
        return None

    def _must_run_again(self, pre_filter: PreFilterOutcome) -> bool:
        if self._has_failed or pre_filter.status.code is Code.ERROR:
            return True
        return pre_filter.state_version != self.profile.state_version(self.pod)

    def _rows_to_redo(self, pre_filter: PreFilterOutcome) -> Rows | None:
        """Return the rows on which Filter must run; None for all."""
        is_same = not self._has_failed and pre_filter.is_same(self.pre_filter)
        if not is_same or self._node_version < self.table.rows_version:
            return None
        if pre_filter.status.is_success and len(self.statuses) > self._statuses_max:
            return None
        if self._node_version != self.table.node_version and self._filter_reads_others(pre_filter):
            return None
        return self.table.rows_changed_since(self._version)

    def _filter_reads_others(self, pre_filter: PreFilterOutcome) -> bool:
        return _read_others(self.profile.filter, pre_filter.state)

    def restart(self, pre_filter: PreFilterOutcome) -> None:
        """Apply an outcome of PreFilter; no row is filtered yet."""
        self.dry_runs.clear()
        if not pre_filter.is_same(self.pre_filter):
            # The answers for rows depend on the outcome: the next update must not reuse any.
            self._node_version = -1
        self._has_failed = pre_filter.status.code is Code.ERROR
        self.pre_filter, self.state = pre_filter, pre_filter.state
        self._scored_with = None

    def is_for(self, node_version: int, state_version: Hashable) -> bool:
        """Whether the last update was for this version of the nodes and of the plugins' own state.

        state_version: of `Profile.state_version`.
        """
        return (self._node_version, self.pre_filter.state_version) == (node_version, state_version)

    @property
    def node_version(self) -> int:
        """The version of the nodes at the last update; -1 if its results are out of date."""
        return self._node_version

    def static_results(self) -> tuple[I32, I32]:
        """Return codes and positions by PreFilter's node names and filters that read NODE facts."""
        assert self._static_codes is not None
        return self._static_codes, self._static_positions

    def intern(self, status: Status) -> int:
        """Return the code of a status in `codes`."""
        code = self._status_code.get(status)
        if code is None:
            self.statuses.append(status)
            code = self._status_code[status] = len(self.statuses)
        return code

    def _update_static(self, rows: Rows) -> None:
        """Run the filters that read NODE facts on rows whose facts changed."""
        if self._static_codes is None or not len(rows):
            return
        if not self.pre_filter.status.is_success:
            # No Filter runs now; `helpful_rows` computes the results when they are needed.
            self._static_codes = None
            return
        codes, positions = self.static_results_of(rows)
        # PreFilter's node names are the same, and changed facts do not change a node's name.
        excluded = self._static_codes[rows] == EXCLUDED
        codes[excluded], positions[excluded] = EXCLUDED, _EXCLUDED_POSITION
        self._static_codes[rows], self._static_positions[rows] = codes, positions

    def _run_filters(self, changed: Rows | None) -> None:
        if changed is None:
            self.statuses.clear()
            self._status_code.clear()
            self._static_codes, self._static_positions = self._run_static_filters()
            codes, positions = self._static_codes.copy(), self._static_positions.copy()
            self._run_live_filters(self.table, codes, positions)
            self.codes, self.positions = codes, positions
            self.feasible = codes == PASSED
            self._statuses_max = 2 * len(self.statuses) + MAX_FORMER_STATUSES
            return
        assert self._static_codes is not None
        codes, positions = self._static_codes[changed], self._static_positions[changed]
        self._run_live_filters(self.table.view(changed), codes, positions)
        self.codes[changed], self.positions[changed] = codes, positions
        self.feasible[changed] = codes == PASSED

    def _apply_nominated(self, changed: Rows | None) -> None:
        """Refuse rows on which the pod does not pass together with the pods nominated to them."""
        if not self.table.nominations:
            return
        nominations, names = self.table.nominations, self.table.columns.names
        nodes = nominations if changed is None else [names[row] for row in changed.tolist()]
        rows = self.table.rows_of(name for name in nodes if self.nominated_to(name))
        rows = rows[self.codes[rows] != EXCLUDED]
        if len(rows):
            codes = RowOverlay(self, rows).filter_with_nominated(np.arange(len(rows)))
            # As upstream, the filters run with the nominated pods first: their refusal counts.
            refused = rows[codes != PASSED]
            self.codes[refused] = codes[codes != PASSED]
            self.feasible[refused] = False

    def helpful_rows(self) -> Rows:
        """Return the rows that are Unschedulable: removing pods might make this pod fit.

        These are all rows if PreFilter rejected the pod as Unschedulable, none if it rejected it
        otherwise.
        """
        if self.pre_filter.status.code is Code.UNSCHEDULABLE:
            if self._static_codes is None:
                self._static_codes, self._static_positions = self._run_static_filters()
            return np.arange(len(self.table))
        if not self.pre_filter.status.is_success:
            return _NO_ROWS
        # By code: PASSED is 0, the statuses follow; EXCLUDED is -1, the index of the last.
        helpful = [False, *(status.code is Code.UNSCHEDULABLE for status in self.statuses), False]
        return np.flatnonzero(np.array(helpful)[self.codes])

    def nominated_to(self, node_name: str) -> Mapping[PodClass, int]:
        """Return the pods nominated to a node that this class must yield to, by class.

        If this pod is itself nominated to the node, it is not among them.
        """
        nominated = self.table.nominations.to(node_name)
        if not nominated:
            return nominated
        is_own = self.pod.facts.nominated_node_name == node_name
        return pods_to_yield_to(
            self.pod, nominated, self.table.as_nominated(self.pod) if is_own else None
        )

    def _run_static_filters(self) -> tuple[I32, I32]:
        rows = len(self.table)
        codes: I32 = np.zeros(rows, dtype=np.int32)
        positions: I32 = np.full(rows, _NO_POSITION, dtype=np.int32)
        names = self.pre_filter.node_names
        # If PreFilter rejects the pod, preemption tries all nodes, named or not.
        if names is not None and self.pre_filter.status.is_success:
            excluded = np.ones(rows, dtype=np.bool_)
            # The nominated node is evaluated, named or not (evaluateNominatedNode).
            excluded[self.table.rows_of((*names, self.pod.facts.nominated_node_name))] = False
            codes[excluded], positions[excluded] = EXCLUDED, _EXCLUDED_POSITION
        self._run_node_filters(self.table, codes, positions)
        return codes, positions

    def static_results_of(self, rows: Rows) -> tuple[I32, I32]:
        """Compute `static_results` of some rows, without PreFilter's node names."""
        codes: I32 = np.zeros(len(rows), dtype=np.int32)
        positions: I32 = np.full(len(rows), _NO_POSITION, dtype=np.int32)
        self._run_node_filters(self.table.view(rows), codes, positions)
        return codes, positions

    def _run_node_filters(self, table: Table, codes: I32, positions: I32) -> None:
        for position, plugin in enumerate(self.profile.filter):
            if plugin.reads is Reads.NODE:
                self._apply(plugin, position, table, codes, positions)

    def _run_live_filters(self, table: Table, codes: I32, positions: I32) -> None:
        """Run the filters that read more than NODE facts."""
        for position, plugin in enumerate(self.profile.filter):
            if plugin.reads is not Reads.NODE:
                self._apply(plugin, position, table, codes, positions)

    def _apply(
        self, plugin: FilterPlugin, position: int, table: Table, codes: I32, positions: I32
    ) -> None:
        if plugin.name in self.state.skipped:
            return
        result = None
        if self.worker_results is not None and table is self.table:
            result = self.worker_results.filter(plugin, self.state, self.pod, self.table)
        if result is None:
            result = plugin.filter(self.state, self.pod, table)
        self.apply_result(plugin, position, result, codes, positions)

    def apply_result(
        self, plugin: Plugin, position: int, result: FilterResult, codes: I32, positions: I32
    ) -> None:
        """Write the answer of the filter plugin at `position` into codes and positions."""
        if result.codes is None:
            return
        # The refusal by the first plugin in order counts: upstream does not call later plugins.
        first = (result.codes > 0) & (positions > position)
        if first.any():
            codes[first] = self._translated(plugin, result)[result.codes[first]]
            self._has_failed |= any(not each.is_rejected for each in result.statuses)
            positions[first] = position

    def _translated(self, plugin: Plugin, result: FilterResult) -> I32:
        """Return the code in `codes` for each code of a plugin's result: int32[code]."""
        own = [self.intern(filter_status(plugin.name, status)) for status in result.statuses]
        return np.array([PASSED, *own], dtype=np.int32)

    def run_pre_score(self) -> PreScoreOutcome:
        """Run PreScore on the current table and feasible rows, without applying the outcome."""
        self._pending_pre_score = outcome = run_pre_score(
            self.profile, self.pre_filter, self.pod, self.table, lambda: self.feasible
        )
        return outcome

    def update_scores(self, pre_score: PreScoreOutcome) -> tuple[Status, Rows | None]:
        """Run Score on changed rows, with an outcome of PreScore.

        Return its status, of which an Error ends the cycle, and the rows whose answers changed
        since the last call (None: all). After a failure the plugins are called again for all rows.
        """
        has_failed = self._scores_failed or not pre_score.status.is_success
        if pre_score is not self._pending_pre_score and has_failed:
            pre_score = self.run_pre_score()
        self._pending_pre_score = None
        is_same = self._scored_with is not None and pre_score.is_same(self._scored_with)
        if not is_same or (self._facts_changed and self._score_reads_others(pre_score)):
            self._unscored = None
            self.restart_scores(pre_score)
        self._scored_with, self._scores_failed = pre_score, False
        changed, facts_changed = None, _NO_ROWS
        if self._unscored is not None:
            changed, facts_changed = _union(self._unscored), _union(self._facts_changed)
        if self.pre_score.is_success:
            self._run_scores(changed, facts_changed)
            self._unscored, self._facts_changed = [], []
        if not self.pre_score.is_success:
            self.forget_scores()
        # The caller (`ClassScores`) keeps sums of the scores from NODE facts, which are valid only
        # while no node's facts change.
        return self.pre_score, None if len(facts_changed) else changed

    def _score_reads_others(self, pre_score: PreScoreOutcome) -> bool:
        plugins = [each.plugin for each in self.profile.score]
        return _read_others(plugins, pre_score.state)

    def forget_scores(self) -> None:
        """Discard the scores after a failure: the next attempt scores all rows again."""
        self._scored_with, self._scores_failed = None, True

    def restart_scores(self, pre_score: PreScoreOutcome) -> None:
        """Apply an outcome of PreScore; no row is scored yet."""
        self.pre_score, self.score_state = pre_score.status, pre_score.state

    def _run_scores(self, changed: Rows | None, facts_changed: Rows) -> None:
        try:
            self._score_rows(changed, facts_changed)
        except PluginFailure as failure:
            self.pre_score = score_failure(failure.status)
            return
        for index in self.profile.unchecked_scores:
            raw = self.raw[index]
            plugin = self.profile.score[index].plugin
            if raw is not None:
                self.pre_score = out_of_range(plugin.name, raw[self.feasible]) or self.pre_score

    def _score_rows(self, changed: Rows | None, facts_changed: Rows) -> None:
        """Score changed rows (None: all). facts_changed: those of them with changed facts."""
        if changed is None:
            self.raw = [
                None
                if each.plugin.name in self.score_state.skipped
                else self.raw_of_all_rows(index)
                for index, each in enumerate(self.profile.score)
            ]
            self.worker_results = None
            return
        if not len(changed):
            return
        for raw, each in zip(self.raw, self.profile.score, strict=True):
            rows = facts_changed if each.plugin.reads is Reads.NODE else changed
            if raw is not None and len(rows):
                view = self.table.view(rows)
                raw[rows] = each.plugin.score(self.score_state, self.pod, view)

    def raw_of_all_rows(self, index: int) -> I64:
        """Compute the raw scores of one plugin over all rows, after PreScore: int64[row]."""
        plugin = self.profile.score[index].plugin
        if self.worker_results is not None and not self.is_bare:
            of_workers = self.worker_results.score(plugin, self.score_state, self.pod, self.table)
            if of_workers is not None:
                return of_workers
        if self.is_bare:
            return bare_scores(plugin, self.score_state, self.pod, self.table, self.feasible)
        return raw_scores(plugin, self.score_state, self.pod, self.table)


def _union(row_sets: list[Rows]) -> Rows:
    """Return the rows of several changes, each once and in ascending order."""
    if len(row_sets) > 1:
        return np.unique(np.concatenate(row_sets))
    return row_sets[0] if row_sets else _NO_ROWS


def _with_rows(row_sets: list[Rows], rows: Rows) -> list[Rows]:
    """Return sets of rows with one more set, merged if there are many."""
    if not len(rows):
        return row_sets
    row_sets = [*row_sets, rows]
    return row_sets if len(row_sets) <= _ROW_SETS_MAX else [_union(row_sets)]


def _read_others(plugins: Iterable[Plugin], state: CycleState) -> bool:
    """Whether one of the plugins that are not skipped reads other nodes than that of the row."""
    return any(each.reads is Reads.CLUSTER and each.name not in state.skipped for each in plugins)

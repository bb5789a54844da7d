"""Evaluation: one class of pods over one table, from PreFilter to raw scores, kept up to date.

The answer for a row depends on the summaries and on the row itself. So after the first full run
only rows that changed are looked at again, and only by plugins that read more than a node's own
facts; new summaries or changed nodes mean a full run.

    update(node_count, filter_summaries)   PreFilter, Filter
    narrow(narrowed)                       where sampling or extenders leave rows out
    own_score_summaries()                  the map of PreScore, over the feasible rows
    update_scores(score_summaries)         PreScore, Score

Upstream: pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes) and
framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from roadstead.framework.cycle_state import CycleState, Summary
from roadstead.framework.failures import (
    filter_status,
    out_of_range,
    score_failure,
)
from roadstead.framework.given import Given
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.narrowed import NOT_SEEN, Narrowed
from roadstead.framework.plugin import FilterPlugin, FilterResult, Plugin, Reads
from roadstead.framework.pre_filtering import PreFilterOutcome, run_pre_filter
from roadstead.framework.profile import Profile
from roadstead.framework.scoring import bare_scores, raw_scores, run_pre_score
from roadstead.framework.tried_rows import TriedRows
from roadstead.framework.what_if import PASSED, WhatIf, counted_for
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.protocol.status import SUCCESS, Code, Status

Summaries = Mapping[str, Summary]

EXCLUDED = -1
"""Filter code of a row that PreFilter's node names leave out."""

_NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
_PARTS_MAX = 64  # changes kept apart until they are scored
_NO_POSITION = np.int32(2**31 - 1)


class Evaluation:
    """Answers of a profile for one class of pods over one table.

    codes: int32[row]: PASSED, EXCLUDED, or k > 0 for `statuses[k - 1]`.
    positions: int32[row], index of the filter plugin that refused (large for none).
    raw: per score plugin int64[row], or None where it was skipped.
    pre_score: Success, or the Error of PreScore or Score.
    is_bare: feasible rows are scored as bare nodes (`roadstead.nodes.bare`).
    weighs_feasible: what was found across nodes for scores hangs on which rows are feasible.
    given: what workers found for the next run over all rows, until that has scored them.
    tried: what dry runs of preemption found of rows under these inputs.
    """

    __slots__ = (
        "_dirty", "_failed_filter", "_failed_score", "_fixed_codes", "_fixed_positions",
        "_has_failed", "_known", "_node_version", "_score_inputs", "_status_code",
        "_version", "added", "codes", "feasible", "given", "is_bare", "node_count", "pod",
        "positions",
        "pre_filter", "pre_score", "profile", "raw", "state", "statuses", "summaries", "table",
        "tried", "weighs_feasible", "wide",
    )  # fmt: skip

    def __init__(self, profile: Profile, pod: PodInfo, table: NodeTable) -> None:
        self.profile = profile
        self.pod = pod
        self.table = table
        self.node_count = -1
        self.codes: I32 = np.zeros(0, dtype=np.int32)
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.summaries: Summaries = {}
        self.statuses: list[Status] = []
        self.pre_filter = PreFilterOutcome(SUCCESS, (), None, ())
        self.pre_score = SUCCESS
        self.raw: list[I64 | None] = []
        self._status_code: dict[Status, int] = {}
        self._node_version = self._version = -1
        self._dirty: list[Rows] | None = None
        self._score_inputs: tuple[object, ...] | None = None
        self._fixed_codes: I32 | None = None
        self._known: Hashable = None
        self._has_failed = False
        self._failed_filter: Status | None = None
        self._failed_score: Status | None = None
        self.weighs_feasible = False
        self.wide: tuple[I32, Bools] | None = None
        self.is_bare = False
        self.added: I64 | None = None
        self.given: Given | None = None
        self.tried = TriedRows()

    def own_filter_summaries(self) -> dict[str, Summary]:
        """This table's part of PreFilter's map; plugins with nothing to say are left out."""
        self._failed_filter = None
        try:
            found = {
                plugin.name: plugin.filter_summary(self.pod, self.table)
                for plugin in self.profile.summarizes_filter
            }
        except PluginFailure as failure:
            self._failed_filter, self._has_failed = failure.status, True
            return {}
        return {name: summary for name, summary in found.items() if summary is not None}

    def update(self, node_count: int, summaries: Summaries) -> Rows | None:
        """Runs PreFilter and Filter as far as anything changed; the rows redone (None: all).

        Raises UnsupportedError where a plugin that is not there yet would be needed.
        """
        self._widen()
        changed = self._rows_to_redo(node_count, summaries)
        if changed is None:
            self.restart(node_count, summaries)
            # Of nodes as they were; where PreFilter refuses, no filter finds them anew.
            self._fixed_codes = None
        self._node_version, self._version = self.table.node_version, self.table.version
        if not self.pre_filter.status.is_success:
            self.feasible = np.zeros(len(self.table), dtype=np.bool_)
        elif changed is None or len(changed):
            self._run_filters(changed)
            self._heed_nominated(changed)
        if changed is None:
            self._dirty = None
        elif self._dirty is not None and len(changed):
            self._dirty.append(changed)
            if len(self._dirty) > _PARTS_MAX:
                self._dirty = [_union(self._dirty)]
        return changed

    def narrow(self, narrowed: Narrowed) -> None:
        """Takes an outside verdict on the feasible rows, until the next `update`.

        PreScore and Score go over what is left. The answers of Filter are kept in `wide`; `added`
        is what comes to the totals from outside: int64[row].
        """
        assert self.wide is None, "narrowed once between two updates"
        self.wide, self.is_bare = (self.codes, self.feasible), narrowed.is_bare
        arrivals = self.table.arrivals
        not_seen = EXCLUDED if self.pre_filter.node_names is not None else self.intern(NOT_SEEN)
        stays = np.isin(arrivals, narrowed.stays)
        codes = self.codes.copy()
        if narrowed.seen is not None:
            codes[~np.isin(arrivals, narrowed.seen)] = not_seen
        codes[self.feasible] = not_seen
        for status, refused in narrowed.refused:
            codes[np.isin(arrivals, refused)] = self.intern(status)
        codes[stays] = PASSED
        self.codes, self.feasible = codes, stays
        if narrowed.scores.any():
            score_of = dict(zip(narrowed.stays.tolist(), narrowed.scores.tolist(), strict=True))
            self.added = np.array([score_of.get(each, 0) for each in arrivals.tolist()], np.int64)
        self._score_inputs = None

    def _widen(self) -> None:
        if self.wide is not None:
            self.codes, self.feasible = self.wide
            self.wide = self.added = self._score_inputs = None
            self.is_bare = False

    def filter_failure(self) -> Status | None:
        """What failed up to Filter, on some node, and ends the cycle; None where all answered."""
        if not self.pre_filter.status.is_success:
            return None
        codes = self.codes if self.wide is None else self.wide[0]
        for code, status in enumerate(self.statuses, start=1):
            if status.code is Code.ERROR and (codes == code).any():
                return status
        return None

    def _rows_to_redo(self, node_count: int, summaries: Summaries) -> Rows | None:
        same = (node_count, summaries) == (self.node_count, self.summaries)
        same = same and self.profile.known_state(self.pod) == self._known
        # After a failure the plugins are asked once more, as upstream does.
        if same and not self._has_failed and self._node_version == self.table.node_version:
            return self.table.rows_changed_since(self._version)
        return None

    def restart(self, node_count: int, summaries: Summaries) -> None:
        """Run PreFilter with these summaries; no row is filtered yet."""
        self.tried.clear()
        self.state = CycleState(node_count)
        self.state.filter_summaries.update(summaries)
        self.pre_filter = run_pre_filter(self.profile, self.state, self.pod, self._failed_filter)
        self._has_failed = self.pre_filter.status.code is Code.ERROR
        known = self.profile.known_state(self.pod)
        if (node_count, summaries, known) != (self.node_count, self.summaries, self._known):
            # The answers of rows are of other inputs: the next update must not keep any of them.
            self._node_version = -1
        self._known = known
        # Set last: after an error the next update starts over.
        self.node_count, self.summaries = node_count, summaries
        self._score_inputs = None

    def is_for(self, node_version: int, known: Hashable) -> bool:
        """Whether it was last found for nodes and a state of plugins (`Profile.known_state`)."""
        return (self._node_version, self._known) == (node_version, known)

    def fixed(self) -> tuple[I32, I32]:
        """(codes, positions) of the plugins that read only NODE facts, and of the node names."""
        assert self._fixed_codes is not None
        return self._fixed_codes, self._fixed_positions

    def intern(self, status: Status) -> int:
        """The code that stands for a status in `codes`."""
        code = self._status_code.get(status)
        if code is None:
            self.statuses.append(status)
            code = self._status_code[status] = len(self.statuses)
        return code

    def _run_filters(self, changed: Rows | None) -> None:
        if changed is None:
            self._fixed_codes, self._fixed_positions = self._run_fixed_filters()
            codes, positions = self._fixed_codes.copy(), self._fixed_positions.copy()
            self._run_live_filters(self.table, codes, positions)
            self.codes, self.positions = codes, positions
            self.feasible = codes == PASSED
            return
        assert self._fixed_codes is not None
        codes, positions = self._fixed_codes[changed], self._fixed_positions[changed]
        self._run_live_filters(self.table.view(changed), codes, positions)
        self.codes[changed], self.positions[changed] = codes, positions
        self.feasible[changed] = codes == PASSED

    def _heed_nominated(self, changed: Rows | None) -> None:
        """Refuses rows on which the pod does not pass beside pods that are nominated to them."""
        if not self.table.nominations:
            return
        nominations, names = self.table.nominations, self.table.columns.names
        asked = nominations if changed is None else [names[row] for row in changed.tolist()]
        rows = self.table.rows_of(name for name in asked if self.nominated_to(name))
        rows = rows[self.codes[rows] != EXCLUDED]
        if len(rows):
            codes = WhatIf(self, rows).filter_with_nominated(np.arange(len(rows)))
            refused = rows[codes != PASSED]
            self.codes[refused] = codes[codes != PASSED]
            self.feasible[refused] = False

    def helpful_rows(self) -> Rows:
        """Rows on which the pod might fit were pods to leave them: refused with Unschedulable."""
        if self.pre_filter.status.code is Code.UNSCHEDULABLE:
            if self._fixed_codes is None:
                self._fixed_codes, self._fixed_positions = self._run_fixed_filters()
            return np.arange(len(self.table))
        if not self.pre_filter.status.is_success:
            return _NO_ROWS
        helpful = [False, *(status.code is Code.UNSCHEDULABLE for status in self.statuses), False]
        return np.flatnonzero(np.array(helpful)[self.codes])

    def nominated_to(self, node_name: str) -> Mapping[PodInfo, int]:
        """The pods nominated to a node that this class must yield to, by class."""
        nominated = self.table.nominations.to(node_name)
        if not nominated:
            return nominated
        is_own = self.pod.facts.nominated_node_name == node_name
        return counted_for(
            self.pod, nominated, self.table.as_nominated(self.pod) if is_own else None
        )

    def _run_fixed_filters(self) -> tuple[I32, I32]:
        rows = len(self.table)
        codes: I32 = np.zeros(rows, dtype=np.int32)
        positions: I32 = np.full(rows, _NO_POSITION, dtype=np.int32)
        names = self.pre_filter.node_names
        # Where PreFilter refuses, preemption tries all nodes, whichever were named.
        if names is not None and self.pre_filter.status.is_success:
            excluded = np.ones(rows, dtype=np.bool_)
            # The nominated node is looked at, named or not (evaluateNominatedNode).
            excluded[self.table.rows_of((*names, self.pod.facts.nominated_node_name))] = False
            codes[excluded], positions[excluded] = EXCLUDED, -1
        self._run_node_filters(self.table, codes, positions)
        return codes, positions

    def fixed_of(self, rows: Rows) -> tuple[I32, I32]:
        """As `fixed`, of some rows alone and whichever nodes PreFilter names; nothing is kept."""
        codes: I32 = np.zeros(len(rows), dtype=np.int32)
        positions: I32 = np.full(len(rows), _NO_POSITION, dtype=np.int32)
        self._run_node_filters(self.table.view(rows), codes, positions)
        return codes, positions

    def _run_node_filters(self, table: Table, codes: I32, positions: I32) -> None:
        for position, plugin in enumerate(self.profile.filter):
            if plugin.reads is Reads.NODE:
                self._apply(plugin, position, table, codes, positions)

    def _run_live_filters(self, table: Table, codes: I32, positions: I32) -> None:
        for position, plugin in enumerate(self.profile.filter):
            if plugin.reads is not Reads.NODE:
                self._apply(plugin, position, table, codes, positions)

    def _apply(
        self, plugin: FilterPlugin, position: int, table: Table, codes: I32, positions: I32
    ) -> None:
        if plugin.name in self.state.skip_filter:
            return
        found = None
        if self.given is not None and table is self.table:
            found = self.given.filter(plugin, self.state, self.pod, self.table)
        if found is None:
            found = plugin.filter(self.state, self.pod, table)
        self.take(plugin, position, found, codes, positions)

    def take(
        self, plugin: Plugin, position: int, result: FilterResult, codes: I32, positions: I32
    ) -> None:
        """Writes the answer of the filter plugin at `position` into codes and positions."""
        if result.codes is None:
            return
        # The first plugin in order speaks; those after it are not asked upstream.
        first = (result.codes > 0) & (positions > position)
        if first.any():
            codes[first] = self._translated(plugin, result)[result.codes[first]]
            self._has_failed |= any(not each.is_rejected for each in result.statuses)
            positions[first] = position

    def _translated(self, plugin: Plugin, result: FilterResult) -> I32:
        own = [self.intern(filter_status(plugin.name, status)) for status in result.statuses]
        return np.array([PASSED, *own], dtype=np.int32)

    def own_score_summaries(self) -> dict[str, Summary]:
        """This table's part of PreScore's map; plugins with nothing to say are left out."""
        self._failed_score = None
        self.weighs_feasible = False
        try:
            found = {
                plugin.name: plugin.score_summary(self.state, self.pod, self.table, self._feasible)
                for plugin in self.profile.summarizes_score
            }
        except PluginFailure as failure:
            self._failed_score, self._score_inputs = failure.status, None
            return {}
        return {name: summary for name, summary in found.items() if summary is not None}

    def _feasible(self) -> Bools:
        self.weighs_feasible = True
        return self.feasible

    def update_scores(self, summaries: Summaries) -> tuple[Status, Rows | None]:
        """Runs PreScore and Score as far as anything changed; an Error of either ends the cycle.

        Returns also the rows whose answers changed since the last call (None: all).
        """
        inputs = (self.node_count, summaries)
        if inputs != self._score_inputs:
            self._dirty = None
            self._score_inputs = inputs
            self.restart_scores(summaries)
        redone = None if self._dirty is None else _union(self._dirty)
        if self.pre_score.is_success:
            self._run_scores(redone)
            self._dirty = []
        if not self.pre_score.is_success:
            self.forget_scores()
        return self.pre_score, redone

    def forget_scores(self) -> None:
        """Scoring failed: the next attempt scores all rows again."""
        self._score_inputs = None

    def restart_scores(self, summaries: Summaries) -> None:
        """Run PreScore with these summaries; no row is scored yet."""
        self.state.skip_score.clear()
        self.state.score_summaries = dict(summaries)
        self.pre_score = run_pre_score(self.profile, self.state, self.pod, self._failed_score)

    def _run_scores(self, changed: Rows | None) -> None:
        try:
            self._score_rows(changed)
        except PluginFailure as failure:
            self.pre_score = score_failure(failure.status)
            return
        for index in self.profile.unchecked_scores:
            raw = self.raw[index]
            plugin = self.profile.score[index].plugin
            if raw is not None:
                self.pre_score = out_of_range(plugin.name, raw[self.feasible]) or self.pre_score

    def _score_rows(self, changed: Rows | None) -> None:
        if changed is None:
            self.raw = [
                None if each.plugin.name in self.state.skip_score else self.first_raw(index)
                for index, each in enumerate(self.profile.score)
            ]
            self.given = None
            return
        if not len(changed):
            return
        view = self.table.view(changed)
        for raw, each in zip(self.raw, self.profile.score, strict=True):
            if raw is not None and each.plugin.reads is not Reads.NODE:
                raw[changed] = each.plugin.score(self.state, self.pod, view)

    def first_raw(self, index: int) -> I64:
        """Raw scores of one plugin over all rows, after PreScore: int64[row]."""
        plugin = self.profile.score[index].plugin
        if self.given is not None and not self.is_bare:
            given = self.given.score(plugin, self.state, self.pod, self.table)
            if given is not None:
                return given
        if self.is_bare:
            return bare_scores(plugin, self.state, self.pod, self.table, self.feasible)
        return raw_scores(plugin, self.state, self.pod, self.table)


def _union(parts: list[Rows]) -> Rows:
    """Rows of several changes, each once and in order."""
    return np.unique(np.concatenate(parts)) if len(parts) > 1 else [*parts, _NO_ROWS][0]

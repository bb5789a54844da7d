"""WorkerResults: answers of users' plugins for a pod class that workers computed.

A worker is an actor that evaluates a part of the nodes for the schedulers.

answers of workers ──► WorkerResults ──► Evaluation uses them in place of a call over all rows
                           └── rows that changed since, or that no worker answered: called here
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import (
    FilterPlugin,
    FilterResult,
    PermitPlugin,
    Plugin,
    PodDeletionPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from roadstead.framework.profile import Profile
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.status import Status

FILTER, SCORE = "Filter", "Score"


def worker_calls(profile: Profile) -> tuple[tuple[Plugin, str], ...]:
    """Return (plugin, FILTER or SCORE) of users' plugins that workers can call.

    Those whose answers depend on pod and row only: plugins that keep data from pod to pod, or read
    other nodes, are excluded.
    """
    filters = ((plugin, FILTER) for plugin in profile.filter)
    scores = ((each.plugin, SCORE) for each in profile.score)
    return tuple(
        (plugin, point)
        for plugin, point in (*filters, *scores)
        if plugin.is_guarded and plugin.reads < Reads.CLUSTER and not _is_stateful(plugin)
    )


def _is_stateful(plugin: Plugin) -> bool:
    storing = (PodDeletionPlugin, ReservePlugin, PermitPlugin)
    return isinstance(plugin, storing) or type(plugin).state_version is not Plugin.state_version


@dataclass(slots=True)
class WorkerResults:
    """Answers for one class over all rows of a table.

    node_version, version: those of the table (of nodes, and of all) for which the answers are
    valid. redo: rows without valid answers. filters, scores: by the plugin's name; scores:
    int64[row], or a smaller integer type.
    """

    node_version: int
    version: int
    redo: Bools
    filters: Mapping[str, FilterResult]
    scores: Mapping[str, I64]
    # Cached: (version of the table, rows to evaluate at that version).
    _redo_at: tuple[int, Rows] | None = field(default=None, init=False)

    def filter(
        self, plugin: FilterPlugin, state: CycleState, pod: PodClass, table: NodeTable
    ) -> FilterResult | None:
        """Return a plugin's answer for all rows; None without one, or if it is no longer valid."""
        found, rows = self.filters.get(plugin.name), self._rows_to_redo(table)
        if found is None or rows is None:
            return None
        if not len(rows):
            return found
        return merged(found, plugin.filter(state, pod, table.view(rows)), rows, len(table))

    def score(
        self, plugin: ScorePlugin, state: CycleState, pod: PodClass, table: NodeTable
    ) -> I64 | None:
        """Return a plugin's raw scores of all rows as a new array; None as for `filter`."""
        found, rows = self.scores.get(plugin.name), self._rows_to_redo(table)
        if found is None or rows is None:
            return None
        scores: I64 = found.astype(np.int64)
        if len(rows):
            scores[rows] = plugin.score(state, pod, table.view(rows))
        return scores

    def _rows_to_redo(self, table: NodeTable) -> Rows | None:
        if table.node_version != self.node_version:
            return None
        if self._redo_at is None or self._redo_at[0] != table.version:
            redo = self.redo.copy()
            redo[table.rows_changed_since(self.version)] = True
            self._redo_at = table.version, np.flatnonzero(redo)
        return self._redo_at[1]


def merged(all_rows: FilterResult, some: FilterResult, rows: Rows, count: int) -> FilterResult:
    """Return an answer for `count` rows, of which `rows` were evaluated again (`some`)."""
    code_of: dict[Status, int] = {}
    codes = np.zeros(count, np.int32)
    if all_rows.codes is not None:
        codes[:] = _translated(all_rows, code_of)
    codes[rows] = 0 if some.codes is None else _translated(some, code_of)
    return FilterResult(codes, tuple(code_of))


def _translated(result: FilterResult, code_of: dict[Status, int]) -> I64:
    assert result.codes is not None
    codes = [0, *(code_of.setdefault(each, len(code_of) + 1) for each in result.statuses)]
    return np.array(codes, np.int64)[result.codes]

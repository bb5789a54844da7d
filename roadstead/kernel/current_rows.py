"""CurrentRows: the rows that pass filters whose answers change without the table, for one class.

Such a filter (`FilterPlugin.reads_current`) is called before each pod of the class, for the rows
that it may answer otherwise than before (`FilterPlugin.changed_rows`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import FilterPlugin, Plugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.table import Rows, Table


class CurrentRows:
    """The rows that pass; `passes` includes the filters that read NODE facts: bool[row].

    _positions: by filter, up to which changes `passes` has its answers.
    """

    def __init__(
        self, evaluation: Evaluation, pre_filter: PreFilterOutcome, passing: Bools
    ) -> None:
        self._evaluation = evaluation
        self._state = pre_filter.state
        self._plugins = current_filters(evaluation)
        self._static = passing
        self._lasting = evaluation.profile.lasting_state_version(evaluation.pod)
        self._positions = [0] * len(self._plugins)
        self.passes: Bools = np.zeros(0, dtype=np.bool_)

    def find(self) -> bool:
        """Call the filters for all rows; return whether that was possible without an error."""
        _, positions = self._changed()
        passes = self._passing(self._evaluation.table, self._static.copy())
        if passes is None:
            return False
        self.passes, self._positions = passes, positions
        return True

    def renew(self) -> Rows | None:
        """Call the filters again where they may have changed; return the rows whose answer did.

        None if all results must be computed again: there is an error, or other state changed.
        """
        pod, profile, before = self._evaluation.pod, self._evaluation.profile, self.passes
        if profile.lasting_state_version(pod) != self._lasting:
            return None
        rows, positions = self._changed()
        if rows is None:
            return np.flatnonzero(before != self.passes) if self.find() else None
        if len(rows):
            passes = self._passing(self._evaluation.table.view(rows), self._static[rows])
            if passes is None:
                return None
            rows = rows[passes != before[rows]]
            self.passes[rows] = ~before[rows]
        self._positions = positions
        return rows

    def _changed(self) -> tuple[Rows | None, list[int]]:
        """Return the rows that a filter may answer otherwise than for `passes`, and positions.

        None: all rows.
        """
        table, found, positions = self._evaluation.table, list[Rows | None](), list[int]()
        for plugin, before in zip(self._plugins, self._positions, strict=True):
            rows, position = plugin.changed_rows(table, before)
            found.append(rows)
            positions.append(position)
        listed = [each for each in found if each is not None]
        if len(listed) < len(found):
            return None, positions
        return listed[0] if len(listed) == 1 else np.unique(np.concatenate(listed)), positions

    def _passing(self, table: Table, passes: Bools) -> Bools | None:
        """Return which rows of a table pass all filters. passes: those that pass all others."""
        for plugin in self._plugins:
            found = plugin.filter(self._state, self._evaluation.pod, table)
            if found.codes is None:
                continue
            if not all(status.is_rejected for status in found.statuses):
                return None
            passes &= found.codes == 0
        return passes


def with_current(
    evaluation: Evaluation, pre_filter: PreFilterOutcome, static: StaticScores
) -> tuple[StaticScores, CurrentRows] | None:
    """Return the static scores of a class with the rows that pass now; None after an error."""
    rows = CurrentRows(evaluation, pre_filter, static.passes)
    return (replace(static, passes=rows.passes.copy()), rows) if rows.find() else None


def current_filters(evaluation: Evaluation) -> list[FilterPlugin]:
    """Return the filters of a class that are called before each of its pods."""
    skipped, pod = evaluation.state.skipped, evaluation.pod
    filters = evaluation.profile.filter
    return [each for each in filters if each.name not in skipped and each.reads_current(pod)]


def is_current(plugin: Plugin) -> bool:
    """Whether a plugin is a filter that is called before each pod, for some pods."""
    own = type(plugin)
    return issubclass(own, FilterPlugin) and own.reads_current is not FilterPlugin.reads_current

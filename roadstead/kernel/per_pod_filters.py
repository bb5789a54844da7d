"""PerPodFilters: filters of one class whose results change although the table does not.

Such results depend on state outside the table, such as allocated devices. Such a filter
(`FilterPlugin.runs_per_pod`) is called before each pod of the class, for the rows on which its
result may have changed (`FilterPlugin.changed_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import and_

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import FilterPlugin, Plugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.table import Rows, Table

_NO_ROWS: Rows = np.zeros(0, np.intp)


class PerPodFilters:
    """The filters, and the rows that pass.

    passes: bool[row], rows that pass these filters and the static ones. _passing_static: rows that
    pass the static filters, which read only the node's own labels, taints and images.
    _last_changes: for each filter, the number of its last change that `passes` includes; a filter
    numbers its changes.
    """

    def __init__(
        self, evaluation: Evaluation, pre_filter: PreFilterOutcome, passing_static: Bools
    ) -> None:
        self._evaluation = evaluation
        self._state = pre_filter.state
        self._plugins = filters_called_per_pod(evaluation)
        self._passing_static = passing_static
        # Version of the state that other extension points than Filter read. If it changes, calls of
        # these filters cannot update the results.
        self._other_state = evaluation.profile.prefilter_state_version(evaluation.pod)
        self._last_changes = [0] * len(self._plugins)
        self.passes: Bools = np.zeros(0, dtype=np.bool_)

    def call_all(self) -> bool:
        """Call the filters for all rows; return False, with nothing changed, if one failed."""
        _, last_changes = self._changed_rows()
        passes = self._passing(self._evaluation.table, self._passing_static.copy())
        if passes is None:
            return False
        self.passes, self._last_changes = passes, last_changes
        return True

    def call_again(self) -> Rows | None:
        """Call the filters for rows whose result may have changed; return the rows where it has.

        None if all results of the class must be computed again: a filter failed, or other state
        changed.
        """
        pod, profile, before = self._evaluation.pod, self._evaluation.profile, self.passes
        if profile.prefilter_state_version(pod) != self._other_state:
            return None
        candidates, last_changes = self._changed_rows()
        if candidates is None:
            return np.flatnonzero(before != self.passes) if self.call_all() else None
        rows = self._changed_of(candidates)
        if rows is not None:
            # Only rows whose result changed are here, so each new result is the opposite.
            self.passes[rows] = ~before[rows]
            self._last_changes = last_changes
        return rows

    def _changed_of(self, candidates: list[int]) -> Rows | None:
        """Return the candidate rows whose result differs from `passes`; None after an error."""
        if not candidates:
            return _NO_ROWS
        known = self._known_passes(candidates)
        if known is not None:
            # There are few candidates: a loop takes less time than calls of NumPy.
            before, static = self.passes.data, self._passing_static.data
            results = zip(candidates, known, strict=True)
            changed = [row for row, now in results if before[row] != (now and static[row])]
            return np.array(changed, np.intp) if changed else _NO_ROWS
        rows = np.array(candidates, np.intp)
        passes = self._passing(self._evaluation.table.view(rows), self._passing_static[rows])
        return None if passes is None else rows[passes != self.passes[rows]]

    def _known_passes(self, rows: Sequence[int]) -> list[bool] | None:
        """Return which of some rows pass these filters; None if only a call can answer."""
        pod, table = self._evaluation.pod, self._evaluation.table
        passes: list[bool] | None = None
        for plugin in self._plugins:
            found = plugin.known_passes(self._state, pod, table, rows)
            if found is None:
                return None
            passes = found if passes is None else [*map(and_, passes, found)]
        return passes

    def _changed_rows(self) -> tuple[list[int] | None, list[int]]:
        """Return the rows whose result may differ from `passes`, and new `_last_changes`.

        None for rows: any may differ.
        """
        table = self._evaluation.table
        last_changes: list[int] = []
        candidates: list[int] | None = []
        for plugin, known in zip(self._plugins, self._last_changes, strict=True):
            rows, last_change = plugin.changed_rows(table, known)
            last_changes.append(last_change)
            if rows is None or candidates is None:
                candidates = None
            else:
                # Mostly there is one such filter, so the rows are not copied.
                candidates = [*{*candidates, *rows}] if candidates else rows
        return candidates, last_changes

    def _passing(self, table: Table, passes: Bools) -> Bools | None:
        """Return which rows of a table pass all filters; None after an error.

        passes: rows that pass the static filters; updated in place.
        """
        for plugin in self._plugins:
            result = plugin.filter(self._state, self._evaluation.pod, table)
            # codes: None if all rows pass; 0 for a row that passes, else the number of a status.
            if result.codes is None:
                continue
            if not all(status.is_rejected for status in result.statuses):
                return None
            passes &= result.codes == 0
        return passes


def with_per_pod_filters(
    evaluation: Evaluation, pre_filter: PreFilterOutcome, static: StaticScores
) -> tuple[StaticScores, PerPodFilters] | None:
    """Return the static scores of a class with the rows that pass now; None after an error."""
    filters = PerPodFilters(evaluation, pre_filter, static.passes)
    if not filters.call_all():
        return None
    return replace(static, passes=filters.passes.copy()), filters


def filters_called_per_pod(evaluation: Evaluation) -> list[FilterPlugin]:
    """Return the filters of a class that are called before each of its pods."""
    skipped, pod = evaluation.state.skipped, evaluation.pod
    filters = evaluation.profile.filter
    return [each for each in filters if each.name not in skipped and each.runs_per_pod(pod)]


def is_called_per_pod(plugin: Plugin) -> bool:
    """Whether a plugin is a filter that may be called before each pod of some classes."""
    # `runs_per_pod` needs a pod; here only whether a plugin overrides it is known.
    plugin_type = type(plugin)
    return (
        issubclass(plugin_type, FilterPlugin)
        and plugin_type.runs_per_pod is not FilterPlugin.runs_per_pod
    )

"""CurrentRows: the rows that pass filters whose answers change without the table, for one class.

Such a filter (`FilterPlugin.reads_current`) is called for all rows before each pod of the class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import FilterPlugin, Plugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.table import Rows


class CurrentRows:
    """The rows that pass; `passes` includes the filters that read NODE facts: bool[row]."""

    def __init__(
        self, evaluation: Evaluation, pre_filter: PreFilterOutcome, passing: Bools
    ) -> None:
        self._evaluation = evaluation
        self._state = pre_filter.state
        self._plugins = current_filters(evaluation)
        self._static = passing
        self._lasting = evaluation.profile.lasting_state_version(evaluation.pod)
        self.passes: Bools = np.zeros(0, dtype=np.bool_)

    def find(self) -> bool:
        """Call the filters; return whether that was possible without an error on some row."""
        passes = self._passing()
        if passes is None:
            return False
        self.passes = passes
        return True

    def renew(self) -> Rows | None:
        """Call the filters again; return the rows whose answer changed.

        None if all results must be computed again: there is an error, or other state changed.
        """
        before = self.passes
        pod, profile = self._evaluation.pod, self._evaluation.profile
        if profile.lasting_state_version(pod) != self._lasting or not self.find():
            return None
        return np.flatnonzero(before != self.passes)

    def _passing(self) -> Bools | None:
        passes = self._static.copy()
        for plugin in self._plugins:
            found = plugin.filter(self._state, self._evaluation.pod, self._evaluation.table)
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
    return (replace(static, passes=rows.passes), rows) if rows.find() else None


def current_filters(evaluation: Evaluation) -> list[FilterPlugin]:
    """Return the filters of a class that are called before each of its pods."""
    skipped, pod = evaluation.state.skipped, evaluation.pod
    filters = evaluation.profile.filter
    return [each for each in filters if each.name not in skipped and each.reads_current(pod)]


def is_current(plugin: Plugin) -> bool:
    """Whether a plugin is a filter that is called before each pod, for some pods."""
    own = type(plugin)
    return issubclass(own, FilterPlugin) and own.reads_current is not FilterPlugin.reads_current

"""Errors of plugins whose Filter or Score runs without their PreFilter or PreScore.

Most plugins then return an Error, because their data is missing in the CycleState; it fails the
attempt of every pod that reaches them. The others (`unprepared` is "") work without the data.

Upstream: getPreFilterState and getPreScoreState of the plugins; framework/runtime/framework.go
(RunFilterPlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import FilterPlugin, FilterResult, Plugin, Reads, ScorePlugin
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import SUCCESS, Code, Status


class UnpreparedFilter(FilterPlugin):
    """A filter that fails for every node, under the name of the plugin that it replaces."""

    reads = Reads.NODE

    def __init__(self, plugin: FilterPlugin) -> None:
        self.name = plugin.name  # type: ignore[misc]
        self._status = Status(Code.ERROR, (plugin.unprepared,))

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        return FilterResult.refuse(np.ones(len(table), dtype=np.bool_), self._status)

    def sign(self, pod: PodFacts) -> Hashable | None:
        return ()


def prepared(plugin: FilterPlugin, pre_filter: Collection[Plugin]) -> FilterPlugin:
    """Return the plugin, or a failing filter if it needs a PreFilter that is not among these."""
    return UnpreparedFilter(plugin) if plugin.unprepared and plugin not in pre_filter else plugin


def unprepared_score(score: Iterable[ScorePlugin], pre_score: Collection[Plugin]) -> Status:
    """Return Success, or the Error of the first Score plugin that lacks a PreScore it needs."""
    for plugin in score:
        if plugin.unprepared_score and plugin not in pre_score:
            text = f'running Score plugins: plugin "{plugin.name}" failed with: '
            return Status(Code.ERROR, (text + plugin.unprepared_score,), plugin.name)
    return SUCCESS

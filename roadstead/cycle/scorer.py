"""Scorer: calls users' plugins for pod classes on the rows of one worker.

A worker has every Nth node in the order in which nodes were added; a node's number in this order is
its arrival. It calls the plugins whose answers depend on pod and row only; the scheduler calls all
others and normalizes scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

import numpy as np

from roadstead.cycle.messages import PluginColumn, WireStatus
from roadstead.cycle.worker_rows import RowsByArrival
from roadstead.facts.wire import decode_facts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreparesScore,
    ScorePlugin,
)
from roadstead.framework.profile import Profile
from roadstead.framework.worker_results import FILTER, SCORE, worker_calls
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Table
from roadstead.protocol.status import Code, Status

_DTYPES = (np.int8, np.int16, np.int32, np.int64)
_DTYPE_OF_SIZE = {np.dtype(each).itemsize: each for each in _DTYPES}


class Scorer:
    """Evaluate classes on the rows of one worker, with the profiles of its process."""

    def __init__(self, table: NodeTable, profiles: Mapping[str, Profile]) -> None:
        self.table = table
        self.by_arrival = RowsByArrival(table)
        self._profiles = profiles

    @property
    def digest(self) -> int:
        """The digest of the rows in order of arrival."""
        return self.by_arrival.digest

    def arrivals_of(self, names: set[str]) -> I64:
        """Return the arrivals of those of the nodes that are in the table: int64[k]."""
        return self.table.arrivals[self.table.rows_of(names)].astype(np.int64)

    def columns(self, facts: bytes, node_count: int) -> tuple[PluginColumn, ...]:
        """Return the plugins' results for a class, without plugins that return Skip or fail.

        facts: of the class, encoded. node_count: nodes of the cluster, not only of the worker.
        """
        pod = self.table.classes.pod_class(decode_facts(facts))
        profile = self._profiles[pod.facts.scheduler_name]
        state = CycleState(node_count)
        # Plugins of PreScore and Score can also read what PreFilter wrote.
        states = {FILTER: state, SCORE: CycleState(node_count, before=state)}
        plugins = worker_calls(profile)
        failed = _prepare(profile, states, pod)
        columns = (
            self._column(plugin, point, states[point], pod)
            for plugin, point in plugins
            if plugin.name not in failed
        )
        return tuple(each for each in columns if each is not None)

    def _column(
        self, plugin: Plugin, point: str, state: CycleState, pod: PodClass
    ) -> PluginColumn | None:
        if plugin.name in state.skipped:
            return None
        statuses: tuple[Status, ...] = ()
        try:
            if isinstance(plugin, FilterPlugin) and point == FILTER:
                answer = plugin.filter(state, pod, self.table)
                # codes None: all rows pass. One value is sent for all rows.
                values = np.zeros(1, np.int64) if answer.codes is None else answer.codes
                statuses = answer.statuses
            else:
                assert isinstance(plugin, ScorePlugin), "`worker_calls` has filters and scores only"
                values = plugin.score(state, pod, self.table)
        except PluginFailure:
            return None
        size, data = packed(values if len(values) == 1 else values[self.by_arrival.order])
        return PluginColumn(plugin.name, point, size, data, tuple(map(WireStatus.of, statuses)))


def _prepare(profile: Profile, states: Mapping[str, CycleState], pod: PodClass) -> set[str]:
    """Run PreFilter and PreScore of users' plugins; return the names of those that failed.

    They read what other users' plugins wrote to the state, but nothing of in-tree plugins, which
    may read other nodes. A plugin that reads the nodes fails, because the worker has only some.
    """
    failed: set[str] = set()
    phases: tuple[tuple[str, Sequence[Plugin]], ...] = (
        (FILTER, profile.pre_filter),
        (SCORE, profile.preparing_score),
    )
    for point, plugins in phases:
        # Users' plugins are guarded: their failures are caught.
        for plugin in (each for each in plugins if each.is_guarded):
            try:
                status = _run_plugin(plugin, point, states[point], pod)
            except PluginFailure:
                failed.add(plugin.name)
                continue
            if status.is_skip:
                states[point].skipped.add(plugin.name)
            elif not status.is_success:
                failed.add(plugin.name)
    return failed


def _run_plugin(plugin: Plugin, point: str, state: CycleState, pod: PodClass) -> Status:
    rows = _UnreadableTable(plugin.name)
    if point == FILTER:
        assert isinstance(plugin, PreFilterPlugin), "a plugin of PreFilter"
        return plugin.pre_filter(state, pod, cast(Table, rows)).status
    assert isinstance(plugin, PreparesScore), "a plugin of PreScore"
    return plugin.pre_score(state, pod, cast(Table, rows), rows.feasible_rows)


class _UnreadableTable:
    """In place of a table: fails plugins that read it, so that the scheduler calls them."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> NoReturn:
        status = Status(Code.ERROR, ("it reads all nodes",), self._plugin)
        raise PluginFailure(name, status)

    def __len__(self) -> int:
        return len(self.names)

    def feasible_rows(self) -> Bools:
        """Fail as any other access: the worker does not know which rows are feasible."""
        return self.feasible


def packed(values: I32 | I64) -> tuple[int, bytes]:
    """Return (bytes per integer, the integers), or (0, one integer of 8 bytes) if all are equal."""
    if not len(values) or (values[0] == values).all():
        return 0, np.array(values[:1], np.int64).tobytes()
    least, most = int(values.min()), int(values.max())
    dtype = next(d for d in _DTYPES if np.iinfo(d).min <= least and most <= np.iinfo(d).max)
    return np.dtype(dtype).itemsize, values.astype(dtype).tobytes()


def unpacked(column: PluginColumn, rows: int) -> I64:
    """Return a column's values: int[1] or int[rows]. Raises ValueError for another length."""
    if column.size == 0:
        return np.frombuffer(column.data, np.int64)
    values: I64 = np.frombuffer(column.data, _DTYPE_OF_SIZE[column.size])
    if len(values) != rows:
        raise ValueError(f"{column.plugin} answered for {len(values)} of {rows} rows")
    return values

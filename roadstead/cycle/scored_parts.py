"""ScoredParts: merges the answers of several workers for their rows into one for a whole table.

A worker's table may be ahead of the scheduler's or behind: the scheduler itself evaluates the rows
that changed between the two (*touched*), and all rows of a worker that did not answer or has other
nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from roadstead.cycle.messages import PluginColumn, ScoreAnswer
from roadstead.cycle.scorer import unpacked
from roadstead.cycle.worker_rows import WorkerRows
from roadstead.framework.plugin import FilterResult
from roadstead.framework.worker_results import FILTER, WorkerResults, merged
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows

MIN_PLUGINS_S = 0.001
"""If users' plugins take less than this per class, messages to workers would take longer."""

Column = tuple[str, str]
"""(plugin, point)."""


class ScoredParts:
    """Merge answers for a table that holds all nodes. rows: those of each worker."""

    def __init__(self, table: NodeTable, workers: int) -> None:
        self._table = table
        self.rows = WorkerRows(table, workers)

    def merge_answers(
        self,
        answers: Mapping[int, ScoreAnswer],
        touched: Mapping[int, Iterable[str] | None],
        classes: int,
        version: int | None = None,
    ) -> list[WorkerResults] | None:
        """Return the results for each class; None if no answer is usable.

        answers: by worker. touched: by worker, nodes that may differ between this table and the
        worker's; None if unknown. version: the table version up to which `touched` is complete; by
        default the current one.
        """
        version = self._table.version if version is None else version
        # Rows that the scheduler evaluates itself.
        redo: Bools = np.ones(len(self._table), np.bool_)
        usable: dict[int, ScoreAnswer] = {}
        for worker, answer in answers.items():
            names = touched[worker]
            fits_request = self._has_rows_and_classes(worker, answer, classes)
            if names is None or answer.touched is None or not fits_request:
                continue
            usable[worker] = answer
            redo[self.rows.of(worker)] = False
            arrivals = np.frombuffer(answer.touched, np.int64)
            redo[np.flatnonzero(np.isin(self._table.arrivals, arrivals))] = True
            redo[self._table.rows_of(n for n in names if self._table.has_node(n))] = True
        if not usable:
            return None
        return [self._class_results(usable, index, redo, version) for index in range(classes)]

    def _has_rows_and_classes(self, worker: int, answer: ScoreAnswer, classes: int) -> bool:
        has_rows = self.rows.are_rows_of(worker, answer.rows, answer.digest)
        return has_rows and len(answer.classes) == classes

    def _class_results(
        self, usable: Mapping[int, ScoreAnswer], index: int, redo: Bools, version: int
    ) -> WorkerResults:
        """Merge the results of one class for plugins of which all these workers have results."""
        by_column: dict[Column, list[tuple[Rows, PluginColumn]]] = {}
        for worker, answer in usable.items():
            for column in answer.classes[index]:
                columns = by_column.setdefault((column.plugin, column.point), [])
                columns.append((self.rows.of(worker), column))
        complete = {
            key: columns for key, columns in by_column.items() if len(columns) == len(usable)
        }
        filters = {
            key[0]: self._filter(columns) for key, columns in complete.items() if key[1] == FILTER
        }
        scores = {
            key[0]: self._scores(columns) for key, columns in complete.items() if key[1] != FILTER
        }
        return WorkerResults(self.rows.node_version, version, redo, filters, scores)

    def _scores(self, columns: Sequence[tuple[Rows, PluginColumn]]) -> I64:
        parts = [(rows, unpacked(column, len(rows))) for rows, column in columns]
        result: I64 = np.zeros(len(self._table), np.result_type(*(part for _, part in parts)))
        for rows, part in parts:
            result[rows] = part
        return result

    def _filter(self, columns: Sequence[tuple[Rows, PluginColumn]]) -> FilterResult:
        result, count = FilterResult(), len(self._table)
        for rows, column in columns:
            codes = np.broadcast_to(unpacked(column, len(rows)), len(rows)).astype(np.int32)
            part = FilterResult(codes, tuple(each.status() for each in column.statuses))
            result = merged(result, part, rows, count)
        return result

"""Mirror: a copy of a table's numbers in which the resources of a row are contiguous.

The kernel counts its placements here; they are applied to the table before it is read (`flush`).
Rows of the table that others changed are copied again (`refresh`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.tie_break import BUCKET_BITS, Chooser
from roadstead.kernel.amounts import are_large
from roadstead.kernel.arrays import BUCKETS, Numbers
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows


class Mirror:
    """Numbers of all rows of a table, to which no nodes are added while the mirror is used.

    None is removed, either. blocked: computes `Numbers.blocked` of rows. has_large_amounts: whether
    an amount was copied for which compiled scores are not exact.
    """

    def __init__(
        self, table: NodeTable, chooser: Chooser, blocked: Callable[[NodeTable, Rows], Bools]
    ) -> None:
        self.table = table
        self._version = table.version
        self._blocked = blocked
        self._is_random = chooser.tie_break.kind == "random"
        self.numbers = self._copy_all(*chooser.order(table))
        numbers = self.numbers
        self.has_large_amounts = are_large(numbers.allocatable) or are_large(numbers.requested)

    def _bucket_starts(self, order: NDArray[np.uint64]) -> I64:
        """Return the first position of each bucket, and the end of the last one."""
        if self._is_random:
            bounds = np.arange(1, BUCKETS, dtype=np.uint64) << np.uint64(64 - BUCKET_BITS)
            begin: I64 = np.searchsorted(order, bounds).astype(np.int64)
        else:
            begin = np.arange(1, BUCKETS) * len(order) // BUCKETS
        return np.concatenate([[0], begin, [len(order)]])

    def _copy_all(self, order: NDArray[np.uint64], row_at: Rows) -> Numbers:
        table, columns = self.table, self.table.columns
        columns.fit_resources()
        rows = slice(0, columns.size)
        position_of = np.empty_like(row_at)
        position_of[row_at] = np.arange(len(row_at))
        begin = self._bucket_starts(order[row_at])
        return Numbers(
            allocatable=np.ascontiguousarray(columns.allocatable[:, rows].T),
            requested=np.ascontiguousarray(columns.requested[:, rows].T),
            nonzero=np.ascontiguousarray(columns.nonzero_requested[:, rows].T),
            pod_count=columns.pod_count[rows].copy(),
            pod_limit=columns.allocatable_pods[rows].copy(),
            order=order[row_at],
            row_at=row_at,
            position_of=position_of,
            begin=begin,
            bucket=np.repeat(np.arange(BUCKETS, dtype=np.int32), np.diff(begin)),
            blocked=self._blocked(table, np.arange(len(table))),
        )

    def refresh(self) -> Rows:
        """Copy the rows that others changed, and return them."""
        rows = self.table.rows_changed_since(self._version)
        if len(rows):
            columns, numbers = self.table.columns, self.numbers
            # No class of this kernel requests resources that the table has added since.
            known = numbers.requested.shape[1]
            if self.table.node_version > self._version:
                numbers.allocatable[rows] = columns.allocatable[:known, rows].T
                numbers.pod_limit[rows] = columns.allocatable_pods[rows]
                self.has_large_amounts |= are_large(numbers.allocatable[rows])
            requested = columns.requested[:known, rows].T
            numbers.requested[rows] = requested
            self.has_large_amounts |= are_large(requested)
            numbers.nonzero[rows] = columns.nonzero_requested[:, rows].T
            numbers.pod_count[rows] = columns.pod_count[rows]
            numbers.blocked[rows] = self._blocked(self.table, rows)
        self._version = self.table.version
        return rows

    def mark_current(self) -> None:
        """Record that the table has all placements that were counted here."""
        self._version = self.table.version

"""Mirror: a copy of a table's amounts in which the resources of a row are contiguous.

The kernel counts its placements here; `Kernel.flush` applies them to the table before it is read.
Rows of the table that others changed are copied again (`refresh`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.tie_break import BUCKET_BITS, Chooser
from roadstead.kernel.amounts import are_inexact
from roadstead.kernel.arrays import BUCKETS, RowArrays
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows


class Mirror:
    """The amounts of all rows of a table, whose set of nodes stays while the mirror is used.

    ports_in_use: function of a table and rows → which of the host ports that pods of the kernel
    request are in use there (`RowArrays.ports_in_use`).
    has_inexact_amounts: whether an amount was copied for which compiled scores are not exact.
    _version: the table's version up to which changes were copied.
    """

    def __init__(
        self, table: NodeTable, chooser: Chooser, ports_in_use: Callable[[NodeTable, Rows], Bools]
    ) -> None:
        self.table = table
        self._version = table.version
        self._ports_in_use = ports_in_use
        self._is_random = chooser.tie_break.kind == "random"
        self.row_arrays = self._copy_all(*chooser.order(table))
        row_arrays = self.row_arrays
        self.has_inexact_amounts = are_inexact(row_arrays.allocatable) or are_inexact(
            row_arrays.requested
        )

    def _bucket_starts(self, sort_keys: NDArray[np.uint64]) -> I64:
        """Return the first position of each bucket, and the end of the last one.

        sort_keys: of the rows, ascending.
        """
        # Random keys are spread evenly, so that their upper bits determine the bucket.
        if self._is_random:
            bounds = np.arange(1, BUCKETS, dtype=np.uint64) << np.uint64(64 - BUCKET_BITS)
            begin: I64 = np.searchsorted(sort_keys, bounds).astype(np.int64)
        else:
            begin = np.arange(1, BUCKETS) * len(sort_keys) // BUCKETS
        return np.concatenate([[0], begin, [len(sort_keys)]])

    def _copy_all(self, sort_key_of: NDArray[np.uint64], row_at: Rows) -> RowArrays:
        """Return the arrays of all rows. sort_key_of: uint64[row]. row_at: int64[position]."""
        table, columns = self.table, self.table.columns
        columns.fit_resources()
        rows = slice(0, columns.size)
        position_of = np.empty_like(row_at)
        position_of[row_at] = np.arange(len(row_at))
        sort_keys = sort_key_of[row_at]
        begin = self._bucket_starts(sort_keys)
        return RowArrays(
            allocatable=np.ascontiguousarray(columns.allocatable[:, rows].T),
            requested=np.ascontiguousarray(columns.requested[:, rows].T),
            nonzero=np.ascontiguousarray(columns.nonzero_requested[:, rows].T),
            pod_count=columns.pod_count[rows].copy(),
            pod_limit=columns.allocatable_pods[rows].copy(),
            sort_keys=sort_keys,
            row_at=row_at,
            position_of=position_of,
            bucket_begin=begin,
            bucket_of=np.repeat(np.arange(BUCKETS, dtype=np.int32), np.diff(begin)),
            ports_in_use=self._ports_in_use(table, np.arange(len(table))),
        )

    def refresh(self) -> Rows:
        """Copy the rows that others changed, and return them."""
        rows = self.table.rows_changed_since(self._version)
        if len(rows):
            columns, row_arrays = self.table.columns, self.row_arrays
            # No class of this kernel requests resources that the table has added since.
            copied = row_arrays.requested.shape[1]
            if self.table.node_version > self._version:
                row_arrays.allocatable[rows] = columns.allocatable[:copied, rows].T
                row_arrays.pod_limit[rows] = columns.allocatable_pods[rows]
                self.has_inexact_amounts |= are_inexact(row_arrays.allocatable[rows])
            requested = columns.requested[:copied, rows].T
            row_arrays.requested[rows] = requested
            self.has_inexact_amounts |= are_inexact(requested)
            row_arrays.nonzero[rows] = columns.nonzero_requested[:, rows].T
            row_arrays.pod_count[rows] = columns.pod_count[rows]
            row_arrays.ports_in_use[rows] = self._ports_in_use(self.table, rows)
        self._version = self.table.version
        return rows

    def mark_current(self) -> None:
        """Record that all placements that were counted here are now on the table."""
        self._version = self.table.version

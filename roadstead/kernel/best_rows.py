"""Lists: the best rows of classes, found by workers and laid out for the compiled code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.kernel.arrays import U64, Lists, RowArrays
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.table import Rows


@dataclass(frozen=True, slots=True)
class BestRows:
    """The best rows of some classes, on the current state of a table; see `arrays.Lists`.

    signatures: of the classes. rows: int64[class, k]; totals: int32[class, k]; summary:
    int64[class, 4], without the normalized score; bound_rank: uint64[class]. tie_break_hashes:
    uint64[class], with which the ranks were computed. excluded: rows that the lists leave out.
    """

    signatures: Sequence[Hashable]
    rows: I64
    totals: I32
    summary: I64
    bound_rank: U64
    tie_break_hashes: U64
    excluded: Rows


def no_lists(classes: int, row_arrays: RowArrays) -> Lists:
    """Return the arrays for classes that have no list."""
    resources, ports = row_arrays.requested.shape[1], row_arrays.ports_in_use.shape[1]
    return _lists(
        np.full(classes, -1, np.int64),
        (np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int32), np.zeros((0, 5), np.int64)),
        (np.zeros(0, np.uint64), np.zeros(0, np.uint64)),
        (np.zeros(0, np.int64), np.zeros(0, np.int64), 0),
        (resources, ports),
    )


def lay_out(best: BestRows, list_of_class: I64, row_arrays: RowArrays, placements: int) -> Lists:
    """Return the arrays of lists.

    list_of_class: int64[class of the kernel]. placements: maximum number of placements; each
    changes a row.
    """
    excluded = len(best.excluded)
    changed_rows = np.zeros(excluded + placements, np.int64)
    changed_rows[:excluded] = best.excluded
    changed_index = np.full(len(row_arrays.row_at), -1, np.int64)
    changed_index[best.excluded] = np.arange(excluded)
    return _lists(
        list_of_class,
        (best.rows, best.totals, best.summary),
        (best.bound_rank, best.tie_break_hashes),
        (changed_rows, changed_index, excluded),
        (row_arrays.requested.shape[1], row_arrays.ports_in_use.shape[1]),
    )


def _lists(
    list_of_class: I64,
    listed: tuple[I64, I32, I64],
    bounds: tuple[U64, U64],
    changes: tuple[I64, I64, int],
    widths: tuple[int, int],
) -> Lists:
    """Return the arrays of lists.

    listed: rows, totals, summary. bounds: bound_rank, tie_break_hashes. changes: changed_rows,
    changed_index, number of excluded rows. widths: numbers of resources and of ports.
    """
    rows, totals, summary = listed
    bound_rank, tie_break_hashes = bounds
    changed_rows, changed_index, excluded = changes
    capacity = len(changed_rows)
    return Lists(
        list_of_class=list_of_class,
        rows=rows,
        totals=totals,
        summary=summary,
        bound_rank=bound_rank,
        tie_break_hashes=tie_break_hashes,
        changed_counts=np.array([excluded, excluded], np.int64),
        changed_rows=changed_rows,
        changed_index=changed_index,
        former_rows=_empty_row_arrays(capacity - excluded, *widths),
        indices=np.arange(capacity, dtype=np.int64),
        current_totals=np.zeros(capacity, np.int32),
        former_totals=np.zeros(capacity, np.int32),
    )


def _empty_row_arrays(rows: int, resources: int, ports: int) -> RowArrays:
    """Return arrays for the amounts of some rows, which have no order."""
    none = np.zeros(0, np.int64)
    return RowArrays(
        allocatable=np.zeros((rows, resources), np.int64),
        requested=np.zeros((rows, resources), np.int64),
        nonzero=np.zeros((rows, 2), np.int64),
        pod_count=np.zeros(rows, np.int64),
        pod_limit=np.zeros(rows, np.int64),
        sort_keys=np.zeros(0, np.uint64),
        row_at=none,
        position_of=np.zeros(rows, np.int64),
        bucket_begin=none,
        bucket_of=np.zeros(0, np.int32),
        ports_in_use=np.zeros((rows, ports), np.bool_),
    )

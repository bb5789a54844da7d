"""Compiled loops over all rows: the first totals of classes, and their normalization.

A row is a node; a group is a normalization group (`arrays.py`), rows with equal raw scores. Rows
are evaluated in chunks. The amounts of a chunk are copied to contiguous arrays, once for all
classes; the loops over them have no branches, so that the compiler vectorizes them.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import BLOCK, BUCKETS, CHUNK, INFEASIBLE, Chunk, RowArrays, Totals
from roadstead.kernel.jit import compiled, inlined, internal
from roadstead.kernel.lowering.compiled_lowerings import (
    LARGEST,
    are_requests_exact,
    evaluate_chunk,
    mark_used_resources,
)
from roadstead.kernel.lowering.lowerings import ClassArrays
from roadstead.nodes.columns import I32, I64

MANY_PER_BUCKET = 4
"""With this many rows per bucket or more, `recompute_tops` loops over buckets, otherwise over
rows."""

FEW_GROUPS = 8
"""With up to this many normalization groups, loops over rows are run once for each group, which
needs no branch; with more, one loop reads the group of each row."""


@inlined
def _copy(table: RowArrays, rows: I64, chunk: Chunk) -> bool:
    """Copy the amounts of some rows to a chunk; return whether scores by float64 are exact.

    They are if all amounts are below LARGEST.
    """
    largest = 0
    for resource in range(chunk.capacity.shape[0]):
        if not chunk.used_resources[resource]:
            continue
        capacity, requested = chunk.capacity[resource], chunk.requested[resource]
        for position in range(rows.shape[0]):
            row = rows[position]
            capacity[position] = table.allocatable[row, resource]
            requested[position] = table.requested[row, resource]
            both = max(table.allocatable[row, resource], table.requested[row, resource])
            largest = max(largest, both)
    for position in range(rows.shape[0]):
        row = rows[position]
        chunk.nonzero[0, position] = table.nonzero[row, 0]
        chunk.nonzero[1, position] = table.nonzero[row, 1]
        largest = max(largest, table.nonzero[row, 0], table.nonzero[row, 1])
        chunk.accepts_pods[position] = table.pod_count[row] < table.pod_limit[row]
    return largest < LARGEST


@internal
def recompute_top(table: RowArrays, totals: Totals, c: int, bucket: int) -> None:
    """Compute the highest total of a bucket, and the number of rows with it."""
    total = totals.total[c]
    highest, tied = INFEASIBLE, 0
    for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
        if total[position] > highest:
            highest, tied = total[position], 0
        tied += total[position] == highest
    totals.top[c, bucket], totals.tied[c, bucket] = highest, tied


@internal
def recompute_block_top(totals: Totals, c: int, block: int) -> None:
    """Compute the highest total of a block of BLOCK buckets, and the number of rows with it."""
    top, tied = totals.top[c], totals.tied[c]
    highest = INFEASIBLE
    for bucket in range(block * BLOCK, (block + 1) * BLOCK):
        highest = max(highest, top[bucket])
    tied_rows = 0
    for bucket in range(block * BLOCK, (block + 1) * BLOCK):
        if top[bucket] == highest:
            tied_rows += tied[bucket]
    totals.block_top[c, block], totals.block_tied[c, block] = highest, tied_rows


@internal
def recompute_tops(table: RowArrays, totals: Totals, c: int) -> None:
    """Compute the highest totals of all buckets and blocks of a class."""
    total, bucket = totals.total[c], table.bucket_of
    top, tied = totals.top[c], totals.tied[c]
    if total.shape[0] >= MANY_PER_BUCKET * BUCKETS:
        for at in range(BUCKETS):
            chunk_rows = total[table.bucket_begin[at] : table.bucket_begin[at + 1]]
            highest, equal = np.int32(INFEASIBLE), np.int32(0)
            for position in range(chunk_rows.shape[0]):
                highest = max(highest, chunk_rows[position])
            for position in range(chunk_rows.shape[0]):
                equal += np.int32(chunk_rows[position] == highest)
            top[at], tied[at] = highest, equal
    else:
        top[:] = INFEASIBLE
        tied[:] = 0
        # Without a branch: with a few thousand rows, each bucket has one or two rows.
        for position in range(total.shape[0]):
            at, each = bucket[position], total[position]
            highest = top[at]
            tied[at] = 1 if each > highest else tied[at] + (each == highest)
            top[at] = max(highest, each)
    for block in range(BUCKETS // BLOCK):
        recompute_block_top(totals, c, block)


@compiled
def build(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    classes: I64,
    change_count: int,
    chunk: Chunk,
) -> None:
    """Compute the totals of new classes over all rows, and normalize them if cached scores apply.

    change_count: number of entries of `PodArrays.changed_rows`, which the totals include.
    """
    rows = table.row_at
    mark_used_resources(class_arrays, classes, chunk)
    for start in range(0, rows.shape[0], CHUNK):
        chunk_rows = rows[start : start + CHUNK]
        are_amounts_exact = _copy(table, chunk_rows, chunk)
        for c in classes:
            out = totals.total[c, start : start + CHUNK]
            is_exact = are_amounts_exact and are_requests_exact(class_arrays, c)
            evaluate_chunk(table, class_arrays, totals, c, start, chunk_rows, chunk, is_exact, out)
    for c in classes:
        group_at = totals.group_at[class_arrays.static_index[c]]
        totals.feasible[c] = _count(totals.total[c], group_at, totals.group_feasible[c])
        totals.normalized_scores[c] = 0
        totals.needs_normalization[c] = not are_scores_cached(
            totals, class_arrays.evaluation_index[c], totals.group_feasible[c]
        )
        if not totals.needs_normalization[c]:
            _renormalize(
                totals, c, group_at, totals.cached_scores[class_arrays.evaluation_index[c]]
            )
        totals.applied_changes[c] = change_count
        totals.has_totals[c] = True
        recompute_tops(table, totals, c)


@inlined
def _count(total: I32, group_at: I32, group_feasible: I64) -> int:
    """Return the number of feasible rows, and count them by group in group_feasible."""
    feasible = 0
    if group_feasible.shape[0] <= FEW_GROUPS:
        for group in range(group_feasible.shape[0]):
            rows = 0
            for position in range(total.shape[0]):
                rows += (total[position] != INFEASIBLE) & (group_at[position] == group)
            group_feasible[group] = rows
            feasible += rows
        return feasible
    group_feasible[:] = 0
    for position in range(total.shape[0]):
        fits = total[position] != INFEASIBLE
        group_feasible[group_at[position]] += fits
        feasible += fits
    return feasible


@inlined
def are_scores_cached(totals: Totals, evaluation_index: int, group_feasible: I64) -> bool:
    """Whether there are cached scores, computed for feasible rows in exactly these groups."""
    same = totals.has_cached_scores[evaluation_index]
    for each in range(group_feasible.shape[0]):
        same &= (group_feasible[each] > 0) == totals.cached_groups[evaluation_index, each]
    return bool(same)


@internal
def _renormalize(totals: Totals, c: int, group_at: I32, scores: I32) -> None:
    """Replace the normalized scores in all totals of a class. scores: int32[group]."""
    total, old = totals.total[c], totals.normalized_scores[c]
    if scores.shape[0] <= FEW_GROUPS:
        for group in range(scores.shape[0]):
            difference = scores[group] - old[group]
            for position in range(total.shape[0] if difference else 0):
                changes = (total[position] != INFEASIBLE) & (group_at[position] == group)
                total[position] += difference if changes else 0
    else:
        for position in range(total.shape[0]):
            if total[position] != INFEASIBLE:
                row_group = group_at[position]
                total[position] += scores[row_group] - old[row_group]
    for each in range(scores.shape[0]):
        old[each] = scores[each]


@compiled
def renormalize(
    table: RowArrays, class_arrays: ClassArrays, totals: Totals, c: int, scores: I32
) -> None:
    """Replace the normalized scores in all totals of a class, and compute its highest totals."""
    _renormalize(totals, c, totals.group_at[class_arrays.static_index[c]], scores)
    recompute_tops(table, totals, c)

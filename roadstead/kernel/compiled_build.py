"""Compiled loops over all rows: the first totals of classes, and their normalization.

Rows are evaluated in pieces. The numbers of a piece are copied to contiguous arrays, once for all
classes; the loops over them have no branches, so that the compiler vectorizes them.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    GROUP,
    NOWHERE,
    PIECE,
    Numbers,
    Piece,
    Totals,
)
from roadstead.kernel.jit import compiled, inlined, internal
from roadstead.kernel.lowering.compiled_lowerings import (
    LARGEST,
    evaluate_piece,
    is_small,
    mark_used,
)
from roadstead.kernel.lowering.lowerings import Specs
from roadstead.nodes.columns import I32, I64

MANY = 4
"""With this many rows per bucket or more, the loop is over buckets, otherwise over rows."""

FEW_GROUPS = 8
"""Up to this many groups, each has a loop of its own, without a branch."""


@inlined
def _copy(numbers: Numbers, rows: I64, piece: Piece) -> bool:
    """Copy the numbers of some rows; return whether float64 is exact for all of them."""
    largest = 0
    for resource in range(piece.capacity.shape[0]):
        if not piece.in_use[resource]:
            continue
        capacity, requested = piece.capacity[resource], piece.requested[resource]
        for position in range(rows.shape[0]):
            row = rows[position]
            capacity[position] = numbers.allocatable[row, resource]
            requested[position] = numbers.requested[row, resource]
            both = max(numbers.allocatable[row, resource], numbers.requested[row, resource])
            largest = max(largest, both)
    for position in range(rows.shape[0]):
        row = rows[position]
        piece.nonzero[0, position] = numbers.nonzero[row, 0]
        piece.nonzero[1, position] = numbers.nonzero[row, 1]
        largest = max(largest, numbers.nonzero[row, 0], numbers.nonzero[row, 1])
        piece.has_room[position] = numbers.pod_count[row] < numbers.pod_limit[row]
    return largest < LARGEST


@internal
def recompute_top(numbers: Numbers, totals: Totals, c: int, bucket: int) -> None:
    """Compute the highest total of a bucket, and the number of rows with it."""
    total = totals.total[c]
    highest, tied = NOWHERE, 0
    for position in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
        if total[position] > highest:
            highest, tied = total[position], 0
        tied += total[position] == highest
    totals.top[c, bucket], totals.tied[c, bucket] = highest, tied


@internal
def recompute_group_top(totals: Totals, c: int, group: int) -> None:
    """Compute the highest total of GROUP buckets, and the number of rows with it."""
    top, tied = totals.top[c], totals.tied[c]
    highest = NOWHERE
    for bucket in range(group * GROUP, (group + 1) * GROUP):
        highest = max(highest, top[bucket])
    many = 0
    for bucket in range(group * GROUP, (group + 1) * GROUP):
        if top[bucket] == highest:
            many += tied[bucket]
    totals.group_top[c, group], totals.group_tied[c, group] = highest, many


@internal
def recompute_tops(numbers: Numbers, totals: Totals, c: int) -> None:
    """Compute the highest totals of all buckets and groups of buckets of a class."""
    total, bucket = totals.total[c], numbers.bucket
    top, tied = totals.top[c], totals.tied[c]
    if total.shape[0] >= MANY * BUCKETS:
        for at in range(BUCKETS):
            some = total[numbers.begin[at] : numbers.begin[at + 1]]
            highest, equal = np.int32(NOWHERE), np.int32(0)
            for position in range(some.shape[0]):
                highest = max(highest, some[position])
            for position in range(some.shape[0]):
                equal += np.int32(some[position] == highest)
            top[at], tied[at] = highest, equal
    else:
        top[:] = NOWHERE
        tied[:] = 0
        # Without a branch: with a few thousand rows, each bucket has one or two.
        for position in range(total.shape[0]):
            at, each = bucket[position], total[position]
            highest = top[at]
            tied[at] = 1 if each > highest else tied[at] + (each == highest)
            top[at] = max(highest, each)
    for group in range(BUCKETS // GROUP):
        recompute_group_top(totals, c, group)


@compiled
def build(
    numbers: Numbers, specs: Specs, totals: Totals, classes: I64, seen: int, piece: Piece
) -> None:
    """Compute the totals of new classes over all rows, normalized if the cached norm applies."""
    rows = numbers.row_at
    mark_used(specs, classes, piece)
    for start in range(0, rows.shape[0], PIECE):
        some = rows[start : start + PIECE]
        are_small = _copy(numbers, some, piece)
        for c in classes:
            out = totals.total[c, start : start + PIECE]
            is_exact = are_small and is_small(specs, c)
            evaluate_piece(numbers, specs, totals, c, start, some, piece, is_exact, out)
    for c in classes:
        group_at = totals.group_at[specs.static_index[c]]
        totals.feasible[c] = _count(totals.total[c], group_at, totals.group_feasible[c])
        totals.norm[c] = 0
        totals.stale_norm[c] = not is_norm_cached(totals, specs.model[c], totals.group_feasible[c])
        if not totals.stale_norm[c]:
            _renormalize(totals, c, group_at, totals.cached_norm[specs.model[c]])
        totals.seen[c] = seen
        totals.built[c] = True
        recompute_tops(numbers, totals, c)


@inlined
def _count(total: I32, group_at: I32, group_feasible: I64) -> int:
    """Return the number of feasible rows, and count them by group in group_feasible."""
    feasible = 0
    if group_feasible.shape[0] <= FEW_GROUPS:
        for group in range(group_feasible.shape[0]):
            rows = 0
            for position in range(total.shape[0]):
                rows += (total[position] != NOWHERE) & (group_at[position] == group)
            group_feasible[group] = rows
            feasible += rows
        return feasible
    group_feasible[:] = 0
    for position in range(total.shape[0]):
        fits = total[position] != NOWHERE
        group_feasible[group_at[position]] += fits
        feasible += fits
    return feasible


@inlined
def is_norm_cached(totals: Totals, model: int, group_feasible: I64) -> bool:
    """Whether the cached norm is for feasible rows in exactly these groups."""
    same = totals.has_cached_norm[model]
    for each in range(group_feasible.shape[0]):
        same &= (group_feasible[each] > 0) == totals.cached_groups[model, each]
    return bool(same)


@internal
def _renormalize(totals: Totals, c: int, group_at: I32, norm: I32) -> None:
    """Replace the normalized scores in all totals of a class. norm: int32[group]."""
    total, old = totals.total[c], totals.norm[c]
    if norm.shape[0] <= FEW_GROUPS:
        for group in range(norm.shape[0]):
            more = norm[group] - old[group]
            for position in range(total.shape[0] if more else 0):
                changes = (total[position] != NOWHERE) & (group_at[position] == group)
                total[position] += more if changes else 0
    else:
        for position in range(total.shape[0]):
            if total[position] != NOWHERE:
                mine = group_at[position]
                total[position] += norm[mine] - old[mine]
    for each in range(norm.shape[0]):
        old[each] = norm[each]


@compiled
def renormalize(numbers: Numbers, specs: Specs, totals: Totals, c: int, norm: I32) -> None:
    """Replace the normalized scores in all totals of a class, and compute its highest totals."""
    _renormalize(totals, c, totals.group_at[specs.static_index[c]], norm)
    recompute_tops(numbers, totals, c)

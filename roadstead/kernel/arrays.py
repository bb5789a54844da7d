"""Arrays that the compiled code reads and writes; `Specs` is in `lowering/lowerings.py`.

Lists of different lengths are padded with END (`padded`). Scores are int32; classes whose scores
may not fit are not covered by the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.tie_break import BUCKET_BITS
from roadstead.nodes.columns import I32, I64, Bools

U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]

NOWHERE = -(2**31)
"""Total of a row that is not feasible for the class."""

BUCKETS = 1 << BUCKET_BITS
"""Number of buckets: rows with consecutive positions (`Numbers`), whose highest total is stored."""

GROUP = 64
"""Number of consecutive buckets whose highest total is stored, too."""

FEW = 64
"""Fewer tied rows than this are compared one by one; for more, buckets are read in draw order."""

END = -1

PIECE = 1024
"""Rows whose numbers are copied at a time, so that they stay in the processor's nearest caches."""

DONE, NEW, CHANGED, STALE_NORM, NO_ROW = 0, 1, 2, 3, 4
"""Why a run returned: all pods decided; a class without totals; a class whose totals a placement
changed on other rows; a normalization group that became empty or nonempty; no feasible row."""


class Numbers(NamedTuple):
    """Numbers of the table's rows, and their order.

    allocatable, requested: int64[row, resource]; nonzero: int64[row, 2], CPU and memory (upstream's
    NonZeroRequested). pod_count, pod_limit: int64[row].
    order: uint64[position], hashes or ranks of names, sorted; a *position* is a position in this
    order. row_at: int64[position]; position_of: int64[row]; begin: int64[BUCKETS + 1], the first
    position of each bucket; bucket: int32[position].
    blocked: bool[row, port], whether a host port that some class requests is in use on the row.
    """

    allocatable: I64
    requested: I64
    nonzero: I64
    pod_count: I64
    pod_limit: I64
    order: U64
    row_at: I64
    position_of: I64
    begin: I64
    bucket: I32
    blocked: Bools


class Totals(NamedTuple):
    """Totals of classes over rows, and counts of them.

    passes, static, group_at: bool, int32, int32[static_index, position], static scores
    (`static_scores.py`; `static_index` is their index, shared by equal classes): filters passed,
    sum of weight * score, normalization group; group: int32[static_index, row]. total: int32[class,
    position]. top, tied: int32[class, bucket], the highest total of a bucket and the number of rows
    with it; group_top, group_tied: int32[class, bucket / GROUP], the same of GROUP buckets.
    group_feasible: int64[class, group], number of feasible rows. norm: int32[class, group], the
    normalized scores that `total` includes. feasible: int64[class], number of feasible rows; seen:
    int64[class], number of changes in the log that `total` includes. stale_norm, stale, built:
    bool[class], must be normalized again; was changed on other rows by a placement; has totals.
    cached_norm: int32[model, group], the cached norm of a model (`admitted.Model`), computed for
    the groups with feasible rows in cached_groups: bool[model, group]; has_cached_norm:
    bool[model].
    """

    passes: Bools
    static: I32
    group_at: I32
    group: I32
    total: I32
    top: I32
    tied: I32
    group_top: I32
    group_tied: I32
    group_feasible: I64
    norm: I32
    feasible: I64
    seen: I64
    stale_norm: Bools
    stale: Bools
    built: Bools
    cached_groups: Bools
    cached_norm: I32
    has_cached_norm: Bools


class Log(NamedTuple):
    """The pods of a run and their results; the rows that changed, in order.

    classes: int64[pod]. draws: uint64[pod]. row, feasible, total, best: int64[pod], see `Decided`.
    changed: int64[capacity], its length in length: int64[1]; fresh: int32[capacity], scratch.
    use_draws: bool[1].
    order: int64[row], the order of sampled searches; empty if all rows are evaluated. start:
    int64[1], where the next search starts. to_find: int64[class]. visited: int64[1], number of rows
    that the last search visited; group_feasible: int64[group], number of feasible ones.
    """

    classes: I64
    draws: U64
    row: I64
    feasible: I64
    total: I64
    best: I64
    changed: I64
    length: I64
    fresh: I32
    use_draws: Bools
    order: I64
    start: I64
    to_find: I64
    visited: I64
    group_feasible: I64


class Lists(NamedTuple):
    """Best rows of classes, listed elsewhere on the same state, and the rows that changed since.

    of_class: int64[class], its list; -1 for none. rows, totals: int64, int32[list, k], the best
    rows in order, padded with END, and their totals without normalized scores.
    summary: int64[list, 5]: the highest total, number of rows with it, number of feasible rows, the
    highest total of an unlisted row, the normalized score of each row. bound: uint64[list], the
    highest rank of an unlisted row with that total. draws: uint64[list], the draw of the ranks.
    counts: int64[2]: number of changed rows; number of those that the lists leave out (the first).
    changed: int64[capacity], these rows; slot: int64[row], position of a row in it or -1; empty if
    there are no lists. before: the former numbers of changed rows, from slot counts[1] on.
    indices: int64[capacity], 0, 1, …. current, former: int32[capacity], scratch.
    """

    of_class: I64
    rows: I64
    totals: I32
    summary: I64
    bound: U64
    draws: U64
    counts: I64
    changed: I64
    slot: I64
    before: Numbers
    indices: I64
    current: I32
    former: I32


class Piece(NamedTuple):
    """Numbers of some rows, in the order of positions.

    capacity, requested: float64[resource, position], of the resources in in_use: bool[resource].
    nonzero: float64[2, position]. has_room: bool[position], by the number of pods. score, weights,
    usage, other: float64[position], scratch. Amounts are integers, stored as float64: processors
    without a vector instruction for the conversion take ten steps for each.
    """

    in_use: Bools
    capacity: F64
    requested: F64
    nonzero: F64
    has_room: Bools
    score: F64
    weights: F64
    usage: F64
    other: F64


def new_piece(resources: int) -> Piece:
    """Return arrays for the numbers of PIECE rows."""
    return Piece(
        np.zeros(resources, np.bool_),
        np.empty((resources, PIECE), np.float64),
        np.empty((resources, PIECE), np.float64),
        np.empty((2, PIECE), np.float64),
        np.empty(PIECE, np.bool_),
        np.empty(PIECE, np.float64),
        np.empty(PIECE, np.float64),
        np.empty(PIECE, np.float64),
        np.empty(PIECE, np.float64),
    )


def padded(lists_of: Sequence[Sequence[tuple[int, ...]]], width: int) -> I64:
    """Return the lists of all classes as one array: int64[class, k, width], padded with END."""
    most = max((len(each) for each in lists_of), default=0)
    result: I64 = np.full((len(lists_of), most, width), END, dtype=np.int64)
    for position, each in enumerate(lists_of):
        if each:
            result[position, : len(each)] = each
    return result

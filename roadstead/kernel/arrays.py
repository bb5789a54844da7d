"""Arrays that the compiled code reads and writes; `ClassArrays` is in `lowering/lowerings.py`.

Lists of different lengths are padded with END (`padded`). Scores are int32; the kernel does not
cover classes whose scores may not fit. In all compiled code c is the index of a class, k an index
in a list, table the `RowArrays`, pods the `PodArrays`, and counters the `CounterArrays` of
`counter_arrays.py`; tie_hash is the pod's hash for the tie-break, is_random whether the tie-break
uses hashes, and out the totals of some rows, which a function writes or adds to.
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

INFEASIBLE = -(2**31)
"""Total of a row that is not feasible for the class."""

BUCKETS = 1 << BUCKET_BITS
"""Number of buckets: ranges of positions (`RowArrays`) of which the highest total is stored."""

BLOCK = 64
"""Number of buckets in a block, whose highest total is stored, too."""

FEW_TIES = 64
"""If at least so many rows are tied, buckets are read in the order of the tie-break up to the first
one with a tied row, which is soon found. If fewer, all buckets with a tied row are compared."""

END = -1
"""Padding after the entries of a list."""

CHUNK = 1024
"""Number of rows whose amounts are copied at a time: 8 KiB of float64 per array, to stay in the L2
cache."""

DONE, NO_TOTALS, RESULTS_CHANGED, NEEDS_NORMALIZATION, NO_FEASIBLE_ROW = 0, 1, 2, 3, 4
"""Why `decide_pods` returned: all pods are decided; a class has no totals yet; a placement may have
changed a class's results on rows other than its own; scores must be normalized again, since other
normalization groups (`Totals`) have feasible rows than before; no row is feasible."""


class RowArrays(NamedTuple):
    """Amounts of the table's rows, and the order of rows in tie-breaks.

    allocatable, requested: int64[row, resource]; nonzero: int64[row, 2], CPU and memory (upstream's
    NonZeroRequested). pod_count, pod_limit: int64[row].
    sort_keys: uint64[position], the keys of rows in ascending order: hashes of the node names, or,
    with the tie-break `first`, numbers that are higher the earlier the name is. A *position* is an
    index in this order. row_at: int64[position]; position_of: int64[row]. bucket_begin:
    int64[BUCKETS + 1], the first position of each bucket; bucket_of: int32[position].
    ports_in_use: bool[row, port], of the host ports that some class requests.
    """

    allocatable: I64
    requested: I64
    nonzero: I64
    pod_count: I64
    pod_limit: I64
    sort_keys: U64
    row_at: I64
    position_of: I64
    bucket_begin: I64
    bucket_of: I32
    ports_in_use: Bools


class Totals(NamedTuple):
    """Totals of classes over rows, and counts of them.

    Static scores are results of plugins that read only NODE facts (`framework/plugin.py`, `Reads`).
    Of these plugins, some normalize: rows with equal raw scores by them are a *normalization group*
    (`static_scores.py`) and have equal normalized scores. static_index: index of static scores,
    which several classes may share; each index has its own numbering of groups.

    passes: bool[static_index, position], whether all filters that read only NODE facts pass, and
    the row is not excluded by node names of PreFilter.
    static: int32[static_index, position], sum of weight * score over the plugins that read only
    NODE facts and do not normalize.
    group_at: int32[static_index, position], the normalization group; group_of_row:
    int32[static_index, row], the same by row.
    total: int32[class, position].
    top, tied: int32[class, bucket], the highest total of a bucket and the number of rows with it;
    block_top, block_tied: int32[class, block], the same of BLOCK buckets.
    feasible: int64[class], number of feasible rows; group_feasible: int64[class, group], the same
    by normalization group.
    normalized_scores: int32[class, group], those that `total` includes.
    applied_changes: int64[class], number of entries of `PodArrays.changed_rows` that `total`
    includes.
    needs_normalization, has_totals: bool[class]. results_changed: bool[class], whether a placement
    may have changed the class's results on rows other than its own.
    cached_scores: int32[evaluation, group], normalized scores; an evaluation is an index of
    `covered_classes.SharedEvaluation`, whose classes share them. cached_groups:
    bool[evaluation, group], the groups that had feasible rows when they were computed: they are
    valid for classes with feasible rows in just these groups. has_cached_scores: bool[evaluation].
    """

    passes: Bools
    static: I32
    group_at: I32
    group_of_row: I32
    total: I32
    top: I32
    tied: I32
    block_top: I32
    block_tied: I32
    group_feasible: I64
    normalized_scores: I32
    feasible: I64
    applied_changes: I64
    needs_normalization: Bools
    results_changed: Bools
    has_totals: Bools
    cached_groups: Bools
    cached_scores: I32
    has_cached_scores: Bools


class PodArrays(NamedTuple):
    """The pods of one call, their results, and the rows that changed, in order.

    classes: int64[pod]. tie_break_hashes: uint64[pod], see `framework/tie_break.py`; is_random:
    bool[1], whether they are used. row: int64[pod], the chosen row; feasible: int64[pod], number of
    feasible rows; total: int64[pod], total of the chosen row; tied_best: int64[pod], number of rows
    with that total (`pods.DecidedPods`).
    changed_rows: int64[length of the buffer], of which changed_count: int64[1] entries are used;
    new_totals: int32[length of the buffer], scratch.
    search_order: int64[row], of sampled searches; empty if all rows are evaluated. search_start:
    int64[1], index in search_order at which the next search starts. feasible_to_find: int64[class],
    number of feasible rows after which a search ends (before the next feasible one). visited_rows:
    int64[1], number of rows visited by the last search for a class with counters. group_feasible:
    int64[group], number of feasible rows visited by the last search for a class without counters.
    """

    classes: I64
    tie_break_hashes: U64
    row: I64
    feasible: I64
    total: I64
    tied_best: I64
    changed_rows: I64
    changed_count: I64
    new_totals: I32
    is_random: Bools
    search_order: I64
    search_start: I64
    feasible_to_find: I64
    visited_rows: I64
    group_feasible: I64


class Lists(NamedTuple):
    """Lists of the best rows of classes, and the rows that changed since they were computed.

    Workers computed the lists, all on one state of the table. A list has the k best rows of a
    class, and a bound: the highest total of its other rows.
    list_of_class: int64[class], -1 for none. rows: int64[list, k], the best rows in order, padded
    with END; totals: int32[list, k], their totals without normalized scores.
    summary: int64[list, 5]: the highest total, number of rows with it, number of feasible rows, the
    highest total of an unlisted row, the normalized score. The score is one for all rows: only
    classes with one normalization group have lists. bound_rank: uint64[list], the highest tie-break
    rank (`jit.rank_of`) of an unlisted row with the highest total of one. tie_break_hashes:
    uint64[list], with which the ranks were computed.
    changed_counts: int64[2]. [0]: number of changed rows. [1]: how many of these, at the start of
    changed_rows, the lists left out (`BestRows.excluded`). changed_rows: int64[length of the
    buffer]. changed_index: int64[row], index of a row in changed_rows or -1; empty if there are no
    lists. former_rows: amounts of changed rows as they were when the lists were computed; its row i
    is that of changed_rows[changed_counts[1] + i]. indices: int64[length of the buffer], 0, 1, …,
    passed to `evaluate` as the row numbers of former_rows.
    current_totals, former_totals: int32[length of the buffer], scratch.
    """

    list_of_class: I64
    rows: I64
    totals: I32
    summary: I64
    bound_rank: U64
    tie_break_hashes: U64
    changed_counts: I64
    changed_rows: I64
    changed_index: I64
    former_rows: RowArrays
    indices: I64
    current_totals: I32
    former_totals: I32


class Chunk(NamedTuple):
    """Amounts of up to CHUNK rows, in the order of positions.

    capacity, requested: float64[resource, position], copies of `RowArrays.allocatable` and
    `RowArrays.requested` for the resources in used_resources: bool[resource]. nonzero:
    float64[2, position]. accepts_pods: bool[position], whether a row has
    fewer pods than its limit.
    score, weights: float64[position], scratch. first_fraction, second_fraction: float64[position],
    scratch: (requested + the pod's request) / capacity of two resources, for
    NodeResourcesBalancedAllocation.
    Amounts are integers, but stored as float64: a processor without a vector instruction for the
    conversion from int64 needs several steps per amount, so it is done once for all classes.
    """

    used_resources: Bools
    capacity: F64
    requested: F64
    nonzero: F64
    accepts_pods: Bools
    score: F64
    weights: F64
    first_fraction: F64
    second_fraction: F64


def new_chunk(resources: int) -> Chunk:
    """Return empty arrays for the amounts of CHUNK rows."""
    return Chunk(
        np.zeros(resources, np.bool_),
        np.empty((resources, CHUNK), np.float64),
        np.empty((resources, CHUNK), np.float64),
        np.empty((2, CHUNK), np.float64),
        np.empty(CHUNK, np.bool_),
        np.empty(CHUNK, np.float64),
        np.empty(CHUNK, np.float64),
        np.empty(CHUNK, np.float64),
        np.empty(CHUNK, np.float64),
    )


def padded(lists_of: Sequence[Sequence[tuple[int, ...]]], width: int) -> I64:
    """Return one list of tuples per class as one array, padded with END: int64[class, k, width]."""
    longest = max((len(each) for each in lists_of), default=0)
    result: I64 = np.full((len(lists_of), longest, width), END, dtype=np.int64)
    for position, each in enumerate(lists_of):
        if each:
            result[position, : len(each)] = each
    return result

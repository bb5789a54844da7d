"""What the compiled code works on: plain arrays, in bundles; `Specs` is in `lowering/lowerings.py`.

Lines of classes (`padded`) end at END. Scores are int32: what does not fit is not covered by the
kernel.
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
"""Total of a row that cannot take the class."""

BUCKETS = 1 << BUCKET_BITS
"""Rows that follow each other in the order of ties: their highest total is kept together."""

GROUP = 64
"""Buckets whose highest total is kept together."""

FEW = 64
"""So few equals are gone through; of more, the bucket of the draw's first is searched for."""

END = -1

PIECE = 1024
"""Rows whose numbers are copied at a time: they stay in the processor's nearest caches."""

DONE, NEW, CHANGED, MOVED, NO_ROW = 0, 1, 2, 3, 4
"""Why a run came back: all decided; a class without totals; a class changed elsewhere; a group of
rows came or went, so that normalization may change; no feasible row."""


class Numbers(NamedTuple):
    """The table. allocatable, requested: int64[row, resource]; nonzero: int64[row, 2].

    pod_count, pod_limit: int64[row]. order: uint64[place], hashes or ranks of names, sorted.
    row_at: int64[place], the rows in that order; place_of: int64[row]; begin: int64[BUCKETS + 1],
    the places of each bucket; bucket: int32[place].
    blocked: bool[row, port], whether a wanted host port cannot be had on the row.
    """

    allocatable: I64
    requested: I64
    nonzero: I64
    pod_count: I64
    pod_limit: I64
    order: U64
    row_at: I64
    place_of: I64
    begin: I64
    bucket: I32
    blocked: Bools


class Totals(NamedTuple):
    """What is known of classes over rows.

    passes, still, group_at: bool, int32, int32[fixed, place]: what NODE facts say: filters passed,
    sum of weight * score, group of rows that are normalized alike; group: int32[fixed, row].
    total: int32[class, place]. top, tied: int32[class, bucket], the highest of each bucket and how
    many rows have it; high, many: int32[class, bucket / GROUP], the same of the buckets.
    alive: int64[class, group], feasible rows. norm: int32[class, group], what it adds to totals.
    feasible, seen: int64[class]: feasible rows; how much of the log was seen.
    moved, stopped, built: bool[class].
    usual: bool[model, group], the groups with feasible rows for which `usual_norm`, int32[model,
    group], was found last; has_usual: bool[model].
    """

    passes: Bools
    still: I32
    group_at: I32
    group: I32
    total: I32
    top: I32
    tied: I32
    high: I32
    many: I32
    alive: I64
    norm: I32
    feasible: I64
    seen: I64
    moved: Bools
    stopped: Bools
    built: Bools
    usual: Bools
    usual_norm: I32
    has_usual: Bools


class Log(NamedTuple):
    """The pods of a run and what came of them; the rows that changed, in order.

    classes: int64[pod]. draws: uint64[pod]. row, feasible, total, best: int64[pod].
    changed: int64[capacity], counted in length: int64[1]; fresh: int32[capacity], to work on.
    use_draws: bool[1].
    order: int64[row], in which rows are looked at where they are sampled; none where all are.
    start: int64[1], where the next search starts. to_find: int64[class]. visited: int64[1], at how
    many rows the last search looked; alive: int64[group], rows that it found.
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
    alive: I64


class Lists(NamedTuple):
    """Best rows of classes, found elsewhere on the same state, and the rows that changed since.

    of_class: int64[class], its line; -1 for none. rows, totals: int64, int32[line, k], the best
    rows in order, END where there are fewer, and their totals without what normalization adds.
    told: int64[line, 5]: the highest total, how many rows have it, how many are feasible, the
    highest total of a row that is not listed, what normalization adds to each. bound: uint64[line],
    the highest rank among those that are not. draws: uint64[line], the draw of these ranks.
    counts: int64[2]: rows that changed; those first of them of which the lists say nothing.
    changed: int64[capacity], these rows; slot: int64[row], the place of a row there or -1; of no
    row where there are no lists. before: how the others stood, from slot counts[1] on.
    line: int64[capacity], 0, 1, …. now, was: int32[capacity], to work on.
    """

    of_class: I64
    rows: I64
    totals: I32
    told: I64
    bound: U64
    draws: U64
    counts: I64
    changed: I64
    slot: I64
    before: Numbers
    line: I64
    now: I32
    was: I32


class Piece(NamedTuple):
    """Numbers of some rows, in the order of places. capacity, taken: float64[resource, place], of
    the resources that are in use: bool[resource].

    nonzero: float64[2, place]. has_room: bool[place], by the number of pods.
    score, weights, usage, other: float64[place], to work on. Amounts are integers all of them:
    of a processor that has no vector code between the two kinds, each change is ten steps.
    """

    in_use: Bools
    capacity: F64
    taken: F64
    nonzero: F64
    has_room: Bools
    score: F64
    weights: F64
    usage: F64
    other: F64


def new_piece(resources: int) -> Piece:
    """Room for the numbers of PIECE rows."""
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


def padded(lines_of: Sequence[Sequence[tuple[int, ...]]], width: int) -> I64:
    """Lines of each class: int64[class, k, width], END where a class has fewer."""
    most = max((len(lines) for lines in lines_of), default=0)
    result: I64 = np.full((len(lines_of), most, width), END, dtype=np.int64)
    for place, lines in enumerate(lines_of):
        if lines:
            result[place, : len(lines)] = lines
    return result

"""Lists: the best rows of classes, found by workers and laid out for the compiled code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.kernel.arrays import U64, Lists, Numbers
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.table import Rows


@dataclass(frozen=True, slots=True)
class BestRows:
    """The best rows of some classes, on the current state of a table; see `arrays.Lists`.

    rows: int64[class, k]; totals: int32[class, k]; summary: int64[class, 4], without the normalized
    score; bound: uint64[class]. draws: uint64[class], the draw of the ranks. excluded: rows that
    the lists leave out.
    """

    signatures: Sequence[Hashable]
    rows: I64
    totals: I32
    summary: I64
    bound: U64
    draws: U64
    excluded: Rows


def no_lists(classes: int, numbers: Numbers) -> Lists:
    """Return the arrays for classes that have no list."""
    resources, ports = numbers.requested.shape[1], numbers.blocked.shape[1]
    return _lists(
        np.full(classes, -1, np.int64),
        (np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int32), np.zeros((0, 5), np.int64)),
        (np.zeros(0, np.uint64), np.zeros(0, np.uint64)),
        (np.zeros(0, np.int64), np.zeros(0, np.int64), 0),
        (resources, ports),
    )


def lay_out(best: BestRows, of_class: I64, numbers: Numbers, placements: int) -> Lists:
    """Return the arrays of lists.

    of_class: int64[class of the kernel]. placements: maximum number of rows that will change.
    """
    excluded = len(best.excluded)
    changed = np.zeros(excluded + placements, np.int64)
    changed[:excluded] = best.excluded
    slot = np.full(len(numbers.row_at), -1, np.int64)
    slot[best.excluded] = np.arange(excluded)
    return _lists(
        of_class,
        (best.rows, best.totals, best.summary),
        (best.bound, best.draws),
        (changed, slot, excluded),
        (numbers.requested.shape[1], numbers.blocked.shape[1]),
    )


def _lists(
    of_class: I64,
    found: tuple[I64, I32, I64],
    ranks: tuple[U64, U64],
    changes: tuple[I64, I64, int],
    widths: tuple[int, int],
) -> Lists:
    (rows, totals, summary), (bound, draws), (changed, slot, excluded) = found, ranks, changes
    capacity = len(changed)
    return Lists(
        of_class=of_class,
        rows=rows,
        totals=totals,
        summary=summary,
        bound=bound,
        draws=draws,
        counts=np.array([excluded, excluded], np.int64),
        changed=changed,
        slot=slot,
        before=_empty_numbers(capacity - excluded, *widths),
        indices=np.arange(capacity, dtype=np.int64),
        current=np.zeros(capacity, np.int32),
        former=np.zeros(capacity, np.int32),
    )


def _empty_numbers(rows: int, resources: int, ports: int) -> Numbers:
    """Return arrays for the numbers of some rows, which have no order."""
    none = np.zeros(0, np.int64)
    return Numbers(
        allocatable=np.zeros((rows, resources), np.int64),
        requested=np.zeros((rows, resources), np.int64),
        nonzero=np.zeros((rows, 2), np.int64),
        pod_count=np.zeros(rows, np.int64),
        pod_limit=np.zeros(rows, np.int64),
        order=np.zeros(0, np.uint64),
        row_at=none,
        position_of=np.zeros(rows, np.int64),
        begin=none,
        bucket=np.zeros(0, np.int32),
        blocked=np.zeros((rows, ports), np.bool_),
    )

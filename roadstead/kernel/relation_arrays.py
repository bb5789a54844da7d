"""Arrays of the compiled code for spread constraints and inter-pod affinity.

A *counter* is a table of counts by topology domain: for one spread constraint, or for one family of
terms and topology key of inter-pod affinity. A *relation* is a list of counters, shared by all
classes that have the same. A placed pod adds to counters according to its *pod profile*: namespace,
labels and terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass

HARD, SOFT, HOST, EXISTING_ANTI, AFFINITY, ANTI_AFFINITY, SCORE = range(7)
"""Types of counters. HARD, SOFT: spread constraints that are DoNotSchedule and ScheduleAnyway.
HOST: a soft constraint over hostnames, which counts each node's own pods. EXISTING_ANTI: required
anti-affinity of placed pods. AFFINITY, ANTI_AFFINITY: the class's own required terms. SCORE: the
weights that terms add to the score."""


class Cells(NamedTuple):
    """Groups of rows that are equal for a relation, and so are evaluated once.

    Rows of a cell have the same domains, keys and normalization group and, for counters in which
    each row is its own domain, the same counts.

    of_class: int64[class], its layout; -1 if rows are evaluated. Per layout: relation, size:
    int64[layout], its relation and the current number of cells; is_full: bool[layout], rows are
    evaluated from now on. cell_at: int32[layout, position]; moved: int64[layout, 2], the position
    whose row changed its cell since the last decision, and its former cell, -1 for none.
    Each counter of the relation has a slot. base: int64[layout, slot], index of its first count;
    axes, marks: int32[layout, slot, cell], as those of rows; own: bool[layout, slot], whether each
    row is its own domain: each cell then has a count. static_cell: int32[layout, cell], equal for
    cells that differ in such counts only. scored: bool[layout, cell], whether rows have all keys;
    group: int32[layout, cell].
    top, tied, feasible: int32[class, cell], the highest total (an upper bound while tied is 0),
    number of rows with it (0: to be computed again), number of feasible rows; is_built:
    bool[class]. total: int32[cell], `top` at the last decision; used: int64[1], the layout of that
    or -1.
    """

    of_class: I64
    relation: I64
    size: I64
    is_full: Bools
    cell_at: I32
    moved: I64
    base: I64
    axes: I32
    marks: I32
    own: Bools
    static_cell: I32
    scored: Bools
    group: I32
    top: I32
    tied: I32
    feasible: I32
    is_built: Bools
    total: I32
    used: I64


class Relations(NamedTuple):
    """Counters, the relations of classes, and scratch arrays.

    axes: int32[axis, row], code of the row's value of a topology key, -1 for none; marks: the same
    with one more code for rows without the key; marked: int64[axis], number of codes in marks.
    masks: bool[mask, row], rows whose pods are counted; mask 0 has all rows.
    Per counter: kind (its type), axis, at and size (its part of counts), mask, skew, min_domains:
    int64[counter]. counts: int64[count]; present: bool[count], existing domains of a hard
    constraint; stamps: int64[count], the clock when `_domains` last met a domain. lowest:
    int64[counter, 3], of a hard constraint: the lowest count, number of domains with it (0: to be
    computed again), number of domains.
    Per relation: begin: int64[relation + 1], its first counter; keys: int64[relation], the mask of
    scored rows; matches_itself: bool[relation], whether its pods match their own required affinity.
    Per class: of_class (-1 for none), pod_profile, static_index (index of its static scores):
    int64[class]; weights: int64[class, 2] of spread and affinity, 0 where one does not score; seen:
    bool[class, group], groups with feasible rows at the last normalization; is_seen: bool[class].
    additions: int64[k, 2], (counter, amount), from additions_from[pod_profile] on.
    fits, sums, spread, affinity, total: per row or cell, group_feasible: per group, scratch for the
    current pod. logs: float64[n], ln(n + 2). clock: int64[1].
    """

    axes: I32
    marks: I32
    marked: I64
    masks: Bools
    kind: I64
    axis: I64
    at: I64
    size: I64
    mask: I64
    skew: I64
    min_domains: I64
    counts: I64
    present: Bools
    stamps: I64
    lowest: I64
    begin: I64
    keys: I64
    matches_itself: Bools
    of_class: I64
    pod_profile: I64
    static_index: I64
    weights: I64
    seen: Bools
    is_seen: Bools
    additions: I64
    additions_from: I64
    fits: Bools
    group_feasible: I64
    sums: NDArray[np.float64]
    spread: I64
    affinity: I64
    total: I32
    logs: NDArray[np.float64]
    clock: I64
    cells: Cells


@dataclass(frozen=True, slots=True)
class TermCounter:
    """One table of counts by domain. counted: rows whose pods are counted, None for all.

    before: the current counts, by topology value or by row (HOST). skew: of HARD, maxSkew without
    the pod to place, if its constraint counts it; of SOFT and HOST, maxSkew - 1, which upstream
    adds to the score. min_domains: of HARD.
    """

    kind: int
    key: str
    before: Mapping[str, int] | I64
    counted: Bools | None = None
    skew: int = 0
    min_domains: int = 0


@dataclass(slots=True)
class RelationOf:
    """The counters that some classes share. scored: rows that are scored, None for all.

    adds: one function per plugin: pod class → what its pod adds, as (counter, amount).
    """

    pod_class: PodClass
    counters: list[TermCounter] = field(default_factory=list)
    scored: Bools | None = None
    matches_itself: bool = False
    spread_weight: int = 0
    affinity_weight: int = 0
    adds: list[Callable[[PodClass], Iterable[tuple[int, int]]]] = field(default_factory=list)

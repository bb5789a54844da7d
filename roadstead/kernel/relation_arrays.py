"""What the compiled code works on for classes that look across nodes.

A *line* is one count by domain: a spread constraint, or one family and topology key of inter-pod
affinity. Classes of which all lines are the same share them: they are of one *relation*. What a
placed pod adds to which lines depends on its *face*: namespace, labels and terms.
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
"""Kinds of lines. HOST: a soft constraint over hostnames, which counts each node's own pods."""


class Cells(NamedTuple):
    """Rows that are all the same to a relation: same domains, keys and group, and as many pods
    where a line counts each row alone. What spread and affinity say of one they say of all, so that
    cells are looked at in place of rows.

    of_class: int64[class], its layout; -1 where each row stands for itself. Per layout: relation,
    size: int64[layout], its relation and how many cells there are by now; is_full: bool[layout],
    rows are looked at from now on. of_place: int32[layout, place]; moved: int64[layout, 2], the
    place that changed its cell since the last decision and that cell, -1 for none.
    A line of the relation has a slot. base: int64[layout, slot], where its counts begin; axes,
    marks: int32[layout, slot, cell], as those of rows; own: bool[layout, slot], whether it counts
    each row alone: the counts of cells are then its own. still: int32[layout, cell], equal where
    all else is. scored: bool[layout, cell], whether rows have all keys; group: int32[layout, cell].
    top, tied, alive: int32[class, cell], the highest total, how many rows have it (0: to be found
    anew, and not above `top`), how many rows are feasible; is_built: bool[class].
    total: int32[cell], `top` at the last decision; used: int64[1], the layout of that or -1.
    """

    of_class: I64
    relation: I64
    size: I64
    is_full: Bools
    of_place: I32
    moved: I64
    base: I64
    axes: I32
    marks: I32
    own: Bools
    still: I32
    scored: Bools
    group: I32
    top: I32
    tied: I32
    alive: I32
    is_built: Bools
    total: I32
    used: I64


class Relations(NamedTuple):
    """axes: int32[axis, row], code of a label key, -1 for none; marks: the same with a place for
    nodes that have none; marked: int64[axis], how many places that are. masks: bool[mask, row],
    rows whose pods count; mask 0 is all rows.

    Per line: kind, axis, at and size (its place in counts), mask, skew, min_domains: int64[line].
    counts: int64[place]; present: bool[place], domains of a hard constraint; stamps: int64[place].
    lowest: int64[line, 3], of a hard constraint: the fewest pods of its domains, how many domains
    have so few (0: to be found anew), how many there are.
    Per relation: begin: int64[relation + 1], its lines; keys: int64[relation], the mask of rows
    that are scored; near_itself: bool[relation], whether its own pods are what it wants near.
    Per class: of_class (-1 for none), face, fixed: int64[class]; weights: int64[class, 2] of spread
    and affinity, 0 where one does not score; seen: bool[class, group], groups that were there when
    they were normalized; is_seen: bool[class].
    effects: int64[k, 2], (line, amount), from effects_from[face] on.
    fits, sums, spread, near, total: per row or cell, alive: per group, for the pod at hand.
    logs: float64[n], ln(n + 2). clock: int64[1].
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
    near_itself: Bools
    of_class: I64
    face: I64
    fixed: I64
    weights: I64
    seen: Bools
    is_seen: Bools
    effects: I64
    effects_from: I64
    fits: Bools
    alive: I64
    sums: NDArray[np.float64]
    spread: I64
    near: I64
    total: I32
    logs: NDArray[np.float64]
    clock: I64
    cells: Cells


@dataclass(frozen=True, slots=True)
class Line:
    """One count by domain. counted: rows whose pods count, None for all.

    before: what is counted so far, by topology value, or by row.
    """

    kind: int
    key: str
    before: Mapping[str, int] | I64
    counted: Bools | None = None
    skew: int = 0
    min_domains: int = 0


@dataclass(slots=True)
class RelationOf:
    """All lines of some classes. scored: rows that are scored, None for all.

    adds: of each plugin, what a pod of another class adds: (line, amount).
    """

    info: PodClass
    lines: list[Line] = field(default_factory=list)
    scored: Bools | None = None
    near_itself: bool = False
    spread_weight: int = 0
    near_weight: int = 0
    adds: list[Callable[[PodClass], Iterable[tuple[int, int]]]] = field(default_factory=list)

"""Layout of cells: groups of rows that are equal for spread constraints and affinity, see `Cells`.

A fleet has a few zones and tens of thousands of nodes: constraints are computed once per zone. If
each row is a domain of its own (hostname), rows with the same number of pods in their domain are
equal; a row that gets a pod moves to another cell (docs/decisions/0037).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.kernel.relation_arrays import HOST, SOFT, Cells, Relations
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.table import Rows

MAX_CELLS = 4096
"""With more cells, or fewer than two rows per cell, rows are evaluated instead."""

SPARE = 256
"""Maximum number of cells that placements add; with more, rows are evaluated instead."""

WORTHWHILE = 16
"""Cells are built for a relation after this many of its pods: building them takes as long as
evaluating the rows for so many."""

MAX_PLACED = 1 << 24
"""Maximum of rows times relations with cells: each relation stores the cell of each row."""

SPARSE = 4
"""Codes below this many times the number of rows are numbered by counting (`bincount`), larger ones
by sorting (`unique`); see `_joined`."""


_Pair = tuple[int, int]
"""Relation, and index of the static scores that group the rows (`Totals.group`)."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The cells of a relation.

    static_index: index of the static scores that group the rows. own: bool[slot], the counters in
    which each row is its own domain. cell_of, static_cell_of: int64[row], its cell with and without
    these counters.
    """

    related: int
    static_index: int
    own: Bools
    cell_of: I64
    static_cell_of: I64


class CellPlan:
    """Choose the relations of a kernel that get cells: those with enough pods (WORTHWHILE)."""

    def __init__(self, group: I32, row_at: Rows) -> None:
        """group: int32[static_index, row]. row_at: int64[position]."""
        self._group, self._row_at = group, row_at
        self._pods_seen: Counter[_Pair] = Counter()
        self._chosen: dict[_Pair, None] = {}

    def prepare(self, relations: Relations, classes: I64) -> Relations:
        """Return the relations for the next pods, with the cells chosen. classes: int64[pod]."""
        coming = classes[relations.of_class[classes] >= 0]
        if not (len(coming) and len(self._row_at)):
            return relations
        pods = np.bincount(coming)
        most, before = max(1, MAX_PLACED // len(self._row_at)), len(self._chosen)
        for c in np.flatnonzero(pods).tolist():
            pair = _pair(relations, c)
            self._pods_seen[pair] += int(pods[c])
            if self._pods_seen[pair] >= WORTHWHILE and len(self._chosen) < most:
                self._chosen[pair] = None
        return self._with_cells(relations) if len(self._chosen) > before else relations

    def _with_cells(self, relations: Relations) -> Relations:
        group = self._group
        layouts = {pair: _layout(relations, *pair, group[pair[1]]) for pair in self._chosen}
        found = {pair: layout for pair, layout in layouts.items() if layout is not None}
        index_of = {pair: index for index, pair in enumerate(found)}
        classes = range(len(relations.of_class))
        of_class = [index_of.get(_pair(relations, c), -1) for c in classes]
        if not found:
            return relations._replace(cells=no_cells(len(classes)))
        return _lay_out(relations, list(found.values()), of_class, group, self._row_at)


def _pair(relations: Relations, c: int) -> _Pair:
    return int(relations.of_class[c]), int(relations.static_index[c])


def _layout(relations: Relations, related: int, static_index: int, group: I32) -> _Layout | None:
    """Return the cells of a relation; None if there are too many."""
    counters = range(relations.begin[related], relations.begin[related + 1])
    own = np.array([_is_own(relations, counter) for counter in counters], np.bool_)
    most = min(MAX_CELLS, len(group) // 2)
    codes: I64 | None = 2 * group.astype(np.int64) + relations.masks[relations.keys[related]]
    others = {
        int(relations.axis[counter])
        for counter, is_own in zip(counters, own, strict=True)
        if not is_own
    }
    for axis in sorted(others):
        codes = _joined(codes, relations.axes[axis].astype(np.int64), most)
    # Joined with a constant, codes are only numbered: a relation may have no axis but `own` ones.
    codes = static_cell_of = _joined(codes, np.zeros(len(group), np.int64), most)
    for counter, is_own in zip(counters, own.tolist(), strict=True):
        if is_own:
            codes = _joined(codes, relations.axes[relations.axis[counter]] >= 0, most)
            codes = _joined(codes, _on_rows(relations, counter), most)
    if codes is None or static_cell_of is None:
        return None
    return _Layout(related, static_index, own, codes, static_cell_of)


def _is_own(relations: Relations, counter: int) -> bool:
    """Whether each row is its own domain in a counter.

    Never for SOFT, even if it is so: the score needs the number of its domains.
    """
    kind, domains = relations.kind[counter], relations.axes[relations.axis[counter]]
    if kind in (HOST, SOFT):
        return bool(kind == HOST)
    return int(np.bincount(domains + 1)[1:].max(initial=0)) <= 1


def _on_rows(relations: Relations, counter: int) -> I64:
    """Return the counts of a counter in which each row is its own domain: int64[row]."""
    at, domains = relations.at[counter], relations.axes[relations.axis[counter]]
    if relations.kind[counter] == HOST:
        return relations.counts[at : at + len(domains)]
    return np.where(domains >= 0, relations.counts[at + np.maximum(domains, 0)], 0)


def _joined(codes: I64 | None, more: I64 | Bools, most: int) -> I64 | None:
    """Number the pairs of codes that occur, from 0 on: int64[row]; None if more than `most` do.

    None for codes that are None already.
    """
    if codes is None:
        return None
    more = more.astype(np.int64) - int(more.min(initial=0))
    codes = codes * (int(more.max(initial=0)) + 1) + more
    if int(codes.max(initial=0)) < SPARSE * len(codes):
        occurs = np.bincount(codes) > 0
        numbers: I64 = np.cumsum(occurs) - 1
        return numbers[codes] if numbers[-1] < most else None
    values, numbered = np.unique(codes, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64) if len(values) <= most else None


def _lay_out(
    relations: Relations,
    layouts: Sequence[_Layout],
    of_class: Sequence[int],
    group: I32,
    row_at: Rows,
) -> Relations:
    slots = max(len(each.own) for each in layouts)
    capacity = max(_capacity(each) for each in layouts)
    cells = _empty(len(layouts), slots, capacity, len(row_at), of_class)
    # Without the counts that an earlier layout appended.
    end = len(relations.present)
    counts = [relations.counts[:end]]
    for index, each in enumerate(layouts):
        size = int(each.cell_of.max()) + 1
        # The rows of a cell are equal: the last one written represents it.
        one = np.empty(size, np.intp)
        one[each.cell_of] = np.arange(len(row_at))
        cells.relation[index], cells.size[index] = each.related, size
        cells.cell_at[index] = each.cell_of[row_at]
        cells.static_cell[index, :size] = each.static_cell_of[one]
        cells.scored[index, :size] = relations.masks[relations.keys[each.related], one]
        cells.group[index, :size] = group[each.static_index, one]
        for slot, is_own in enumerate(each.own.tolist()):
            counter = int(relations.begin[each.related]) + slot
            axis = relations.axis[counter]
            cells.own[index, slot], cells.base[index, slot] = is_own, relations.at[counter]
            cells.axes[index, slot, :size] = relations.axes[axis, one]
            cells.marks[index, slot, :size] = relations.marks[axis, one]
            if is_own:
                of_cells = np.zeros(capacity, np.int64)
                of_cells[:size] = _on_rows(relations, counter)[one]
                has_domain = cells.axes[index, slot, :size] >= 0
                cells.axes[index, slot, :size] = np.where(has_domain, np.arange(size), -1)
                cells.base[index, slot] = end
                counts.append(of_cells)
                end += capacity
    work = {
        name: np.zeros(max(capacity, len(row_at)), getattr(relations, name).dtype)
        for name in ("fits", "sums", "spread", "affinity", "total")
    }
    return relations._replace(cells=cells, counts=np.concatenate(counts), **work)


def _capacity(layout: _Layout) -> int:
    size = int(layout.cell_of.max()) + 1
    return size + SPARE if layout.own.any() else size


def no_cells(classes: int) -> Cells:
    """Return the arrays for classes that have no cells."""
    return _empty(0, 0, 0, 0, [-1] * classes)


def _empty(layouts: int, slots: int, capacity: int, rows: int, of_class: Sequence[int]) -> Cells:
    classes = len(of_class)
    return Cells(
        of_class=np.array(of_class, np.int64),
        relation=np.zeros(layouts, np.int64),
        size=np.zeros(layouts, np.int64),
        is_full=np.zeros(layouts, np.bool_),
        cell_at=np.empty((layouts, rows), np.int32),
        moved=np.full((layouts, 2), -1, np.int64),
        base=np.zeros((layouts, slots), np.int64),
        axes=np.zeros((layouts, slots, capacity), np.int32),
        marks=np.zeros((layouts, slots, capacity), np.int32),
        own=np.zeros((layouts, slots), np.bool_),
        static_cell=np.zeros((layouts, capacity), np.int32),
        scored=np.zeros((layouts, capacity), np.bool_),
        group=np.zeros((layouts, capacity), np.int32),
        top=np.empty((classes, capacity), np.int32),
        tied=np.empty((classes, capacity), np.int32),
        feasible=np.empty((classes, capacity), np.int32),
        is_built=np.zeros(classes, np.bool_),
        total=np.zeros(capacity, np.int32),
        used=np.full(1, -1, np.int64),
    )


def in_best_cells(relations: Relations, layout: int, totals: I32, highest: int) -> Bools:
    """Whether a row had the highest total at the last decision: bool[position].

    totals: int32[position], of the class that was decided.
    """
    cells = relations.cells
    cell_at = cells.cell_at[layout].copy()
    # Its placement may have moved the row to another cell since.
    position, before = cells.moved[layout].tolist()
    if position >= 0:
        cell_at[position] = before
    is_best: Bools = (relations.total[cell_at] == highest) & (totals == cells.total[cell_at])
    return is_best

"""Compiled updates of cells, groups of rows that are equal for spread and affinity: see `Cells`."""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import BUCKETS, FEW, NOWHERE, Numbers, Totals
from roadstead.kernel.jit import bucket_at, inlined, internal, rank_of
from roadstead.kernel.relation_arrays import HOST, Cells, Relations


@inlined
def build_cells(cells: Cells, totals: Totals, c: int) -> None:
    """Compute the number of feasible rows in each cell, and their highest total, for a class."""
    layout, total = cells.of_class[c], totals.total[c]
    for cell in range(cells.size[layout]):
        cells.top[c, cell], cells.tied[c, cell], cells.alive[c, cell] = NOWHERE, 0, 0
    for place in range(total.shape[0]):
        if total[place] != NOWHERE:
            _come(cells, c, cells.of_place[layout, place], total[place])
    cells.is_built[c] = True


@inlined
def _come(cells: Cells, c: int, cell: int, total: int) -> None:
    """Add a feasible row to a cell."""
    cells.alive[c, cell] += 1
    highest = cells.top[c, cell]
    tied = cells.tied[c, cell]
    cells.tied[c, cell] = 1 if total > highest else tied + (total == highest)
    cells.top[c, cell] = max(highest, total)


@inlined
def _go(cells: Cells, c: int, cell: int, total: int) -> None:
    """Remove a row that was feasible with this total from a cell."""
    cells.alive[c, cell] -= 1
    # If no best row is left, the next decision computes the highest total again (`raise_cell`).
    cells.tied[c, cell] -= total == cells.top[c, cell]
    if cells.alive[c, cell] == 0:
        cells.top[c, cell] = NOWHERE


@inlined
def change_cell(cells: Cells, c: int, place: int, old: int, new: int) -> None:
    """Change the total of a row for a class in its cell."""
    if new == old:
        return
    cell = cells.of_place[cells.of_class[c], place]
    if old != NOWHERE:
        _go(cells, c, cell, old)
    if new != NOWHERE:
        _come(cells, c, cell, new)


@inlined
def _counted(rel: Relations, line: int, row: int) -> int:
    """Return the count of a row in a line in which it is its own domain."""
    at = rel.at[line]
    if rel.kind[line] == HOST:
        return int(rel.counts[at + row])
    domain = rel.axes[rel.axis[line], row]
    return int(rel.counts[at + domain]) if domain >= 0 else 0


@inlined
def _is_in(rel: Relations, layout: int, cell: int, row: int) -> bool:
    """Whether a row has the counts of a cell in all lines in which it is its own domain."""
    cells, first = rel.cells, rel.begin[rel.cells.relation[layout]]
    same = True
    for slot in range(cells.own.shape[1]):
        if cells.own[layout, slot]:
            known = rel.counts[cells.base[layout, slot] + cell]
            same = same and known == _counted(rel, first + slot, row)
    return same


@inlined
def _new_cell(rel: Relations, layout: int, like: int, row: int) -> int:
    """Add a cell for a row of another one, and return it; -1 if there is no room."""
    cells, first = rel.cells, rel.begin[rel.cells.relation[layout]]
    cell = cells.size[layout]
    if cell == cells.group.shape[1]:
        cells.is_full[layout] = True
        return -1
    cells.size[layout] = cell + 1
    cells.still[layout, cell] = cells.still[layout, like]
    cells.group[layout, cell] = cells.group[layout, like]
    cells.scored[layout, cell] = cells.scored[layout, like]
    for slot in range(cells.own.shape[1]):
        domain = cells.axes[layout, slot, like]
        cells.marks[layout, slot, cell] = cells.marks[layout, slot, like]
        if cells.own[layout, slot]:
            domain = cell if domain >= 0 else -1
            rel.counts[cells.base[layout, slot] + cell] = _counted(rel, first + slot, row)
        cells.axes[layout, slot, cell] = domain
    for c in range(cells.of_class.shape[0]):
        if cells.of_class[c] == layout:
            cells.top[c, cell], cells.tied[c, cell], cells.alive[c, cell] = NOWHERE, 0, 0
    return int(cell)


@internal
def move_row(rel: Relations, totals: Totals, layout: int, row: int, place: int) -> None:
    """Move a row that got a pod to the cell with its counts."""
    cells = rel.cells
    old = cells.of_place[layout, place]
    if cells.is_full[layout] or _is_in(rel, layout, old, row):
        return
    new = -1
    for cell in range(cells.size[layout]):
        if cells.still[layout, cell] == cells.still[layout, old] and _is_in(rel, layout, cell, row):
            new = cell
            break
    if new < 0:
        new = _new_cell(rel, layout, old, row)
    if new < 0:
        return
    cells.moved[layout, 0], cells.moved[layout, 1] = place, old
    cells.of_place[layout, place] = new
    for c in range(cells.of_class.shape[0]):
        total = totals.total[c, place]
        if cells.of_class[c] == layout and cells.is_built[c] and total != NOWHERE:
            _go(cells, c, old, total)
            _come(cells, c, new, total)


@inlined
def raise_cell(numbers: Numbers, cells: Cells, totals: Totals, c: int, cell: int) -> None:
    """Compute the highest total of a cell again."""
    layout, total = cells.of_class[c], totals.total[c]
    highest, tied = NOWHERE + 1, 0
    for bucket in range(BUCKETS):
        if totals.top[c, bucket] >= highest:
            for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
                if cells.of_place[layout, place] == cell and total[place] >= highest:
                    tied = tied + 1 if total[place] == highest else 1
                    highest = total[place]
    cells.top[c, cell], cells.tied[c, cell] = highest, tied


@inlined
def choose_in_cells(
    numbers: Numbers,
    totals: Totals,
    rel: Relations,
    c: int,
    draw: np.uint64,
    use_draws: bool,
    highest: int,
    ties: int,
) -> int:
    """Return the row that the draw selects among the best rows of the best cells."""
    cells, total = rel.cells, totals.total[c]
    layout, lowest = cells.of_class[c], np.int64(np.iinfo(np.int64).max)
    # The lowest total among these rows: buckets whose highest total is lower are skipped.
    for cell in range(cells.size[layout]):
        if rel.total[cell] == highest:
            lowest = min(lowest, np.int64(cells.total[cell]))
    # Of many tied rows, one is in the first few buckets in the order of the draw.
    are_many = ties >= FEW
    found, best = -1, np.uint64(0)
    for back in range(BUCKETS):
        bucket = np.int64(back)
        if are_many:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
        if totals.top[c, bucket] < lowest:
            continue
        for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
            cell = cells.of_place[layout, place]
            if rel.total[cell] == highest and total[place] == cells.total[cell]:
                rank = rank_of(numbers.order[place], draw, use_draws)
                if found < 0 or rank > best:
                    found, best = place, rank
        if are_many and found >= 0:
            break
    return int(numbers.row_at[found])

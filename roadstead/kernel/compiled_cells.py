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
        cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = NOWHERE, 0, 0
    for position in range(total.shape[0]):
        if total[position] != NOWHERE:
            _add_to_cell(cells, c, cells.cell_at[layout, position], total[position])
    cells.is_built[c] = True


@inlined
def _add_to_cell(cells: Cells, c: int, cell: int, total: int) -> None:
    """Add a feasible row to a cell."""
    cells.feasible[c, cell] += 1
    highest = cells.top[c, cell]
    tied = cells.tied[c, cell]
    cells.tied[c, cell] = 1 if total > highest else tied + (total == highest)
    cells.top[c, cell] = max(highest, total)


@inlined
def _remove_from_cell(cells: Cells, c: int, cell: int, total: int) -> None:
    """Remove a row that was feasible with this total from a cell."""
    cells.feasible[c, cell] -= 1
    # If no best row is left, the next decision computes the highest total again
    # (`recompute_cell_top`).
    cells.tied[c, cell] -= total == cells.top[c, cell]
    if cells.feasible[c, cell] == 0:
        cells.top[c, cell] = NOWHERE


@inlined
def change_cell(cells: Cells, c: int, position: int, old: int, new: int) -> None:
    """Change the total of a row for a class in its cell."""
    if new == old:
        return
    cell = cells.cell_at[cells.of_class[c], position]
    if old != NOWHERE:
        _remove_from_cell(cells, c, cell, old)
    if new != NOWHERE:
        _add_to_cell(cells, c, cell, new)


@inlined
def _counted(rel: Relations, counter: int, row: int) -> int:
    """Return the count of a row in a counter in which it is its own domain."""
    at = rel.at[counter]
    if rel.kind[counter] == HOST:
        return int(rel.counts[at + row])
    domain = rel.axes[rel.axis[counter], row]
    return int(rel.counts[at + domain]) if domain >= 0 else 0


@inlined
def _has_counts_of(rel: Relations, layout: int, cell: int, row: int) -> bool:
    """Whether a row has the counts of a cell in all counters in which it is its own domain."""
    cells, first = rel.cells, rel.begin[rel.cells.relation[layout]]
    same = True
    for slot in range(cells.own.shape[1]):
        if cells.own[layout, slot]:
            known = rel.counts[cells.base[layout, slot] + cell]
            same = same and known == _counted(rel, first + slot, row)
    return same


@inlined
def _new_cell(rel: Relations, layout: int, source: int, row: int) -> int:
    """Add a cell for a row of cell `source`, and return it; -1 if there is no room.

    Then rows are evaluated from now on (`is_full`), because the row is in a cell that is not its
    own.
    """
    cells, first = rel.cells, rel.begin[rel.cells.relation[layout]]
    cell = cells.size[layout]
    if cell == cells.group.shape[1]:
        cells.is_full[layout] = True
        return -1
    cells.size[layout] = cell + 1
    cells.static_cell[layout, cell] = cells.static_cell[layout, source]
    cells.group[layout, cell] = cells.group[layout, source]
    cells.scored[layout, cell] = cells.scored[layout, source]
    for slot in range(cells.own.shape[1]):
        domain = cells.axes[layout, slot, source]
        cells.marks[layout, slot, cell] = cells.marks[layout, slot, source]
        if cells.own[layout, slot]:
            domain = cell if domain >= 0 else -1
            rel.counts[cells.base[layout, slot] + cell] = _counted(rel, first + slot, row)
        cells.axes[layout, slot, cell] = domain
    for c in range(cells.of_class.shape[0]):
        if cells.of_class[c] == layout:
            cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = NOWHERE, 0, 0
    return int(cell)


@internal
def move_row(rel: Relations, totals: Totals, layout: int, row: int, position: int) -> None:
    """Move a row that got a pod to the cell with its counts; without one, to a new cell."""
    cells = rel.cells
    old = cells.cell_at[layout, position]
    if cells.is_full[layout] or _has_counts_of(rel, layout, old, row):
        return
    new = -1
    for cell in range(cells.size[layout]):
        if cells.static_cell[layout, cell] == cells.static_cell[layout, old] and _has_counts_of(
            rel, layout, cell, row
        ):
            new = cell
            break
    if new < 0:
        new = _new_cell(rel, layout, old, row)
    if new < 0:
        return
    cells.moved[layout, 0], cells.moved[layout, 1] = position, old
    cells.cell_at[layout, position] = new
    for c in range(cells.of_class.shape[0]):
        total = totals.total[c, position]
        if cells.of_class[c] == layout and cells.is_built[c] and total != NOWHERE:
            _remove_from_cell(cells, c, old, total)
            _add_to_cell(cells, c, new, total)


@inlined
def recompute_cell_top(numbers: Numbers, cells: Cells, totals: Totals, c: int, cell: int) -> None:
    """Compute the highest total of a cell again, from the buckets that may have it."""
    layout, total = cells.of_class[c], totals.total[c]
    # Above NOWHERE: buckets and rows that are not feasible are skipped.
    highest, tied = NOWHERE + 1, 0
    for bucket in range(BUCKETS):
        if totals.top[c, bucket] >= highest:
            for position in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
                if cells.cell_at[layout, position] == cell and total[position] >= highest:
                    tied = tied + 1 if total[position] == highest else 1
                    highest = total[position]
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
        for position in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
            cell = cells.cell_at[layout, position]
            if rel.total[cell] == highest and total[position] == cells.total[cell]:
                rank = rank_of(numbers.order[position], draw, use_draws)
                if found < 0 or rank > best:
                    found, best = position, rank
        if are_many and found >= 0:
            break
    return int(numbers.row_at[found])

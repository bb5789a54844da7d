"""Compiled updates of cells, groups of rows that are equal for spread and affinity.

For layouts, slots and the fields of `Cells` see `counter_arrays.py`.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import BUCKETS, FEW_TIES, INFEASIBLE, RowArrays, Totals
from roadstead.kernel.counter_arrays import HOST, NO_CELLS, Cells, CounterArrays
from roadstead.kernel.jit import bucket_at, inlined, internal, rank_of


@inlined
def slot_of(
    counters: CounterArrays, layout: int, counter_set: int, counter: int
) -> tuple[int, int]:
    """Return the slot of a counter in all_domains, and the index of its first count.

    all_domains has the domains of rows by topology key, or those of cells by slot of the layout.
    """
    if layout == NO_CELLS:
        return counters.key[counter], counters.count_begin[counter]
    slot = counter - counters.set_begin[counter_set]
    return slot, counters.cells.count_begin[layout, slot]


@inlined
def build_cells(cells: Cells, totals: Totals, c: int) -> None:
    """Compute the number of feasible rows in each cell, and their highest total, for a class."""
    layout, total = cells.layout_of_class[c], totals.total[c]
    for cell in range(cells.cell_count[layout]):
        cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = INFEASIBLE, 0, 0
    for position in range(total.shape[0]):
        if total[position] != INFEASIBLE:
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
        cells.top[c, cell] = INFEASIBLE


@inlined
def change_cell(cells: Cells, c: int, position: int, old: int, new: int) -> None:
    """Change the total of a row for a class in its cell."""
    if new == old:
        return
    cell = cells.cell_at[cells.layout_of_class[c], position]
    if old != INFEASIBLE:
        _remove_from_cell(cells, c, cell, old)
    if new != INFEASIBLE:
        _add_to_cell(cells, c, cell, new)


@inlined
def _count_of_row(counters: CounterArrays, counter: int, row: int) -> int:
    """Return the count of a row in a counter in which it is its own domain."""
    at = counters.count_begin[counter]
    if counters.kind[counter] == HOST:
        return int(counters.counts[at + row])
    domain = counters.domains[counters.key[counter], row]
    return int(counters.counts[at + domain]) if domain >= 0 else 0


@inlined
def _has_counts_of(counters: CounterArrays, layout: int, cell: int, row: int) -> bool:
    """Whether a row has the counts of a cell in all counters in which it is its own domain."""
    cells, first = counters.cells, counters.set_begin[counters.cells.counter_set[layout]]
    same = True
    for slot in range(cells.is_own_domain.shape[1]):
        if cells.is_own_domain[layout, slot]:
            count = counters.counts[cells.count_begin[layout, slot] + cell]
            same = same and count == _count_of_row(counters, first + slot, row)
    return same


@inlined
def _new_cell(counters: CounterArrays, layout: int, source: int, row: int) -> int:
    """Add a cell for a row of cell `source`, and return it; -1 if the arrays are full.

    If they are full, the row stays in a cell whose counts it does not have, so rows are evaluated
    from now on (`is_full`).
    """
    cells, first = counters.cells, counters.set_begin[counters.cells.counter_set[layout]]
    cell = cells.cell_count[layout]
    if cell == cells.group.shape[1]:
        cells.is_full[layout] = True
        return -1
    cells.cell_count[layout] = cell + 1
    cells.static_cell[layout, cell] = cells.static_cell[layout, source]
    cells.group[layout, cell] = cells.group[layout, source]
    cells.is_scored[layout, cell] = cells.is_scored[layout, source]
    for slot in range(cells.is_own_domain.shape[1]):
        domain = cells.domains[layout, slot, source]
        cells.soft_domains[layout, slot, cell] = cells.soft_domains[layout, slot, source]
        if cells.is_own_domain[layout, slot]:
            domain = cell if domain >= 0 else -1
            counters.counts[cells.count_begin[layout, slot] + cell] = _count_of_row(
                counters, first + slot, row
            )
        cells.domains[layout, slot, cell] = domain
    for c in range(cells.layout_of_class.shape[0]):
        if cells.layout_of_class[c] == layout:
            cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = INFEASIBLE, 0, 0
    return int(cell)


@internal
def move_row(counters: CounterArrays, totals: Totals, layout: int, row: int, position: int) -> None:
    """Move a row that got a pod to the cell with its counts; if there is none, to a new cell."""
    cells = counters.cells
    old = cells.cell_at[layout, position]
    if cells.is_full[layout] or _has_counts_of(counters, layout, old, row):
        return
    new = -1
    for cell in range(cells.cell_count[layout]):
        if cells.static_cell[layout, cell] == cells.static_cell[layout, old] and _has_counts_of(
            counters, layout, cell, row
        ):
            new = cell
            break
    if new < 0:
        new = _new_cell(counters, layout, old, row)
    if new < 0:
        return
    cells.last_move[layout, 0], cells.last_move[layout, 1] = position, old
    cells.cell_at[layout, position] = new
    for c in range(cells.layout_of_class.shape[0]):
        total = totals.total[c, position]
        if cells.layout_of_class[c] == layout and cells.is_built[c] and total != INFEASIBLE:
            _remove_from_cell(cells, c, old, total)
            _add_to_cell(cells, c, new, total)


@inlined
def recompute_cell_top(table: RowArrays, cells: Cells, totals: Totals, c: int, cell: int) -> None:
    """Compute the highest total of a cell again, from the buckets that may have it."""
    layout, total = cells.layout_of_class[c], totals.total[c]
    # Above INFEASIBLE: buckets and rows that are not feasible are skipped.
    highest, tied = INFEASIBLE + 1, 0
    for bucket in range(BUCKETS):
        if totals.top[c, bucket] >= highest:
            for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
                if cells.cell_at[layout, position] == cell and total[position] >= highest:
                    tied = tied + 1 if total[position] == highest else 1
                    highest = total[position]
    cells.top[c, cell], cells.tied[c, cell] = highest, tied


@inlined
def choose_in_cells(
    table: RowArrays,
    totals: Totals,
    counters: CounterArrays,
    c: int,
    tie_hash: np.uint64,
    is_random: bool,
    highest: int,
    ties: int,
) -> int:
    """Return the row that the tie-break selects among the best rows of the best cells."""
    cells, total = counters.cells, totals.total[c]
    layout, lowest = cells.layout_of_class[c], np.int64(np.iinfo(np.int64).max)
    # The lowest total of the best cells: buckets whose highest total is lower are skipped.
    for cell in range(cells.cell_count[layout]):
        if counters.total[cell] == highest:
            lowest = min(lowest, np.int64(cells.total[cell]))
    # Of many tied rows, one is in the first few buckets in the order of the tie-break.
    are_many = ties >= FEW_TIES
    found, best = -1, np.uint64(0)
    for back in range(BUCKETS):
        bucket = np.int64(back)
        if are_many:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), tie_hash, is_random)
        if totals.top[c, bucket] < lowest:
            continue
        for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
            cell = cells.cell_at[layout, position]
            if counters.total[cell] == highest and total[position] == cells.total[cell]:
                rank = rank_of(table.sort_keys[position], tie_hash, is_random)
                if found < 0 or rank > best:
                    found, best = position, rank
        if are_many and found >= 0:
            break
    return int(table.row_at[found])

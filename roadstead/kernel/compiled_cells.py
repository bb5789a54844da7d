"""Compiled functions that build and update cells, and choose a row from them.

A cell is a set of rows that are equal for the spread constraints and the inter-pod affinity of a
class; they are evaluated once. `Cells` and `CounterArrays` (`counter_arrays.py`) and `RowArrays`
and `Totals` (`arrays.py`) describe the arrays. The words used here:

- c: index of a pod class. counter: index of a table of counts by topology domain.
- counter set: the consecutive counters of a class, from `set_begin`. slot: a counter's number
  within its counter set.
- cell_set: index of the cells of one counter set and one index of static scores, which several
  classes may share.
- position: index of a row in the order of the rows' sort keys; `row_at[position]` is the row.
- bucket: a range of consecutive positions; `Totals.top` has its highest total for each class.
- group: normalization group, rows with equal raw static scores (`Totals`).
- own-domain counter: one in which each row is its own domain, as with hostname. Placed pods change
  the counts of single rows in it, so rows move between cells.
- static_cell: the same number for all cells that differ in the counts of own-domain counters only;
  a row moves between these.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import BUCKETS, FEW_TIES, INFEASIBLE, RowArrays, Totals
from roadstead.kernel.counter_arrays import HOST, NO_CELLS, Cells, CounterArrays
from roadstead.kernel.jit import bucket_at, inlined, internal, rank_of


@inlined
def slot_of(
    counters: CounterArrays, cell_set: int, counter_set: int, counter: int
) -> tuple[int, int]:
    """Return the index of a counter in an array of domains, and the index of its first count.

    The array is `CounterArrays.domains`, indexed by topology key, if cell_set is NO_CELLS; else
    `Cells.domains` of the cell_set, indexed by slot.
    """
    if cell_set == NO_CELLS:
        return counters.key[counter], counters.count_begin[counter]
    slot = counter - counters.set_begin[counter_set]
    return slot, counters.cells.count_begin[cell_set, slot]


@inlined
def build_cells(cells: Cells, totals: Totals, c: int) -> None:
    """Compute the feasible rows of each cell for a class.

    feasible: how many there are. top: their highest total. tied: how many have it.
    """
    cell_set, total = cells.cell_set_of_class[c], totals.total[c]
    for cell in range(cells.cell_count[cell_set]):
        cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = INFEASIBLE, 0, 0
    for position in range(total.shape[0]):
        if total[position] != INFEASIBLE:
            _add_to_cell(cells, c, cells.cell_at[cell_set, position], total[position])
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
    cell = cells.cell_at[cells.cell_set_of_class[c], position]
    if old != INFEASIBLE:
        _remove_from_cell(cells, c, cell, old)
    if new != INFEASIBLE:
        _add_to_cell(cells, c, cell, new)


@inlined
def _count_of_row(counters: CounterArrays, counter: int, row: int) -> int:
    """Return the count of a row in an own-domain counter."""
    # Counts of HOST are stored by row, those of other types by domain.
    at = counters.count_begin[counter]
    if counters.kind[counter] == HOST:
        return int(counters.counts[at + row])
    domain = counters.domains[counters.key[counter], row]
    return int(counters.counts[at + domain]) if domain >= 0 else 0


@inlined
def _has_counts_of(counters: CounterArrays, cell_set: int, cell: int, row: int) -> bool:
    """Whether a row has the counts of a cell in all own-domain counters."""
    cells, first = counters.cells, counters.set_begin[counters.cells.counter_set[cell_set]]
    same = True
    for slot in range(cells.is_own_domain.shape[1]):
        if cells.is_own_domain[cell_set, slot]:
            count = counters.counts[cells.count_begin[cell_set, slot] + cell]
            same = same and count == _count_of_row(counters, first + slot, row)
    return same


@inlined
def _new_cell(counters: CounterArrays, cell_set: int, source: int, row: int) -> int:
    """Add a cell for a row of cell `source`, and return it; -1 if the arrays are full.

    If they are full, the row stays in a cell whose counts it does not have. So `is_full` is set:
    from now on rows are evaluated one by one in place of the cells.
    """
    cells, first = counters.cells, counters.set_begin[counters.cells.counter_set[cell_set]]
    cell = cells.cell_count[cell_set]
    if cell == cells.group.shape[1]:
        cells.is_full[cell_set] = True
        return -1
    cells.cell_count[cell_set] = cell + 1
    cells.static_cell[cell_set, cell] = cells.static_cell[cell_set, source]
    cells.group[cell_set, cell] = cells.group[cell_set, source]
    cells.is_scored[cell_set, cell] = cells.is_scored[cell_set, source]
    for slot in range(cells.is_own_domain.shape[1]):
        domain = cells.domains[cell_set, slot, source]
        # Read for SOFT counters only, which are never own-domain counters.
        cells.soft_domains[cell_set, slot, cell] = cells.soft_domains[cell_set, slot, source]
        if cells.is_own_domain[cell_set, slot]:
            # Each cell is a domain of its own, with the count that each of its rows has.
            domain = cell if domain >= 0 else -1
            counters.counts[cells.count_begin[cell_set, slot] + cell] = _count_of_row(
                counters, first + slot, row
            )
        cells.domains[cell_set, slot, cell] = domain
    for c in range(cells.cell_set_of_class.shape[0]):
        if cells.cell_set_of_class[c] == cell_set:
            cells.top[c, cell], cells.tied[c, cell], cells.feasible[c, cell] = INFEASIBLE, 0, 0
    return int(cell)


@internal
def move_row(
    counters: CounterArrays, totals: Totals, cell_set: int, row: int, position: int
) -> None:
    """Move a row that got a pod to the cell whose own-domain counts it has now, else to a new one.

    If the arrays are full, it stays in its cell.
    """
    cells = counters.cells
    old = cells.cell_at[cell_set, position]
    if cells.is_full[cell_set] or _has_counts_of(counters, cell_set, old, row):
        return
    new = -1
    for cell in range(cells.cell_count[cell_set]):
        if cells.static_cell[cell_set, cell] == cells.static_cell[cell_set, old] and _has_counts_of(
            counters, cell_set, cell, row
        ):
            new = cell
            break
    if new < 0:
        new = _new_cell(counters, cell_set, old, row)
    if new < 0:
        return
    # For `in_best_cells`, which needs the cells as they were at the decision.
    cells.last_move[cell_set, 0], cells.last_move[cell_set, 1] = position, old
    cells.cell_at[cell_set, position] = new
    for c in range(cells.cell_set_of_class.shape[0]):
        total = totals.total[c, position]
        if cells.cell_set_of_class[c] == cell_set and cells.is_built[c] and total != INFEASIBLE:
            _remove_from_cell(cells, c, old, total)
            _add_to_cell(cells, c, new, total)


@inlined
def recompute_cell_top(table: RowArrays, cells: Cells, totals: Totals, c: int, cell: int) -> None:
    """Compute the highest total of a cell again, from the buckets that may have it.

    The cell must have a feasible row.
    """
    cell_set, total = cells.cell_set_of_class[c], totals.total[c]
    # Begin above INFEASIBLE, so that rows that are not feasible, and buckets of them, are skipped.
    highest, tied = INFEASIBLE + 1, 0
    for bucket in range(BUCKETS):
        if totals.top[c, bucket] >= highest:
            for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
                if cells.cell_at[cell_set, position] == cell and total[position] >= highest:
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
    """Return the row that the tie-break selects among the best rows of the best cells.

    highest: the highest total of a cell (`counters.total`), with spread and affinity scores. ties:
    number of rows that have it.
    """
    cells, total = counters.cells, totals.total[c]
    cell_set, lowest = cells.cell_set_of_class[c], np.int64(np.iinfo(np.int64).max)
    # cells.total: the total of a cell's best rows without spread and affinity scores, as in
    # `total`. lowest: the lowest such total of the best cells. A bucket whose highest total is
    # lower has no row to choose, and is skipped.
    for cell in range(cells.cell_count[cell_set]):
        if counters.total[cell] == highest:
            lowest = min(lowest, np.int64(cells.total[cell]))
    # If many rows are tied, read buckets in the order of the tie-break, from the highest ranks down
    # (`rank_of`), and stop at the first bucket with one of these rows, which is soon found.
    are_many = ties >= FEW_TIES
    found, best = -1, np.uint64(0)
    for passed in range(BUCKETS):
        bucket = np.int64(passed)
        if are_many:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - passed), tie_hash, is_random)
        if totals.top[c, bucket] < lowest:
            continue
        for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
            cell = cells.cell_at[cell_set, position]
            if counters.total[cell] == highest and total[position] == cells.total[cell]:
                rank = rank_of(table.sort_keys[position], tie_hash, is_random)
                if found < 0 or rank > best:
                    found, best = position, rank
        if are_many and found >= 0:
            break
    return int(table.row_at[found])

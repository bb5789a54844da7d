"""Compiled decisions of classes with spread constraints or inter-pod affinity.

Other classes are decided in `compiled.py`. A placement changes all rows of a domain, so all cells
(`Cells`) are evaluated for each pod, twice if scores are normalized. Rows are evaluated instead of
cells if hardly two rows are equal or rows are sampled. The arithmetic is, operation for operation,
that of `plugins/pod_topology_spread.py` and `plugins/inter_pod_affinity.py`. Both plugins are
computed together, by types of counters (decision 43); their scores are in
`compiled_counter_scores.py`.

For counters, pod profiles and cells see `counter_arrays.py`. Types of counters: HARD and SOFT are
spread constraints, HOST a soft one by hostname; AFFINITY and ANTI_AFFINITY are the class's own
required terms, EXISTING_ANTI the anti-affinity of placed pods; SCORE is preferred terms.
A unit is a row or, if cells are evaluated, a cell. cell_set: the cell set that is evaluated,
NO_CELLS if rows are evaluated. all_domains, soft_domains: int32[slot, unit], as `domains` and
`soft_domains` of `CounterArrays`; a slot is what `slot_of` returns for a counter.
group: int32[unit], normalization group. is_scored: bool[unit], whether its rows are scored. units:
the number of units; arrays of `CounterArrays` that are per row or cell are cut to it.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    DONE,
    FEW_TIES,
    INFEASIBLE,
    NEEDS_NORMALIZATION,
    NO_FEASIBLE_ROW,
    PodArrays,
    RowArrays,
    Totals,
)
from roadstead.kernel.compiled_cells import (
    build_cells,
    choose_in_cells,
    move_row,
    recompute_cell_top,
    slot_of,
)
from roadstead.kernel.compiled_counter_scores import add_counter_scores
from roadstead.kernel.counter_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    AT_LOWEST,
    DOMAIN_COUNT,
    EXISTING_ANTI,
    HARD,
    HOST,
    LOWEST,
    NO_CELLS,
    NO_MINIMUM,
    SCORE,
    SOFT,
    CounterArrays,
)
from roadstead.kernel.jit import bucket_at, inlined, internal, rank_of
from roadstead.nodes.columns import I32


@internal
def count_pod(
    counters: CounterArrays, totals: Totals, profile: int, row: int, position: int
) -> None:
    """Count a placed pod in every counter to which its profile adds; move its row between cells."""
    for each in range(counters.additions_from[profile], counters.additions_from[profile + 1]):
        counter, amount = counters.additions[each, 0], counters.additions[each, 1]
        kind = counters.kind[counter]
        if kind == HOST:
            counters.counts[counters.count_begin[counter] + row] += amount
        elif kind in (SOFT, HARD):
            if counters.masks[counters.counted_mask[counter], row]:
                domain = counters.soft_domains[counters.key[counter], row]
                at = counters.count_begin[counter] + domain
                # This domain no longer has the lowest count. When none is left that has it,
                # `_highest_allowed` finds the new lowest count.
                counters.lowest[counter, AT_LOWEST] -= (
                    counters.domain_exists[at]
                    and counters.counts[at] == counters.lowest[counter, LOWEST]
                )
                counters.counts[at] += amount
        else:
            domain = counters.domains[counters.key[counter], row]
            if domain >= 0:
                counters.counts[counters.count_begin[counter] + domain] += amount
    for cell_set in range(counters.cells.cell_count.shape[0]):
        move_row(counters, totals, cell_set, row, position)


@inlined
def _highest_allowed(counters: CounterArrays, counter: int) -> int:
    """Return the highest count with which a domain still accepts the pod, for a hard constraint."""
    lowest = counters.lowest[counter]
    # AT_LOWEST is the number of domains with the lowest count. `count_pod` subtracts those whose
    # count grows: at 0, the lowest count has grown, too.
    if lowest[AT_LOWEST] <= 0:
        lowest[LOWEST], lowest[AT_LOWEST], lowest[DOMAIN_COUNT] = NO_MINIMUM, 0, 0
        begin = counters.count_begin[counter]
        for at in range(begin, begin + counters.count_size[counter]):
            if counters.domain_exists[at]:
                lowest[AT_LOWEST] = (
                    1
                    if counters.counts[at] < lowest[LOWEST]
                    else lowest[AT_LOWEST] + (counters.counts[at] == lowest[LOWEST])
                )
                lowest[LOWEST] = min(lowest[LOWEST], counters.counts[at])
                lowest[DOMAIN_COUNT] += 1
    minimum = lowest[LOWEST] if lowest[DOMAIN_COUNT] >= counters.min_domains[counter] else 0
    highest: int = counters.skew[counter] + minimum
    return highest


@inlined
def _is_first(counters: CounterArrays, counter_set: int) -> bool:
    """Whether no pod anywhere matches the required affinity, and the class matches its own.

    Upstream then accepts the pod on any node with all keys: the first pod of a group that attracts
    itself would otherwise never be placed.
    """
    if not counters.matches_itself[counter_set]:
        return False
    for counter in range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1]):
        if counters.kind[counter] == AFFINITY:
            begin = counters.count_begin[counter]
            for at in range(begin, begin + counters.count_size[counter]):
                if counters.counts[at] != 0:
                    return False
    return True


@inlined
def _reject(
    counters: CounterArrays, cell_set: int, all_domains: I32, counter_set: int, units: int
) -> None:
    """Clear `counters.fits` of units that hard constraints or required terms reject.

    A unit without a domain (-1) reads the first count, so that the loops have no branch.
    """
    fits, is_first = counters.fits[:units], _is_first(counters, counter_set)
    for counter in range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1]):
        kind = counters.kind[counter]
        slot, at = slot_of(counters, cell_set, counter_set, counter)
        domains = all_domains[slot]
        if kind == HARD:
            highest = _highest_allowed(counters, counter)
            for unit in range(fits.shape[0]):
                domain = domains[unit]
                is_allowed = counters.counts[at + max(domain, 0)] <= highest
                fits[unit] = fits[unit] & (domain >= 0) & is_allowed
        elif kind in (EXISTING_ANTI, ANTI_AFFINITY):
            for unit in range(fits.shape[0]):
                domain = domains[unit]
                is_free = counters.counts[at + max(domain, 0)] <= 0
                fits[unit] = fits[unit] & ((domain < 0) | is_free)
        elif kind == AFFINITY:
            for unit in range(fits.shape[0]):
                domain = domains[unit]
                has_match = is_first | (counters.counts[at + max(domain, 0)] != 0)
                fits[unit] = fits[unit] & (domain >= 0) & has_match


@inlined
def _reject_unvisited(counters: CounterArrays, pods: PodArrays, c: int) -> None:
    """Clear `counters.fits` for rows that upstream's sampled search would not visit.

    Sampled: the search stops after enough feasible nodes; the next one starts behind them.
    """
    fits, order = counters.fits, pods.search_order
    at, visited, found = pods.search_start[0], 0, 0
    is_searching = True
    for _ in range(order.shape[0]):
        row = order[at]
        is_searching = is_searching and not (fits[row] and found == pods.feasible_to_find[c])
        found += is_searching and fits[row]
        visited += is_searching
        fits[row] = is_searching and fits[row]
        at = at + 1 if at + 1 < order.shape[0] else 0
    pods.visited_rows[0] = visited


@inlined
def _may_reject(counters: CounterArrays, counter_set: int) -> bool:
    """Whether any counter may reject rows."""
    for counter in range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1]):
        if counters.kind[counter] not in (SOFT, HOST, SCORE):
            return True
    return False


@inlined
def _set_fits(
    table: RowArrays, counters: CounterArrays, totals: Totals, c: int, cell_set: int
) -> int:
    """Set `counters.fits` from the totals of the class; return the number of rows or cells."""
    total = totals.total[c]
    if cell_set == NO_CELLS:
        for position in range(total.shape[0]):
            row = table.row_at[position]
            counters.fits[row] = total[position] != INFEASIBLE
            counters.total[row] = total[position]
        return int(total.shape[0])
    if not counters.cells.is_built[c]:
        build_cells(counters.cells, totals, c)
    for cell in range(counters.cells.cell_count[cell_set]):
        counters.fits[cell] = counters.cells.feasible[c, cell] > 0
    return int(counters.cells.cell_count[cell_set])


@inlined
def _filter(
    counters: CounterArrays,
    totals: Totals,
    pods: PodArrays,
    c: int,
    cell_set: int,
    all_domains: I32,
    group: I32,
    units: int,
) -> None:
    """Compute which units fit, and which normalization groups have such units.

    If no counter can reject rows and no rows are sampled, the units that fit are those that
    `_set_fits` found, and the groups are copied from `totals`.
    """
    counter_set = counters.set_of_class[c]
    if not (_may_reject(counters, counter_set) or pods.search_order.shape[0] > 0):
        # Assigning the whole array would compile the text of its error, which takes seconds.
        for each in range(counters.group_feasible.shape[0]):
            counters.group_feasible[each] = totals.group_feasible[c, each]
        return
    _reject(counters, cell_set, all_domains, counter_set, units)
    _reject_unvisited(counters, pods, c)
    counters.group_feasible[:] = 0
    feasible = 0
    for unit in range(units):
        feasible += counters.fits[unit]
        if counters.fits[unit]:
            counters.group_feasible[group[unit]] = 1
    if cell_set == NO_CELLS:
        for row in range(units):
            counters.total[row] = counters.total[row] if counters.fits[row] else INFEASIBLE
    else:
        feasible = 0
        for cell in range(units):
            feasible += counters.cells.feasible[c, cell] if counters.fits[cell] else 0
    totals.feasible[c] = feasible


@inlined
def _total_cells(
    table: RowArrays, counters: CounterArrays, totals: Totals, c: int, size: int
) -> None:
    """Compute the totals of the cells that fit, without spread and affinity scores."""
    for cell in range(size):
        counters.total[cell] = INFEASIBLE
        if counters.fits[cell]:
            # 0: `top` is only an upper bound.
            if counters.cells.tied[c, cell] <= 0:
                recompute_cell_top(table, counters.cells, totals, c, cell)
            counters.cells.total[cell] = counters.total[cell] = counters.cells.top[c, cell]


@inlined
def _needs_normalization(counters: CounterArrays, c: int) -> bool:
    """Whether other groups have feasible rows than when the class's totals were normalized."""
    differs = not counters.has_last_groups[c]
    for each in range(counters.group_feasible.shape[0]):
        differs = differs or (counters.group_feasible[each] > 0) != counters.last_groups[c, each]
    return differs


@inlined
def _choose(
    table: RowArrays,
    counters: CounterArrays,
    tie_hash: np.uint64,
    is_random: bool,
    highest: int,
    ties: int,
) -> int:
    """Return the first row with the highest total, by the tie-break."""
    # Of many tied rows, one is in the first few buckets in tie-break order; of few it may
    # be in any, so all rows are read in one loop.
    are_few = ties < FEW_TIES
    found, best = -1, np.uint64(0)
    for back in range(1 if are_few else BUCKETS):
        start, stop = 0, table.row_at.shape[0]
        if not are_few:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), tie_hash, is_random)
            start, stop = table.bucket_begin[bucket], table.bucket_begin[bucket + 1]
        for position in range(start, stop):
            row = table.row_at[position]
            if counters.total[row] == highest:
                rank = rank_of(table.sort_keys[position], tie_hash, is_random)
                if found < 0 or rank > best:
                    found, best = row, rank
        if found >= 0:
            break
    return found


@internal
def decide_by_counters(
    table: RowArrays, totals: Totals, counters: CounterArrays, pods: PodArrays, pod: int, c: int
) -> tuple[int, int]:
    """Return DONE and the row for a pod of a class with current totals, or why there is no row."""
    cell_set = int(counters.cells.cell_set_of_class[c])
    # Sampling rejects single rows of a cell; in a full cell set, rows have no cell to move to.
    if cell_set != NO_CELLS and (
        pods.search_order.shape[0] > 0 or counters.cells.is_full[cell_set]
    ):
        cell_set = NO_CELLS
    counters.cells.last_cell_set[0] = cell_set
    all_domains, soft_domains = counters.domains, counters.soft_domains
    group = totals.group_of_row[counters.static_index[c]]
    is_scored = counters.masks[counters.scored_mask[counters.set_of_class[c]]]
    if cell_set != NO_CELLS:
        cells = counters.cells
        all_domains, soft_domains = cells.domains[cell_set], cells.soft_domains[cell_set]
        group, is_scored = cells.group[cell_set], cells.is_scored[cell_set]
        cells.last_move[cell_set, 0] = -1
    units = _set_fits(table, counters, totals, c, cell_set)
    _filter(counters, totals, pods, c, cell_set, all_domains, group, units)
    if _needs_normalization(counters, c):
        return NEEDS_NORMALIZATION, -1
    if totals.feasible[c] == 0:
        return NO_FEASIBLE_ROW, -1
    if cell_set != NO_CELLS:
        _total_cells(table, counters, totals, c, units)
    add_counter_scores(counters, c, cell_set, all_domains, soft_domains, is_scored, units)
    total, highest, ties = counters.total[:units], INFEASIBLE, 0
    for unit in range(units):
        highest = max(highest, total[unit])
    tie_hash, is_random = pods.tie_break_hashes[pod], pods.is_random[0]
    if cell_set == NO_CELLS:
        for unit in range(units):
            ties += total[unit] == highest
        found = _choose(table, counters, tie_hash, is_random, highest, ties)
    else:
        for unit in range(units):
            ties += counters.cells.tied[c, unit] if total[unit] == highest else 0
        found = choose_in_cells(table, totals, counters, c, tie_hash, is_random, highest, ties)
    pods.tied_best[pod], pods.total[pod], pods.feasible[pod] = ties, highest, totals.feasible[c]
    if pods.search_order.shape[0]:
        next_start = pods.search_start[0] + pods.visited_rows[0]
        pods.search_start[0] = next_start % pods.search_order.shape[0]
    return DONE, found

"""Compiled decisions: totals of classes over rows, their updates, and the choice of a row.

The total of a row for a class is the weighted sum of the node's scores, or INFEASIBLE if a filter
rejects the node. `decide_pods` decides a class by `compiled_counters` if it has spread constraints
or affinity, by `compiled_lists` if it has no totals but a list of its best rows, else by its
totals, here. For the arrays, buckets and blocks see `arrays.py`.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BLOCK,
    BUCKETS,
    DONE,
    FEW_TIES,
    INFEASIBLE,
    NEEDS_NORMALIZATION,
    NO_FEASIBLE_ROW,
    NO_TOTALS,
    RESULTS_CHANGED,
    Lists,
    PodArrays,
    RowArrays,
    Totals,
)
from roadstead.kernel.compiled_build import (
    are_scores_cached,
    build,
    recompute_block_top,
    recompute_top,
    renormalize,
)
from roadstead.kernel.compiled_cells import change_cell
from roadstead.kernel.compiled_counters import count_pod, decide_by_counters
from roadstead.kernel.compiled_lists import decide_listed, list_best, save_former
from roadstead.kernel.counter_arrays import Cells, CounterArrays
from roadstead.kernel.jit import bucket_at, compiled, inlined, internal, position_of_bucket, rank_of
from roadstead.kernel.lowering.compiled_lowerings import evaluate, place_pod
from roadstead.kernel.lowering.lowerings import ClassArrays

__all__ = ["build", "catch_up", "decide_pods", "list_best", "renormalize"]

_ZERO = np.uint64(0)


@internal
def _set_total(table: RowArrays, totals: Totals, c: int, row: int, group: int, new: int) -> None:
    """Set the total of a row for a class, or INFEASIBLE; update counts and maxima.

    group: the row's normalization group. When it gets its first feasible row or loses its last one,
    the class needs normalization.
    """
    position = table.position_of[row]
    old = totals.total[c, position]
    if new == old:
        return
    if old == INFEASIBLE or new == INFEASIBLE:
        change = 1 if old == INFEASIBLE else -1
        totals.feasible[c] += change
        totals.group_feasible[c, group] += change
        if totals.group_feasible[c, group] == 0 or (
            change == 1 and totals.group_feasible[c, group] == 1
        ):
            totals.needs_normalization[c] = True
    totals.total[c, position] = new
    bucket = table.bucket_of[position]
    top, tied = totals.top[c, bucket], totals.tied[c, bucket]
    if new > top:
        totals.top[c, bucket], totals.tied[c, bucket] = new, 1
    elif new == top:
        totals.tied[c, bucket] += 1
    # The total is and was below the highest of the bucket: its best rows are the same.
    elif old < top:
        return
    elif tied > 1:
        totals.tied[c, bucket] -= 1
    else:
        recompute_top(table, totals, c, bucket)
    _update_block_top(totals, c, bucket, top, tied)


@inlined
def _update_block_top(totals: Totals, c: int, bucket: int, top: int, tied: int) -> None:
    """Update the highest total of a block after a change in one of its buckets.

    top, tied: those of the bucket before the change.
    """
    block = bucket // BLOCK
    now = totals.top[c, bucket]
    if top == totals.block_top[c, block]:
        totals.block_tied[c, block] -= tied
    if now > totals.block_top[c, block]:
        totals.block_top[c, block], totals.block_tied[c, block] = now, totals.tied[c, bucket]
    elif now == totals.block_top[c, block]:
        totals.block_tied[c, block] += totals.tied[c, bucket]
    if totals.block_tied[c, block] == 0:
        recompute_block_top(totals, c, block)


@inlined
def catch_up(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    cells: Cells,
    pods: PodArrays,
    c: int,
) -> None:
    """Update the totals of a class for every row that changed since its last update."""
    rows = pods.changed_rows[totals.applied_changes[c] : pods.changed_count[0]]
    if rows.shape[0] == 0:
        return
    new_totals = pods.new_totals
    evaluate(table, class_arrays, totals, c, rows, new_totals)
    groups, scores = totals.group_of_row[class_arrays.static_index[c]], totals.normalized_scores[c]
    for position in range(rows.shape[0]):
        group = groups[rows[position]]
        new = (
            new_totals[position]
            if new_totals[position] == INFEASIBLE
            else new_totals[position] + scores[group]
        )
        if cells.is_built[c]:
            at = table.position_of[rows[position]]
            change_cell(cells, c, at, totals.total[c, at], new)
        _set_total(table, totals, c, rows[position], group, new)
    totals.applied_changes[c] = pods.changed_count[0]


@inlined
def _first_bucket(
    totals: Totals, c: int, highest: int, ties: int, tie_hash: np.uint64, is_random: bool
) -> np.int64:
    """Return the first bucket, in the order of the tie-break, with a row of the highest total."""
    top = totals.top[c]
    # Of many tied rows, one is in the first few buckets in the order of the tie-break.
    if ties >= FEW_TIES:
        for passed in range(BUCKETS):
            bucket = bucket_at(np.uint64(BUCKETS - 1 - passed), tie_hash, is_random)
            if top[bucket] == highest:
                return bucket
    # best: place of `found` in the order of the tie-break, in which the highest is first.
    found, best = np.int64(-1), np.int64(-1)
    for block in range(BUCKETS // BLOCK):
        if totals.block_top[c, block] == highest:
            for each in range(block * BLOCK, (block + 1) * BLOCK):
                if top[each] == highest:
                    at = np.int64(each)
                    if is_random:
                        at = np.int64(position_of_bucket(np.uint64(each), tie_hash))
                    if at > best:
                        found, best = np.int64(each), at
    return found


@inlined
def _choose(
    table: RowArrays, totals: Totals, pods: PodArrays, pod: int, c: int, highest: int
) -> int:
    """Return the first row with the highest total, by the tie-break; record how many have it."""
    tie_hash, is_random = pods.tie_break_hashes[pod], pods.is_random[0]
    ties = 0
    for block in range(BUCKETS // BLOCK):
        if totals.block_top[c, block] == highest:
            ties += totals.block_tied[c, block]
    pods.tied_best[pod] = ties
    bucket = _first_bucket(totals, c, highest, ties, tie_hash, is_random)
    total, order = totals.total[c], table.sort_keys
    found, best = -1, _ZERO
    for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
        if total[position] == highest:
            rank = rank_of(order[position], tie_hash, is_random)
            if found < 0 or rank > best:
                found, best = position, rank
    return int(table.row_at[found])


@inlined
def _why_undecided(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    cells: Cells,
    pods: PodArrays,
    c: int,
    normalizes_itself: bool,
) -> int:
    """Return why the next pod of a class cannot be decided yet; DONE if it can.

    normalizes_itself: the class is decided by `decide_by_counters` or `_best_sampled`, which return
    NEEDS_NORMALIZATION themselves, since they do not normalize over all feasible rows of the class.
    """
    if totals.results_changed[c]:
        return RESULTS_CHANGED
    if not totals.has_totals[c]:
        return NO_TOTALS
    catch_up(table, class_arrays, totals, cells, pods, c)
    return NEEDS_NORMALIZATION if totals.needs_normalization[c] and not normalizes_itself else DONE


@inlined
def _best(table: RowArrays, totals: Totals, pods: PodArrays, pod: int, c: int) -> tuple[int, int]:
    """Return (DONE, the row for a pod of a class without counters), or (NO_FEASIBLE_ROW, -1)."""
    block_top = totals.block_top[c]
    highest = INFEASIBLE
    for block in range(block_top.shape[0]):
        highest = max(highest, block_top[block])
    if highest == INFEASIBLE:
        return NO_FEASIBLE_ROW, -1
    pods.feasible[pod], pods.total[pod] = totals.feasible[c], highest
    return DONE, _choose(table, totals, pods, pod, c, highest)


@inlined
def _search(
    table: RowArrays, class_arrays: ClassArrays, totals: Totals, pods: PodArrays, c: int
) -> tuple[int, int]:
    """Return the numbers of visited and feasible rows; count the latter in pods.group_feasible."""
    total, group, order = (
        totals.total[c],
        totals.group_of_row[class_arrays.static_index[c]],
        pods.search_order,
    )
    pods.group_feasible[:] = 0
    at, visited, found = pods.search_start[0], 0, 0
    for _ in range(order.shape[0]):
        row = order[at]
        if total[table.position_of[row]] != INFEASIBLE:
            if found == pods.feasible_to_find[c]:
                break
            found += 1
            pods.group_feasible[group[row]] += 1
        visited += 1
        at = at + 1 if at + 1 < order.shape[0] else 0
    return visited, found


@inlined
def _best_sampled(
    table: RowArrays, class_arrays: ClassArrays, totals: Totals, pods: PodArrays, pod: int, c: int
) -> tuple[int, int]:
    """Do the same as `_best`, for the rows that upstream's sampled search would have visited."""
    visited, feasible = _search(table, class_arrays, totals, pods, c)
    if feasible == 0:
        return NO_FEASIBLE_ROW, -1
    evaluation_index = class_arrays.evaluation_index[c]
    if not are_scores_cached(totals, evaluation_index, pods.group_feasible):
        return NEEDS_NORMALIZATION, -1
    total, group, order = (
        totals.total[c],
        totals.group_of_row[class_arrays.static_index[c]],
        pods.search_order,
    )
    # Totals include normalized scores over all feasible rows: replace them by those over the
    # visited rows.
    old, scores = totals.normalized_scores[c], totals.cached_scores[evaluation_index]
    tie_hash, is_random, at = (pods.tie_break_hashes[pod], pods.is_random[0], pods.search_start[0])
    found, ties, highest, best = np.int64(-1), np.int64(0), np.int64(INFEASIBLE), _ZERO
    for _ in range(visited):
        row = order[at]
        at = at + 1 if at + 1 < order.shape[0] else 0
        position = table.position_of[row]
        if total[position] == INFEASIBLE:
            continue
        each = np.int64(total[position]) + scores[group[row]] - old[group[row]]
        if each < highest:
            continue
        rank = rank_of(table.sort_keys[position], tie_hash, is_random)
        if each > highest:
            found, ties, highest, best = row, np.int64(0), each, rank
        elif rank > best:
            found, best = row, rank
        ties += 1
    pods.search_start[0] = at
    pods.tied_best[pod], pods.total[pod], pods.feasible[pod] = (ties, highest, feasible)
    return DONE, int(found)


@compiled
def decide_pods(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    counters: CounterArrays,
    lists: Lists,
    pods: PodArrays,
    start: int,
) -> tuple[int, int]:
    """Decide pods from `start` on; return the index of the first undecided pod, and the reason."""
    for pod in range(start, pods.classes.shape[0]):
        c = pods.classes[pod]
        has_counters = counters.set_of_class[c] >= 0
        is_sampled = pods.search_order.shape[0] > 0
        reason = _why_undecided(
            table, class_arrays, totals, counters.cells, pods, c, has_counters or is_sampled
        )
        row = -1
        if reason == DONE and has_counters:
            reason, row = decide_by_counters(table, totals, counters, pods, pod, c)
        elif reason == DONE and is_sampled:
            reason, row = _best_sampled(table, class_arrays, totals, pods, pod, c)
        elif reason == DONE:
            reason, row = _best(table, totals, pods, pod, c)
        elif reason == NO_TOTALS and lists.list_of_class[c] >= 0:
            reason, row = decide_listed(table, class_arrays, totals, lists, pods, pod, c)
        if reason != DONE:
            return pod, reason
        pods.row[pod] = row
        # Before the row changes: lists need its former amounts.
        save_former(table, lists, row)
        place_pod(table, class_arrays, c, row)
        count_pod(counters, totals, counters.pod_profile[c], row, table.position_of[row])
        pods.changed_rows[pods.changed_count[0]] = row
        pods.changed_count[0] += 1
        # The placement may change what plugins without compiled code return for other rows, for the
        # classes in `affects`: their results must be computed again before their next pod.
        affects, changed = class_arrays.affects[c], totals.results_changed
        for other in range(affects.shape[0]):
            if affects[other]:
                changed[other] = True
    return pods.classes.shape[0], DONE

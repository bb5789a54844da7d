"""Compiled decisions by lists: the best rows of a class, found by workers.

A list has the best rows in one state of the table, and a bound: the highest total of the other
rows. Rows that changed since are evaluated twice: with their former amounts (`Lists.former_rows`),
to subtract them from the list's counts, and with their current amounts, to add them. If the best
known row is not better than the bound, the list is not enough (NO_TOTALS): totals of all rows are
computed.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BLOCK,
    BUCKETS,
    DONE,
    END,
    INFEASIBLE,
    NO_TOTALS,
    U64,
    Lists,
    PodArrays,
    RowArrays,
    Totals,
)
from roadstead.kernel.jit import bucket_at, compiled, inlined, internal, rank_of
from roadstead.kernel.lowering.compiled_lowerings import evaluate
from roadstead.kernel.lowering.lowerings import ClassArrays
from roadstead.nodes.columns import I32, I64

MAX_CHANGED = 8192
"""With more changed rows than this to evaluate for one pod, evaluating all rows costs less."""

HIGHEST, TIED, FEASIBLE, BOUND, NORMALIZED = 0, 1, 2, 3, 4
"""Columns of `Lists.summary`. NORMALIZED is not in the workers' lists: the scheduler appends it."""


@inlined
def save_former(table: RowArrays, lists: Lists, row: int) -> None:
    """Store the amounts of a row that is about to change, if there are lists.

    Only at its first change: the lists were computed with the amounts before it.
    """
    if lists.changed_index.shape[0] == 0 or lists.changed_index[row] >= 0:
        return
    count, former_rows = lists.changed_counts[0], lists.former_rows
    at = count - lists.changed_counts[1]
    lists.changed_counts[0] = count + 1
    lists.changed_index[row], lists.changed_rows[count] = count, row
    for resource in range(table.requested.shape[1]):
        former_rows.allocatable[at, resource] = table.allocatable[row, resource]
        former_rows.requested[at, resource] = table.requested[row, resource]
    former_rows.nonzero[at, 0], former_rows.nonzero[at, 1] = (
        table.nonzero[row, 0],
        table.nonzero[row, 1],
    )
    former_rows.pod_count[at], former_rows.pod_limit[at] = (
        table.pod_count[row],
        table.pod_limit[row],
    )
    former_rows.position_of[at] = table.position_of[row]
    for port in range(table.ports_in_use.shape[1]):
        former_rows.ports_in_use[at, port] = table.ports_in_use[row, port]


@internal
def decide_listed(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    lists: Lists,
    pods: PodArrays,
    pod: int,
    c: int,
) -> tuple[int, int]:
    """Return DONE and the row for a pod of a class with a list; NO_TOTALS if it is not enough."""
    # The first changed rows are those that the workers excluded from the lists: there is nothing to
    # subtract for them, and they have no former amounts.
    index, count, excluded = (
        lists.list_of_class[c],
        lists.changed_counts[0],
        lists.changed_counts[1],
    )
    if count > MAX_CHANGED:
        return NO_TOTALS, -1
    current, former = lists.current_totals[:count], lists.former_totals[: count - excluded]
    evaluate(table, class_arrays, totals, c, lists.changed_rows[:count], current)
    evaluate(lists.former_rows, class_arrays, totals, c, lists.indices[: count - excluded], former)
    summary = lists.summary[index]
    # The summary has the numbers of rows when the list was made. To get the current numbers,
    # subtract the changed rows by their former totals, and add them by their current ones.
    feasible, equal = summary[FEASIBLE], summary[TIED]
    for k in range(count - excluded):
        feasible -= former[k] != INFEASIBLE
        equal -= former[k] == summary[HIGHEST]
    highest = np.int64(INFEASIBLE)
    for k in range(count):
        feasible += current[k] != INFEASIBLE
        highest = max(highest, current[k])
    rows, listed = lists.rows[index], lists.totals[index]
    for k in range(rows.shape[0]):
        if rows[k] != END and lists.changed_index[rows[k]] < 0:
            highest = max(highest, listed[k])
    # No known row is feasible, or an unlisted row may be better.
    if highest == INFEASIBLE or highest < summary[BOUND]:
        return NO_TOTALS, -1
    found, ties, rank = _first(table, lists, pods, index, int(highest), pod)
    if highest == summary[BOUND]:
        # Unlisted rows have the same total: one of them may be the first in tie-break order.
        is_first = (
            pods.tie_break_hashes[pod] == lists.tie_break_hashes[index]
            and rank > lists.bound_rank[index]
        )
        if highest != summary[HIGHEST] or not is_first:
            return NO_TOTALS, -1
        for k in range(count):
            equal += current[k] == highest
        ties = equal
    pods.tied_best[pod], pods.feasible[pod] = ties, feasible
    pods.total[pod] = highest + summary[NORMALIZED]
    return DONE, found


@inlined
def _first(
    table: RowArrays, lists: Lists, pods: PodArrays, index: int, highest: int, pod: int
) -> tuple[int, int, np.uint64]:
    """Among listed and changed rows, find those whose total is `highest`.

    Returns the first one in tie-break order, their number, and the rank of the first one.
    """
    tie_hash, is_random = pods.tie_break_hashes[pod], pods.is_random[0]
    found, ties, best = np.int64(-1), np.int64(0), np.uint64(0)
    rows, listed = lists.rows[index], lists.totals[index]
    for k in range(rows.shape[0] + lists.changed_counts[0]):
        is_listed = k < rows.shape[0]
        at = k if is_listed else k - rows.shape[0]
        row = rows[at] if is_listed else lists.changed_rows[at]
        # A changed row is examined with its current total, in the second part of the loop.
        if is_listed and (row == END or lists.changed_index[row] >= 0):
            continue
        if (listed[at] if is_listed else lists.current_totals[at]) != highest:
            continue
        ties += 1
        rank = rank_of(table.sort_keys[table.position_of[row]], tie_hash, is_random)
        if found < 0 or rank > best:
            found, best = row, rank
    return int(found), int(ties), best


@inlined
def _insert(
    totals: I32, ranks: U64, positions: I64, count: int, total: int, rank: np.uint64, position: int
) -> None:
    """Insert a row into a sorted list that has room for one more."""
    at = count
    while at > 0 and (totals[at - 1] < total or (totals[at - 1] == total and ranks[at - 1] < rank)):
        totals[at], ranks[at], positions[at] = totals[at - 1], ranks[at - 1], positions[at - 1]
        at -= 1
    totals[at], ranks[at], positions[at] = total, rank, position


@compiled
def list_best(
    table: RowArrays,
    totals: Totals,
    c: int,
    tie_hash: np.uint64,
    positions: I64,
    listed: I32,
    ranks: U64,
) -> tuple[int, int, int]:
    """List the best rows of a class that has totals, by total, then rank.

    Returns the number of listed rows, the highest total and the number of rows with it. positions,
    listed, ranks: of k + 1 rows; the last one is the best of the rows after the first k.
    """
    highest, tied = np.int64(INFEASIBLE), np.int64(0)
    for block in range(BUCKETS // BLOCK):
        highest = max(highest, totals.block_top[c, block])
    for block in range(BUCKETS // BLOCK):
        tied += totals.block_tied[c, block] if totals.block_top[c, block] == highest else 0
    total, top, limit = totals.total[c], totals.top[c], positions.shape[0]
    if highest == INFEASIBLE:
        return 0, int(highest), 0
    # If tied rows alone fill the list, buckets are read in tie-break order: few of them.
    in_order = tied >= limit
    count = 0
    for back in range(BUCKETS):
        bucket = np.int64(back)
        if in_order:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), tie_hash, True)
        if count == limit:
            if top[bucket] < listed[limit - 1]:
                continue
            if in_order and listed[limit - 1] == highest:
                break
        for position in range(table.bucket_begin[bucket], table.bucket_begin[bucket + 1]):
            if total[position] == INFEASIBLE or (
                count == limit and total[position] < listed[limit - 1]
            ):
                continue
            rank = rank_of(table.sort_keys[position], tie_hash, True)
            if count == limit:
                if total[position] == listed[limit - 1] and rank < ranks[limit - 1]:
                    continue
                count -= 1
            _insert(listed, ranks, positions, count, total[position], rank, position)
            count += 1
    return count, int(highest), int(tied)

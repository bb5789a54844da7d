"""Compiled decisions by lists: the best rows of a class, found by workers.

A list describes one state of the rows. Rows that changed since are evaluated twice, with their
former and with their current numbers; all others are listed, or no better than the bound. If the
best row is not better than the bound, the list is not enough: totals of all rows are computed.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    DONE,
    END,
    GROUP,
    NEW,
    NOWHERE,
    U64,
    Lists,
    Log,
    Numbers,
    Totals,
)
from roadstead.kernel.jit import bucket_at, compiled, inlined, internal, rank_of
from roadstead.kernel.lowering.compiled_lowerings import evaluate
from roadstead.kernel.lowering.lowerings import Specs
from roadstead.nodes.columns import I32, I64

MOST_CHANGED = 8192
"""With more changed rows than this to evaluate for one pod, evaluating all rows costs less."""

HIGHEST, MANY, FEASIBLE, BOUND, ADDED = 0, 1, 2, 3, 4
"""Columns of `Lists.summary`. ADDED is not in the workers' lists: the scheduler appends it."""


@inlined
def save_former(numbers: Numbers, lists: Lists, row: int) -> None:
    """Store the numbers of a row that is about to change, if there are lists."""
    if lists.slot.shape[0] == 0 or lists.slot[row] >= 0:
        return
    position, before = lists.counts[0], lists.before
    at = position - lists.counts[1]
    lists.counts[0] = position + 1
    lists.slot[row], lists.changed[position] = position, row
    for resource in range(numbers.requested.shape[1]):
        before.allocatable[at, resource] = numbers.allocatable[row, resource]
        before.requested[at, resource] = numbers.requested[row, resource]
    before.nonzero[at, 0], before.nonzero[at, 1] = numbers.nonzero[row, 0], numbers.nonzero[row, 1]
    before.pod_count[at], before.pod_limit[at] = numbers.pod_count[row], numbers.pod_limit[row]
    before.position_of[at] = numbers.position_of[row]
    for port in range(numbers.blocked.shape[1]):
        before.blocked[at, port] = numbers.blocked[row, port]


@internal
def decide_listed(
    numbers: Numbers, specs: Specs, totals: Totals, lists: Lists, log: Log, pod: int, c: int
) -> tuple[int, int]:
    """Return DONE and the row for a pod of a class with a list; NEW if the list is not enough."""
    index, count, excluded = lists.of_class[c], lists.counts[0], lists.counts[1]
    if count > MOST_CHANGED:
        return NEW, -1
    current, former = lists.current[:count], lists.former[: count - excluded]
    evaluate(numbers, specs, totals, c, lists.changed[:count], current)
    evaluate(lists.before, specs, totals, c, lists.indices[: count - excluded], former)
    summary = lists.summary[index]
    # So that counts are those of all rows: subtract the changed rows that the list counted, by
    # their former totals, and add all changed rows by their current ones.
    feasible, equal = summary[FEASIBLE], summary[MANY]
    for position in range(count - excluded):
        feasible -= former[position] != NOWHERE
        equal -= former[position] == summary[HIGHEST]
    highest = np.int64(NOWHERE)
    for position in range(count):
        feasible += current[position] != NOWHERE
        highest = max(highest, current[position])
    rows, listed = lists.rows[index], lists.totals[index]
    for k in range(rows.shape[0]):
        if rows[k] != END and lists.slot[rows[k]] < 0:
            highest = max(highest, listed[k])
    # No known row is feasible, or an unlisted row may be better.
    if highest == NOWHERE or highest < summary[BOUND]:
        return NEW, -1
    found, ties, rank = _first(numbers, lists, log, index, int(highest), pod)
    if highest == summary[BOUND]:
        # Unlisted rows have the same total: one of them may be the first in the order of the draw.
        is_first = log.draws[pod] == lists.draws[index] and rank > lists.bound[index]
        if highest != summary[HIGHEST] or not is_first:
            return NEW, -1
        for position in range(count):
            equal += current[position] == highest
        ties = equal
    log.best[pod], log.feasible[pod] = ties, feasible
    log.total[pod] = highest + summary[ADDED]
    return DONE, found


@inlined
def _first(
    numbers: Numbers, lists: Lists, log: Log, index: int, highest: int, pod: int
) -> tuple[int, int, np.uint64]:
    """Return the first row, in the order of the draw, with this total; how many have it; its rank.

    Rows are those listed or changed.
    """
    draw, use_draws = log.draws[pod], log.use_draws[0]
    found, ties, best = np.int64(-1), np.int64(0), np.uint64(0)
    rows, listed = lists.rows[index], lists.totals[index]
    for k in range(rows.shape[0] + lists.counts[0]):
        is_listed = k < rows.shape[0]
        at = k if is_listed else k - rows.shape[0]
        row = rows[at] if is_listed else lists.changed[at]
        if is_listed and (row == END or lists.slot[row] >= 0):
            continue
        if (listed[at] if is_listed else lists.current[at]) != highest:
            continue
        ties += 1
        rank = rank_of(numbers.order[numbers.position_of[row]], draw, use_draws)
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
    numbers: Numbers,
    totals: Totals,
    c: int,
    draw: np.uint64,
    positions: I64,
    listed: I32,
    ranks: U64,
) -> tuple[int, int, int]:
    """List the best rows of a class that has totals, by total, then rank.

    Returns the number of listed rows, the highest total and the number of rows with it. positions,
    listed, ranks: of k + 1 rows; the last one is the best of the rows after the first k.
    """
    highest, many = np.int64(NOWHERE), np.int64(0)
    for group in range(BUCKETS // GROUP):
        highest = max(highest, totals.group_top[c, group])
    for group in range(BUCKETS // GROUP):
        many += totals.group_tied[c, group] if totals.group_top[c, group] == highest else 0
    total, top, most = totals.total[c], totals.top[c], positions.shape[0]
    if highest == NOWHERE:
        return 0, int(highest), 0
    # If tied rows alone fill the list, buckets are read in the order of the draw: few of them.
    in_order = many >= most
    count = 0
    for back in range(BUCKETS):
        bucket = np.int64(back)
        if in_order:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, True)
        if count == most:
            if top[bucket] < listed[most - 1]:
                continue
            if in_order and listed[most - 1] == highest:
                break
        for position in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
            if total[position] == NOWHERE or (count == most and total[position] < listed[most - 1]):
                continue
            rank = rank_of(numbers.order[position], draw, True)
            if count == most:
                if total[position] == listed[most - 1] and rank < ranks[most - 1]:
                    continue
                count -= 1
            _insert(listed, ranks, positions, count, total[position], rank, position)
            count += 1
    return count, int(highest), int(many)

"""Compiled decisions: totals of classes over rows, their updates, and the choice of a row."""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    CHANGED,
    DONE,
    FEW,
    GROUP,
    NEW,
    NO_ROW,
    NOWHERE,
    STALE_NORM,
    Lists,
    Log,
    Numbers,
    Totals,
)
from roadstead.kernel.compiled_build import (
    build,
    is_norm_cached,
    recompute_group_top,
    recompute_top,
    renormalize,
)
from roadstead.kernel.compiled_cells import change_cell
from roadstead.kernel.compiled_lists import decide_listed, list_best, save_former
from roadstead.kernel.compiled_relations import count_pod, decide
from roadstead.kernel.jit import bucket_at, compiled, inlined, internal, position_of_bucket, rank_of
from roadstead.kernel.lowering.compiled_lowerings import evaluate, place_pod
from roadstead.kernel.lowering.lowerings import Specs
from roadstead.kernel.relation_arrays import Cells, Relations

__all__ = ["build", "catch_up", "list_best", "renormalize", "run"]

_ZERO = np.uint64(0)


@internal
def _set(numbers: Numbers, totals: Totals, c: int, row: int, group: int, new: int) -> None:
    """Set the total of a row for a class, NOWHERE if it is not feasible; update counts and maxima.

    The norm is stale when the group gets its first feasible row or loses its last one.
    """
    position = numbers.position_of[row]
    old = totals.total[c, position]
    if new == old:
        return
    if old == NOWHERE or new == NOWHERE:
        change = 1 if old == NOWHERE else -1
        totals.feasible[c] += change
        totals.group_feasible[c, group] += change
        if totals.group_feasible[c, group] == 0 or (
            change == 1 and totals.group_feasible[c, group] == 1
        ):
            totals.stale_norm[c] = True
    totals.total[c, position] = new
    bucket = numbers.bucket[position]
    top, tied = totals.top[c, bucket], totals.tied[c, bucket]
    if new > top:
        totals.top[c, bucket], totals.tied[c, bucket] = new, 1
    elif new == top:
        totals.tied[c, bucket] += 1
    elif old < top:
        return
    elif tied > 1:
        totals.tied[c, bucket] -= 1
    else:
        recompute_top(numbers, totals, c, bucket)
    _update_group_top(totals, c, bucket, top, tied)


@inlined
def _update_group_top(totals: Totals, c: int, bucket: int, top: int, tied: int) -> None:
    """Update the highest total of GROUP buckets for one of them. top, tied: its former values."""
    group = bucket // GROUP
    now = totals.top[c, bucket]
    if top == totals.group_top[c, group]:
        totals.group_tied[c, group] -= tied
    if now > totals.group_top[c, group]:
        totals.group_top[c, group], totals.group_tied[c, group] = now, totals.tied[c, bucket]
    elif now == totals.group_top[c, group]:
        totals.group_tied[c, group] += totals.tied[c, bucket]
    if totals.group_tied[c, group] == 0:
        recompute_group_top(totals, c, group)


@inlined
def catch_up(
    numbers: Numbers, specs: Specs, totals: Totals, cells: Cells, log: Log, c: int
) -> None:
    """Update the totals of a class for every row that changed since its last update."""
    rows = log.changed[totals.seen[c] : log.length[0]]
    if rows.shape[0] == 0:
        return
    fresh = log.fresh
    evaluate(numbers, specs, totals, c, rows, fresh)
    groups, norm = totals.group[specs.static_index[c]], totals.norm[c]
    for position in range(rows.shape[0]):
        group = groups[rows[position]]
        new = fresh[position] if fresh[position] == NOWHERE else fresh[position] + norm[group]
        if cells.is_built[c]:
            at = numbers.position_of[rows[position]]
            change_cell(cells, c, at, totals.total[c, at], new)
        _set(numbers, totals, c, rows[position], group, new)
    totals.seen[c] = log.length[0]


@inlined
def _first_bucket(
    totals: Totals, c: int, highest: int, ties: int, draw: np.uint64, use_draws: bool
) -> np.int64:
    """Return the first bucket, in the order of the draw, that has a row with the highest total."""
    top = totals.top[c]
    if ties >= FEW:
        for back in range(BUCKETS):
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
            if top[bucket] == highest:
                return bucket
    found, best = np.int64(-1), np.int64(-1)
    for group in range(BUCKETS // GROUP):
        if totals.group_top[c, group] == highest:
            for each in range(group * GROUP, (group + 1) * GROUP):
                if top[each] == highest:
                    at = np.int64(each)
                    if use_draws:
                        at = np.int64(position_of_bucket(np.uint64(each), draw))
                    if at > best:
                        found, best = np.int64(each), at
    return found


@inlined
def _choose(numbers: Numbers, totals: Totals, log: Log, pod: int, c: int, highest: int) -> int:
    """Return the row with the highest total that the draw selects; record how many have it."""
    draw, use_draws = log.draws[pod], log.use_draws[0]
    ties = 0
    for group in range(BUCKETS // GROUP):
        if totals.group_top[c, group] == highest:
            ties += totals.group_tied[c, group]
    log.best[pod] = ties
    bucket = _first_bucket(totals, c, highest, ties, draw, use_draws)
    total, order = totals.total[c], numbers.order
    found, rank = -1, _ZERO
    for position in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
        if total[position] == highest:
            mixed = rank_of(order[position], draw, use_draws)
            if found < 0 or mixed > rank:
                found, rank = position, mixed
    return int(numbers.row_at[found])


@inlined
def _reason(
    numbers: Numbers,
    specs: Specs,
    totals: Totals,
    cells: Cells,
    log: Log,
    c: int,
    normalizes_itself: bool,
) -> int:
    """Return why the next pod of a class cannot be decided yet; DONE if it can.

    normalizes_itself: the decision checks the normalization over its own rows (`decide`,
    `_best_sampled`), so that the one over all feasible rows is not needed.
    """
    if totals.stale[c]:
        return CHANGED
    if not totals.built[c]:
        return NEW
    catch_up(numbers, specs, totals, cells, log, c)
    return STALE_NORM if totals.stale_norm[c] and not normalizes_itself else DONE


@inlined
def _best(numbers: Numbers, totals: Totals, log: Log, pod: int, c: int) -> tuple[int, int]:
    """Return DONE and the row for a pod of a class without counters, or why there is none."""
    high = totals.group_top[c]
    highest = NOWHERE
    for group in range(high.shape[0]):
        highest = max(highest, high[group])
    if highest == NOWHERE:
        return NO_ROW, -1
    log.feasible[pod], log.total[pod] = totals.feasible[c], highest
    return DONE, _choose(numbers, totals, log, pod, c, highest)


@inlined
def _visit(numbers: Numbers, specs: Specs, totals: Totals, log: Log, c: int) -> tuple[int, int]:
    """Return the number of visited and of feasible rows; count these in log.group_feasible."""
    total, group, order = totals.total[c], totals.group[specs.static_index[c]], log.order
    log.group_feasible[:] = 0
    at, visited, found = log.start[0], 0, 0
    for _ in range(order.shape[0]):
        row = order[at]
        if total[numbers.position_of[row]] != NOWHERE:
            if found == log.to_find[c]:
                break
            found += 1
            log.group_feasible[group[row]] += 1
        visited += 1
        at = at + 1 if at + 1 < order.shape[0] else 0
    return visited, found


@inlined
def _best_sampled(
    numbers: Numbers, specs: Specs, totals: Totals, log: Log, pod: int, c: int
) -> tuple[int, int]:
    """Do the same as `_best` among the rows that upstream would have visited."""
    visited, feasible = _visit(numbers, specs, totals, log, c)
    if feasible == 0:
        return NO_ROW, -1
    model = specs.model[c]
    if not is_norm_cached(totals, model, log.group_feasible):
        return STALE_NORM, -1
    total, group, order = totals.total[c], totals.group[specs.static_index[c]], log.order
    old, norm = totals.norm[c], totals.cached_norm[model]
    draw, use_draws, at = log.draws[pod], log.use_draws[0], log.start[0]
    found, ties, highest, best = np.int64(-1), np.int64(0), np.int64(NOWHERE), _ZERO
    for _ in range(visited):
        row = order[at]
        at = at + 1 if at + 1 < order.shape[0] else 0
        position = numbers.position_of[row]
        if total[position] == NOWHERE:
            continue
        each = np.int64(total[position]) + norm[group[row]] - old[group[row]]
        if each < highest:
            continue
        rank = rank_of(numbers.order[position], draw, use_draws)
        if each > highest:
            found, ties, highest, best = row, np.int64(0), each, rank
        elif rank > best:
            found, best = row, rank
        ties += 1
    log.start[0] = at
    log.best[pod], log.total[pod], log.feasible[pod] = ties, highest, feasible
    return DONE, int(found)


@compiled
def run(
    numbers: Numbers,
    specs: Specs,
    totals: Totals,
    rel: Relations,
    lists: Lists,
    log: Log,
    start: int,
) -> tuple[int, int]:
    """Decide pods from `start` on; return the index of the first undecided pod, and the reason."""
    for pod in range(start, log.classes.shape[0]):
        c = log.classes[pod]
        is_related = rel.of_class[c] >= 0
        is_sampled = log.order.shape[0] > 0
        reason = _reason(numbers, specs, totals, rel.cells, log, c, is_related or is_sampled)
        row = -1
        if reason == DONE and is_related:
            reason, row = decide(numbers, totals, rel, log, pod, c)
        elif reason == DONE and is_sampled:
            reason, row = _best_sampled(numbers, specs, totals, log, pod, c)
        elif reason == DONE:
            reason, row = _best(numbers, totals, log, pod, c)
        elif reason == NEW and lists.of_class[c] >= 0:
            reason, row = decide_listed(numbers, specs, totals, lists, log, pod, c)
        if reason != DONE:
            return pod, reason
        log.row[pod] = row
        # Before the row changes: lists need its former numbers.
        save_former(numbers, lists, row)
        place_pod(numbers, specs, c, row)
        count_pod(rel, totals, rel.pod_profile[c], row, numbers.position_of[row])
        log.changed[log.length[0]] = row
        log.length[0] += 1
        affects, stale = specs.affects[c], totals.stale
        for other in range(affects.shape[0]):
            if affects[other]:
                stale[other] = True
    return log.classes.shape[0], DONE

"""Compiled decisions of classes with spread constraints or inter-pod affinity.

A placement changes all rows of a domain, so all cells (`Cells`) are evaluated for each pod, twice
if scores are normalized; or all rows, if hardly two are equal or rows are sampled. The arithmetic
is, operation for operation, that of `plugins/pod_topology_spread.py` and
`plugins/inter_pod_affinity.py`. Both are in one module, by types of counters (decision 43).

For counters, pod profiles and cells see `relation_arrays.py`. layout: that of the cells, ROWS if
rows are evaluated. axes: int32[slot, row or cell]. units: number of rows or cells; arrays of
`Relations` that are per row or cell are cut to it.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    DONE,
    FEW,
    NO_ROW,
    NOWHERE,
    STALE_NORM,
    Log,
    Numbers,
    Totals,
)
from roadstead.kernel.compiled_cells import (
    build_cells,
    choose_in_cells,
    move_row,
    recompute_cell_top,
)
from roadstead.kernel.jit import bucket_at, inlined, internal, quotient, rank_of
from roadstead.kernel.relation_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    HARD,
    HOST,
    SCORE,
    SOFT,
    Relations,
)
from roadstead.nodes.columns import I32, Bools

ROWS = -1
_UNSCORED = np.iinfo(np.int64).min
_NONE = np.iinfo(np.int64).max


@internal
def count_pod(rel: Relations, totals: Totals, pod_profile: int, row: int, position: int) -> None:
    """Count a placed pod in every counter to which its profile adds; move its row between cells."""
    for each in range(rel.additions_from[pod_profile], rel.additions_from[pod_profile + 1]):
        counter, amount = rel.additions[each, 0], rel.additions[each, 1]
        kind = rel.kind[counter]
        if kind == HOST:
            rel.counts[rel.at[counter] + row] += amount
        elif kind in (SOFT, HARD):
            if rel.masks[rel.mask[counter], row]:
                at = rel.at[counter] + rel.marks[rel.axis[counter], row]
                # One domain less has the lowest count; at 0, `_highest` finds the lowest again.
                rel.lowest[counter, 1] -= (
                    rel.present[at] and rel.counts[at] == rel.lowest[counter, 0]
                )
                rel.counts[at] += amount
        else:
            domain = rel.axes[rel.axis[counter], row]
            if domain >= 0:
                rel.counts[rel.at[counter] + domain] += amount
    for layout in range(rel.cells.size.shape[0]):
        move_row(rel, totals, layout, row, position)


@inlined
def _slot(rel: Relations, layout: int, related: int, counter: int) -> tuple[int, int]:
    """Return the slot of a counter in axes and marks, and the index of its first count."""
    if layout == ROWS:
        return rel.axis[counter], rel.at[counter]
    slot = counter - rel.begin[related]
    return slot, rel.cells.base[layout, slot]


@inlined
def _highest(rel: Relations, counter: int) -> int:
    """Return the highest count with which a domain still accepts the pod, for a hard constraint."""
    known = rel.lowest[counter]
    if known[1] <= 0:
        known[0], known[1], known[2] = _NONE, 0, 0
        at = rel.at[counter]
        for position in range(at, at + rel.size[counter]):
            if rel.present[position]:
                known[1] = (
                    1
                    if rel.counts[position] < known[0]
                    else known[1] + (rel.counts[position] == known[0])
                )
                known[0] = min(known[0], rel.counts[position])
                known[2] += 1
    lowest = known[0] if known[2] >= rel.min_domains[counter] else 0
    highest: int = rel.skew[counter] + lowest
    return highest


@inlined
def _is_first(rel: Relations, related: int) -> bool:
    """Whether no pod anywhere matches the required affinity, and the class matches its own.

    Upstream then admits the pod on any node with all keys: the first pod of a group that attracts
    itself would otherwise never be placed.
    """
    if not rel.matches_itself[related]:
        return False
    for counter in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[counter] == AFFINITY:
            for position in range(rel.at[counter], rel.at[counter] + rel.size[counter]):
                if rel.counts[position] != 0:
                    return False
    return True


@inlined
def _refuse(rel: Relations, layout: int, axes: I32, related: int, units: int) -> None:
    """Clear `rel.fits` where hard constraints or required terms reject a row or cell."""
    fits, is_first = rel.fits[:units], _is_first(rel, related)
    for counter in range(rel.begin[related], rel.begin[related + 1]):
        kind = rel.kind[counter]
        slot, at = _slot(rel, layout, related, counter)
        domains = axes[slot]
        if kind == HARD:
            highest = _highest(rel, counter)
            for row in range(fits.shape[0]):
                domain = domains[row]
                is_allowed = rel.counts[at + max(domain, 0)] <= highest
                fits[row] = fits[row] & (domain >= 0) & is_allowed
        elif kind in (EXISTING_ANTI, ANTI_AFFINITY):
            for row in range(fits.shape[0]):
                domain = domains[row]
                is_free = rel.counts[at + max(domain, 0)] <= 0
                fits[row] = fits[row] & ((domain < 0) | is_free)
        elif kind == AFFINITY:
            for row in range(fits.shape[0]):
                domain = domains[row]
                has_match = is_first | (rel.counts[at + max(domain, 0)] != 0)
                fits[row] = fits[row] & (domain >= 0) & has_match


@inlined
def _sample(rel: Relations, log: Log, c: int) -> None:
    """Clear `rel.fits` for rows that upstream's sampled search would not visit."""
    fits, order = rel.fits, log.order
    at, visited, found = log.start[0], 0, 0
    is_searching = True
    for _ in range(order.shape[0]):
        row = order[at]
        is_searching = is_searching and not (fits[row] and found == log.to_find[c])
        found += is_searching and fits[row]
        visited += is_searching
        fits[row] = is_searching and fits[row]
        at = at + 1 if at + 1 < order.shape[0] else 0
    log.visited[0] = visited


@inlined
def _refuses(rel: Relations, related: int) -> bool:
    """Whether some counter may reject rows."""
    for counter in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[counter] not in (SOFT, HOST, SCORE):
            return True
    return False


@inlined
def _begin(numbers: Numbers, rel: Relations, totals: Totals, c: int, layout: int) -> int:
    """Set `rel.fits` from the totals of the class; return the number of rows or cells."""
    total = totals.total[c]
    if layout == ROWS:
        for position in range(total.shape[0]):
            row = numbers.row_at[position]
            rel.fits[row] = total[position] != NOWHERE
            rel.total[row] = total[position]
        return int(total.shape[0])
    if not rel.cells.is_built[c]:
        build_cells(rel.cells, totals, c)
    for cell in range(rel.cells.size[layout]):
        rel.fits[cell] = rel.cells.feasible[c, cell] > 0
    return int(rel.cells.size[layout])


@inlined
def _filter(
    rel: Relations, totals: Totals, log: Log, c: int, layout: int, axes: I32, group: I32, units: int
) -> None:
    """Compute which rows or cells fit, and which normalization groups have such rows.

    If no counter can reject rows and none are sampled, `_begin` and `totals` have both already.
    """
    related = rel.of_class[c]
    if not (_refuses(rel, related) or log.order.shape[0] > 0):
        # Assigning the whole array would compile the text of its error, which takes seconds.
        for each in range(rel.group_feasible.shape[0]):
            rel.group_feasible[each] = totals.group_feasible[c, each]
        return
    _refuse(rel, layout, axes, related, units)
    _sample(rel, log, c)
    rel.group_feasible[:] = 0
    feasible = 0
    for unit in range(units):
        feasible += rel.fits[unit]
        if rel.fits[unit]:
            rel.group_feasible[group[unit]] = 1
    if layout == ROWS:
        for row in range(units):
            rel.total[row] = rel.total[row] if rel.fits[row] else NOWHERE
    else:
        feasible = 0
        for cell in range(units):
            feasible += rel.cells.feasible[c, cell] if rel.fits[cell] else 0
    totals.feasible[c] = feasible


@inlined
def _total_cells(numbers: Numbers, rel: Relations, totals: Totals, c: int, size: int) -> None:
    """Compute the totals of the cells that fit, without spread and affinity scores."""
    for cell in range(size):
        rel.total[cell] = NOWHERE
        if rel.fits[cell]:
            if rel.cells.tied[c, cell] <= 0:
                recompute_cell_top(numbers, rel.cells, totals, c, cell)
            rel.cells.total[cell] = rel.total[cell] = rel.cells.top[c, cell]


@inlined
def _is_norm_stale(rel: Relations, c: int) -> bool:
    """Whether other groups have feasible rows than when the class's totals were normalized."""
    moved = not rel.is_seen[c]
    for each in range(rel.group_feasible.shape[0]):
        moved = moved or (rel.group_feasible[each] > 0) != rel.seen[c, each]
    return moved


@inlined
def _domains(rel: Relations, counter: int, marks: I32, has_keys: Bools, units: int) -> int:
    """Return the number of domains that the scored rows have."""
    rel.clock[0] += 1
    now, found, at = rel.clock[0], 0, rel.at[counter]
    for row in range(units):
        if rel.fits[row] and has_keys[row]:
            position = at + marks[row]
            # A stamp of this call: the domain is counted already. Nothing must be cleared.
            if rel.stamps[position] != now:
                rel.stamps[position] = now
                found += 1
                if found == rel.marked[rel.axis[counter]]:
                    break
    return found


@inlined
def _spread_scores(
    rel: Relations, c: int, layout: int, axes: I32, marks: I32, has_keys: Bools, units: int
) -> tuple[int, int]:
    """Compute raw spread scores in `rel.spread`; return their extremes over the rows that fit."""
    sums, fits, related = rel.sums, rel.fits[:units], rel.of_class[c]
    scored = 0
    for row in range(fits.shape[0]):
        sums[row] = 0.0
        scored += fits[row] and has_keys[row]
    if layout != ROWS:
        # The number of domains of a hostname constraint is that of scored rows, not of cells.
        scored = 0
        for cell in range(units):
            scored += rel.cells.feasible[c, cell] if fits[cell] and has_keys[cell] else 0
    for counter in range(rel.begin[related], rel.begin[related + 1]):
        kind = rel.kind[counter]
        if kind != SOFT and kind != HOST:
            continue
        slot, at = _slot(rel, layout, related, counter)
        domains, skew = axes[slot], float(rel.skew[counter])
        several = scored if kind == HOST else _domains(rel, counter, marks[slot], has_keys, units)
        weight = rel.logs[several]
        # Sums of rows that do not fit are not read; computing them, too, needs no branch.
        if kind == HOST:
            for row in range(fits.shape[0]):
                part = float(rel.counts[at + row]) * weight
                sums[row] += part + skew if domains[row] >= 0 else 0.0
        else:
            for row in range(fits.shape[0]):
                domain = domains[row]
                part = float(rel.counts[at + max(domain, 0)]) * weight
                sums[row] += part + skew if domain >= 0 else 0.0
    lowest, highest = _NONE, _UNSCORED
    for row in range(fits.shape[0]):
        if fits[row] and has_keys[row]:
            # Round halves up, as Go's math.Round does for amounts that are not negative.
            floor = np.floor(sums[row])
            raw = int(floor) + (1 if sums[row] - floor >= 0.5 else 0)
            rel.spread[row] = raw
            lowest, highest = min(lowest, raw), max(highest, raw)
        else:
            rel.spread[row] = _UNSCORED
    return lowest, highest


@inlined
def _affinity_scores(
    rel: Relations, layout: int, axes: I32, related: int, units: int
) -> tuple[int, int]:
    """Compute raw affinity scores in `rel.affinity`; return their extremes over rows that fit."""
    affinity, fits = rel.affinity[:units], rel.fits[:units]
    affinity[:] = 0
    for counter in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[counter] == SCORE:
            slot, at = _slot(rel, layout, related, counter)
            domains = axes[slot]
            for row in range(fits.shape[0]):
                if domains[row] >= 0:
                    affinity[row] += rel.counts[at + domains[row]]
    lowest, highest = _NONE, _UNSCORED
    for row in range(fits.shape[0]):
        if fits[row]:
            lowest, highest = min(lowest, affinity[row]), max(highest, affinity[row])
    return lowest, highest


@inlined
def _sum_up(
    rel: Relations, c: int, layout: int, axes: I32, marks: I32, has_keys: Bools, units: int
) -> None:
    """Add the spread and affinity scores of the rows or cells that fit to `rel.total`."""
    related = rel.of_class[c]
    spread_weight, affinity_weight = rel.weights[c, 0], rel.weights[c, 1]
    fits = rel.fits[:units]
    if spread_weight:
        lowest, highest = _spread_scores(rel, c, layout, axes, marks, has_keys, units)
        for row in range(fits.shape[0]):
            if fits[row] and rel.spread[row] != _UNSCORED:
                score = 100
                if highest > 0:
                    score = quotient(100 * (highest + lowest - rel.spread[row]), highest)
                rel.total[row] += spread_weight * score
    if affinity_weight:
        lowest, highest = _affinity_scores(rel, layout, axes, related, units)
        if highest > lowest:
            for row in range(fits.shape[0]):
                if fits[row]:
                    share = float(rel.affinity[row] - lowest) / float(highest - lowest)
                    rel.total[row] += affinity_weight * int(100.0 * share)


@inlined
def _choose(
    numbers: Numbers, rel: Relations, draw: np.uint64, use_draws: bool, highest: int, ties: int
) -> int:
    """Return the row with the highest total that the draw selects."""
    # Of many tied rows, one is in the first few buckets in the order of the draw; of few tied rows
    # it may be in any, so all rows are read in one loop.
    are_few = ties < FEW
    found, best = -1, np.uint64(0)
    for back in range(1 if are_few else BUCKETS):
        start, stop = 0, numbers.row_at.shape[0]
        if not are_few:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
            start, stop = numbers.begin[bucket], numbers.begin[bucket + 1]
        for position in range(start, stop):
            row = numbers.row_at[position]
            if rel.total[row] == highest:
                rank = rank_of(numbers.order[position], draw, use_draws)
                if found < 0 or rank > best:
                    found, best = row, rank
        if found >= 0:
            break
    return found


@internal
def decide(
    numbers: Numbers, totals: Totals, rel: Relations, log: Log, pod: int, c: int
) -> tuple[int, int]:
    """Return DONE and the row for a pod of a class with current totals, or why there is none."""
    layout = int(rel.cells.of_class[c])
    # Sampling rejects single rows of a cell; in a full layout, rows have no cell to move to.
    if layout != ROWS and (log.order.shape[0] > 0 or rel.cells.is_full[layout]):
        layout = ROWS
    rel.cells.used[0] = layout
    axes, marks, group = rel.axes, rel.marks, totals.group[rel.static_index[c]]
    has_keys = rel.masks[rel.keys[rel.of_class[c]]]
    if layout != ROWS:
        cells = rel.cells
        axes, marks, group = cells.axes[layout], cells.marks[layout], cells.group[layout]
        has_keys = cells.scored[layout]
        cells.moved[layout, 0] = -1
    units = _begin(numbers, rel, totals, c, layout)
    _filter(rel, totals, log, c, layout, axes, group, units)
    if _is_norm_stale(rel, c):
        return STALE_NORM, -1
    if totals.feasible[c] == 0:
        return NO_ROW, -1
    if layout != ROWS:
        _total_cells(numbers, rel, totals, c, units)
    _sum_up(rel, c, layout, axes, marks, has_keys, units)
    total, highest, ties = rel.total[:units], NOWHERE, 0
    for unit in range(units):
        highest = max(highest, total[unit])
    draw, use_draws = log.draws[pod], log.use_draws[0]
    if layout == ROWS:
        for unit in range(units):
            ties += total[unit] == highest
        found = _choose(numbers, rel, draw, use_draws, highest, ties)
    else:
        for unit in range(units):
            ties += rel.cells.tied[c, unit] if total[unit] == highest else 0
        found = choose_in_cells(numbers, totals, rel, c, draw, use_draws, highest, ties)
    log.best[pod], log.total[pod], log.feasible[pod] = ties, highest, totals.feasible[c]
    if log.order.shape[0]:
        log.start[0] = (log.start[0] + log.visited[0]) % log.order.shape[0]
    return DONE, found

"""Compiled decisions of classes with spread constraints or inter-pod affinity.

A placement changes all rows of a domain, so all cells (`Cells`) are evaluated for each pod, twice
if scores are normalized; or all rows, if hardly two are equal or rows are sampled. The arithmetic
is, operation for operation, that of `plugins/pod_topology_spread.py` and
`plugins/inter_pod_affinity.py`. Both are in one module, by types of lines (decision 43).

For lines, faces and cells see `relation_arrays.py`. layout: that of the cells, ROWS if rows are
evaluated. axes: int32[slot, row or cell]. units: number of rows or cells; arrays of `Relations`
that are per row or cell are cut to it.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    DONE,
    FEW,
    MOVED,
    NO_ROW,
    NOWHERE,
    Log,
    Numbers,
    Totals,
)
from roadstead.kernel.compiled_cells import build_cells, choose_in_cells, move_row, raise_cell
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
def count(rel: Relations, totals: Totals, face: int, row: int, place: int) -> None:
    """Count a pod of a face, placed on a row, in every line to which it adds."""
    for each in range(rel.effects_from[face], rel.effects_from[face + 1]):
        line, amount = rel.effects[each, 0], rel.effects[each, 1]
        kind = rel.kind[line]
        if kind == HOST:
            rel.counts[rel.at[line] + row] += amount
        elif kind in (SOFT, HARD):
            if rel.masks[rel.mask[line], row]:
                at = rel.at[line] + rel.marks[rel.axis[line], row]
                rel.lowest[line, 1] -= rel.present[at] and rel.counts[at] == rel.lowest[line, 0]
                rel.counts[at] += amount
        else:
            domain = rel.axes[rel.axis[line], row]
            if domain >= 0:
                rel.counts[rel.at[line] + domain] += amount
    for layout in range(rel.cells.size.shape[0]):
        move_row(rel, totals, layout, row, place)


@inlined
def _slot(rel: Relations, layout: int, related: int, line: int) -> tuple[int, int]:
    """Return the slot of a line in axes and marks, and the index of its first count."""
    if layout == ROWS:
        return rel.axis[line], rel.at[line]
    slot = line - rel.begin[related]
    return slot, rel.cells.base[layout, slot]


@inlined
def _highest(rel: Relations, line: int) -> int:
    """Return the highest count of a domain that still accepts the pod, for a hard constraint."""
    known = rel.lowest[line]
    if known[1] <= 0:
        known[0], known[1], known[2] = _NONE, 0, 0
        at = rel.at[line]
        for place in range(at, at + rel.size[line]):
            if rel.present[place]:
                known[1] = (
                    1
                    if rel.counts[place] < known[0]
                    else known[1] + (rel.counts[place] == known[0])
                )
                known[0] = min(known[0], rel.counts[place])
                known[2] += 1
    lowest = known[0] if known[2] >= rel.min_domains[line] else 0
    highest: int = rel.skew[line] + lowest
    return highest


@inlined
def _is_first(rel: Relations, related: int) -> bool:
    """Whether no pod anywhere matches the required affinity, and a pod of the class does."""
    if not rel.near_itself[related]:
        return False
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] == AFFINITY:
            for place in range(rel.at[line], rel.at[line] + rel.size[line]):
                if rel.counts[place] != 0:
                    return False
    return True


@inlined
def _refuse(rel: Relations, layout: int, axes: I32, related: int, units: int) -> None:
    """Clear `rel.fits` where hard constraints or required terms reject a row or cell."""
    fits, is_first = rel.fits[:units], _is_first(rel, related)
    for line in range(rel.begin[related], rel.begin[related + 1]):
        kind = rel.kind[line]
        slot, at = _slot(rel, layout, related, line)
        domains = axes[slot]
        if kind == HARD:
            highest = _highest(rel, line)
            for row in range(fits.shape[0]):
                domain = domains[row]
                few = rel.counts[at + max(domain, 0)] <= highest
                fits[row] = fits[row] & (domain >= 0) & few
        elif kind in (EXISTING_ANTI, ANTI_AFFINITY):
            for row in range(fits.shape[0]):
                domain = domains[row]
                nobody = rel.counts[at + max(domain, 0)] <= 0
                fits[row] = fits[row] & ((domain < 0) | nobody)
        elif kind == AFFINITY:
            for row in range(fits.shape[0]):
                domain = domains[row]
                someone = is_first | (rel.counts[at + max(domain, 0)] != 0)
                fits[row] = fits[row] & (domain >= 0) & someone


@inlined
def _sample(rel: Relations, log: Log, c: int) -> None:
    """Clear `rel.fits` for rows that upstream's sampled search would not visit."""
    fits, order = rel.fits, log.order
    at, visited, found = log.start[0], 0, 0
    goes_on = True
    for _ in range(order.shape[0]):
        row = order[at]
        goes_on = goes_on and not (fits[row] and found == log.to_find[c])
        found += goes_on and fits[row]
        visited += goes_on
        fits[row] = goes_on and fits[row]
        at = at + 1 if at + 1 < order.shape[0] else 0
    log.visited[0] = visited


@inlined
def _refuses(rel: Relations, related: int) -> bool:
    """Whether some line may reject rows."""
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] not in (SOFT, HOST, SCORE):
            return True
    return False


@inlined
def _begin(numbers: Numbers, rel: Relations, totals: Totals, c: int, layout: int) -> int:
    """Set `rel.fits` from the totals of the class; return the number of rows or cells."""
    total = totals.total[c]
    if layout == ROWS:
        for place in range(total.shape[0]):
            row = numbers.row_at[place]
            rel.fits[row] = total[place] != NOWHERE
            rel.total[row] = total[place]
        return int(total.shape[0])
    if not rel.cells.is_built[c]:
        build_cells(rel.cells, totals, c)
    for cell in range(rel.cells.size[layout]):
        rel.fits[cell] = rel.cells.alive[c, cell] > 0
    return int(rel.cells.size[layout])


@inlined
def _look(
    rel: Relations, totals: Totals, log: Log, c: int, layout: int, axes: I32, group: I32, units: int
) -> None:
    """Compute which rows or cells fit, and which normalization groups have such rows."""
    related = rel.of_class[c]
    if not (_refuses(rel, related) or log.order.shape[0] > 0):
        # Assigning the whole array would compile the text of its error, which takes seconds.
        for each in range(rel.alive.shape[0]):
            rel.alive[each] = totals.alive[c, each]
        return
    _refuse(rel, layout, axes, related, units)
    _sample(rel, log, c)
    rel.alive[:] = 0
    feasible = 0
    for unit in range(units):
        feasible += rel.fits[unit]
        if rel.fits[unit]:
            rel.alive[group[unit]] = 1
    if layout == ROWS:
        for row in range(units):
            rel.total[row] = rel.total[row] if rel.fits[row] else NOWHERE
    else:
        feasible = 0
        for cell in range(units):
            feasible += rel.cells.alive[c, cell] if rel.fits[cell] else 0
    totals.feasible[c] = feasible


@inlined
def _raise_cells(numbers: Numbers, rel: Relations, totals: Totals, c: int, size: int) -> None:
    """Compute the totals of the cells that fit, without spread and affinity scores."""
    for cell in range(size):
        rel.total[cell] = NOWHERE
        if rel.fits[cell]:
            if rel.cells.tied[c, cell] <= 0:
                raise_cell(numbers, rel.cells, totals, c, cell)
            rel.cells.total[cell] = rel.total[cell] = rel.cells.top[c, cell]


@inlined
def _moved(rel: Relations, c: int) -> bool:
    """Whether other groups have feasible rows than when totals were normalized."""
    moved = not rel.is_seen[c]
    for each in range(rel.alive.shape[0]):
        moved = moved or (rel.alive[each] > 0) != rel.seen[c, each]
    return moved


@inlined
def _domains(rel: Relations, line: int, marks: I32, has_keys: Bools, units: int) -> int:
    """Return the number of domains that the scored rows have."""
    rel.clock[0] += 1
    now, found, at = rel.clock[0], 0, rel.at[line]
    for row in range(units):
        if rel.fits[row] and has_keys[row]:
            place = at + marks[row]
            if rel.stamps[place] != now:
                rel.stamps[place] = now
                found += 1
                if found == rel.marked[rel.axis[line]]:
                    break
    return found


@inlined
def _spread(
    rel: Relations, c: int, layout: int, axes: I32, marks: I32, has_keys: Bools, units: int
) -> tuple[int, int]:
    """Compute raw spread scores in `rel.spread`; return their extremes over the rows that fit."""
    sums, fits, related = rel.sums, rel.fits[:units], rel.of_class[c]
    scored = 0
    for row in range(fits.shape[0]):
        sums[row] = 0.0
        scored += fits[row] and has_keys[row]
    if layout != ROWS:
        # Hostnames are counted by rows, not by cells.
        scored = 0
        for cell in range(units):
            scored += rel.cells.alive[c, cell] if fits[cell] and has_keys[cell] else 0
    for line in range(rel.begin[related], rel.begin[related + 1]):
        kind = rel.kind[line]
        if kind != SOFT and kind != HOST:
            continue
        slot, at = _slot(rel, layout, related, line)
        domains, skew = axes[slot], float(rel.skew[line])
        several = scored if kind == HOST else _domains(rel, line, marks[slot], has_keys, units)
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
            floor = np.floor(sums[row])
            raw = int(floor) + (1 if sums[row] - floor >= 0.5 else 0)
            rel.spread[row] = raw
            lowest, highest = min(lowest, raw), max(highest, raw)
        else:
            rel.spread[row] = _UNSCORED
    return lowest, highest


@inlined
def _near(rel: Relations, layout: int, axes: I32, related: int, units: int) -> tuple[int, int]:
    """Compute raw affinity scores in `rel.near`; return their extremes over the rows that fit."""
    near, fits = rel.near[:units], rel.fits[:units]
    near[:] = 0
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] == SCORE:
            slot, at = _slot(rel, layout, related, line)
            domains = axes[slot]
            for row in range(fits.shape[0]):
                if domains[row] >= 0:
                    near[row] += rel.counts[at + domains[row]]
    lowest, highest = _NONE, _UNSCORED
    for row in range(fits.shape[0]):
        if fits[row]:
            lowest, highest = min(lowest, near[row]), max(highest, near[row])
    return lowest, highest


@inlined
def _sum_up(
    rel: Relations, c: int, layout: int, axes: I32, marks: I32, has_keys: Bools, units: int
) -> None:
    """Add the spread and affinity scores of the rows or cells that fit to `rel.total`."""
    related = rel.of_class[c]
    spread_weight, near_weight = rel.weights[c, 0], rel.weights[c, 1]
    fits = rel.fits[:units]
    if spread_weight:
        lowest, highest = _spread(rel, c, layout, axes, marks, has_keys, units)
        for row in range(fits.shape[0]):
            if fits[row] and rel.spread[row] != _UNSCORED:
                score = 100
                if highest > 0:
                    score = quotient(100 * (highest + lowest - rel.spread[row]), highest)
                rel.total[row] += spread_weight * score
    if near_weight:
        lowest, highest = _near(rel, layout, axes, related, units)
        if highest > lowest:
            for row in range(fits.shape[0]):
                if fits[row]:
                    share = float(rel.near[row] - lowest) / float(highest - lowest)
                    rel.total[row] += near_weight * int(100.0 * share)


@inlined
def _choose(
    numbers: Numbers, rel: Relations, draw: np.uint64, use_draws: bool, highest: int, ties: int
) -> int:
    """Return the row with the highest total that the draw selects."""
    # Of many tied rows, one is in the first few buckets; for few, all rows are read as one bucket.
    are_few = ties < FEW
    found, best = -1, np.uint64(0)
    for back in range(1 if are_few else BUCKETS):
        start, stop = 0, numbers.row_at.shape[0]
        if not are_few:
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
            start, stop = numbers.begin[bucket], numbers.begin[bucket + 1]
        for place in range(start, stop):
            row = numbers.row_at[place]
            if rel.total[row] == highest:
                rank = rank_of(numbers.order[place], draw, use_draws)
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
    axes, marks, group = rel.axes, rel.marks, totals.group[rel.fixed[c]]
    has_keys = rel.masks[rel.keys[rel.of_class[c]]]
    if layout != ROWS:
        cells = rel.cells
        axes, marks, group = cells.axes[layout], cells.marks[layout], cells.group[layout]
        has_keys = cells.scored[layout]
        cells.moved[layout, 0] = -1
    units = _begin(numbers, rel, totals, c, layout)
    _look(rel, totals, log, c, layout, axes, group, units)
    if _moved(rel, c):
        return MOVED, -1
    if totals.feasible[c] == 0:
        return NO_ROW, -1
    if layout != ROWS:
        _raise_cells(numbers, rel, totals, c, units)
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

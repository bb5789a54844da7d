"""The compiled part for classes that look across nodes: spread constraints and inter-pod affinity.

For each pod every row is looked at, twice where scores are to be normalized: what a placement
changes in a domain it changes on all rows of it. The arithmetic is, operation for operation, that
of `plugins/pod_topology_spread.py` and `plugins/inter_pod_affinity.py`.
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
from roadstead.kernel.compiled_rows import quotient
from roadstead.kernel.jit import bucket_at, inlined, internal, rank_of
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

_UNSCORED = np.iinfo(np.int64).min
_NONE = np.iinfo(np.int64).max


@internal
def count(rel: Relations, face: int, row: int) -> None:
    """A pod of a face came to a row: counts it in every line that it concerns."""
    for place in range(rel.effects_from[face], rel.effects_from[face + 1]):
        line, amount = rel.effects[place, 0], rel.effects[place, 1]
        kind = rel.kind[line]
        if kind == HOST:
            rel.counts[rel.at[line] + row] += amount
        elif kind in (SOFT, HARD):
            if rel.masks[rel.mask[line], row]:
                rel.counts[rel.at[line] + rel.marks[rel.axis[line], row]] += amount
        else:
            domain = rel.axes[rel.axis[line], row]
            if domain >= 0:
                rel.counts[rel.at[line] + domain] += amount


@inlined
def _highest(rel: Relations, line: int) -> int:
    """The most pods of a hard constraint that the domain of a row may count."""
    at, lowest, domains = rel.at[line], _NONE, 0
    for place in range(at, at + rel.size[line]):
        if rel.present[place]:
            domains += 1
            lowest = min(lowest, rel.counts[place])
    if domains < rel.min_domains[line]:
        lowest = 0
    highest: int = rel.skew[line] + lowest
    return highest


@inlined
def _is_first(rel: Relations, related: int) -> bool:
    """Whether no pod anywhere is what the class wants near, and it is so itself."""
    if not rel.near_itself[related]:
        return False
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] == AFFINITY:
            for place in range(rel.at[line], rel.at[line] + rel.size[line]):
                if rel.counts[place] != 0:
                    return False
    return True


@inlined
def _refuse(rel: Relations, related: int) -> None:
    """Takes rows that constraints and required terms refuse out of `rel.fits`."""
    fits, is_first = rel.fits, _is_first(rel, related)
    for line in range(rel.begin[related], rel.begin[related + 1]):
        kind, domains = rel.kind[line], rel.axes[rel.axis[line]]
        at = rel.at[line]
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
    """Where rows are sampled, leaves of those that fit the ones at which upstream would look."""
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
    """Whether some line may take rows away."""
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] not in (SOFT, HOST, SCORE):
            return True
    return False


@inlined
def _look(numbers: Numbers, rel: Relations, totals: Totals, log: Log, c: int) -> bool:
    """Finds which rows fit, and their totals without what is normalized over them; whether groups
    of rows that normalize alike came or went."""
    total, group, related = totals.total[c], totals.group[rel.fixed[c]], rel.of_class[c]
    for place in range(total.shape[0]):
        row = numbers.row_at[place]
        rel.fits[row] = total[place] != NOWHERE
        rel.total[row] = total[place]
    if _refuses(rel, related) or log.order.shape[0] > 0:
        _refuse(rel, related)
        _sample(rel, log, c)
        rel.alive[:] = 0
        feasible = 0
        for row in range(total.shape[0]):
            feasible += rel.fits[row]
            if rel.fits[row]:
                rel.alive[group[row]] = 1
        for row in range(total.shape[0]):
            rel.total[row] = rel.total[row] if rel.fits[row] else NOWHERE
        totals.feasible[c] = feasible
    else:
        # One assignment of arrays would bring text for its error, whose compilation takes seconds.
        for each in range(rel.alive.shape[0]):
            rel.alive[each] = totals.alive[c, each]
    moved = not rel.is_seen[c]
    for each in range(rel.alive.shape[0]):
        moved = moved or (rel.alive[each] > 0) != rel.seen[c, each]
    return moved


@inlined
def _domains(rel: Relations, line: int, keys: int) -> int:
    """Over how many domains the rows that are scored lie."""
    rel.clock[0] += 1
    now, found, at = rel.clock[0], 0, rel.at[line]
    marks, has_keys = rel.marks[rel.axis[line]], rel.masks[keys]
    for row in range(rel.fits.shape[0]):
        if rel.fits[row] and has_keys[row]:
            place = at + marks[row]
            if rel.stamps[place] != now:
                rel.stamps[place] = now
                found += 1
                if found == rel.marked[rel.axis[line]]:
                    break
    return found


@inlined
def _spread(rel: Relations, related: int) -> tuple[int, int]:
    """Raw scores of soft constraints into `rel.spread`; their extremes over the rows that fit."""
    keys = rel.keys[related]
    has_keys, sums, fits = rel.masks[keys], rel.sums, rel.fits
    scored = 0
    for row in range(fits.shape[0]):
        sums[row] = 0.0
        scored += fits[row] and has_keys[row]
    for line in range(rel.begin[related], rel.begin[related + 1]):
        kind = rel.kind[line]
        if kind != SOFT and kind != HOST:
            continue
        weight = rel.logs[scored if kind == HOST else _domains(rel, line, keys)]
        at, domains, skew = rel.at[line], rel.axes[rel.axis[line]], float(rel.skew[line])
        # Rows that do not fit are counted, too, and nobody asks for them: that needs no branch.
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
def _near(rel: Relations, related: int) -> tuple[int, int]:
    """Raw scores of preferred terms into `rel.near`; their extremes over the rows that fit."""
    near, fits = rel.near, rel.fits
    near[:] = 0
    for line in range(rel.begin[related], rel.begin[related + 1]):
        if rel.kind[line] == SCORE:
            at, domains = rel.at[line], rel.axes[rel.axis[line]]
            for row in range(fits.shape[0]):
                if domains[row] >= 0:
                    near[row] += rel.counts[at + domains[row]]
    lowest, highest = _NONE, _UNSCORED
    for row in range(fits.shape[0]):
        if fits[row]:
            lowest, highest = min(lowest, near[row]), max(highest, near[row])
    return lowest, highest


@inlined
def _sum_up(rel: Relations, c: int) -> None:
    """Adds to the totals of the rows that fit what spread and affinity say: in `rel.total`."""
    related = rel.of_class[c]
    spread_weight, near_weight = rel.weights[c, 0], rel.weights[c, 1]
    fits = rel.fits
    if spread_weight:
        lowest, highest = _spread(rel, related)
        for row in range(fits.shape[0]):
            if fits[row] and rel.spread[row] != _UNSCORED:
                score = 100
                if highest > 0:
                    score = quotient(100 * (highest + lowest - rel.spread[row]), highest)
                rel.total[row] += spread_weight * score
    if near_weight:
        lowest, highest = _near(rel, related)
        if highest > lowest:
            for row in range(fits.shape[0]):
                if fits[row]:
                    share = float(rel.near[row] - lowest) / float(highest - lowest)
                    rel.total[row] += near_weight * int(100.0 * share)


@inlined
def _choose(
    numbers: Numbers, rel: Relations, draw: np.uint64, use_draws: bool, highest: int, ties: int
) -> int:
    """The row of the draw among those with the highest total."""
    # Of many, one lies in the first few buckets of the draw; of few, all rows are one bucket.
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
    """(DONE and the row for a pod of a class whose totals are up to date, or why there is none)."""
    if _look(numbers, rel, totals, log, c):
        return MOVED, -1
    if totals.feasible[c] == 0:
        return NO_ROW, -1
    _sum_up(rel, c)
    highest, ties = NOWHERE, 0
    for row in range(rel.total.shape[0]):
        highest = max(highest, rel.total[row])
    for row in range(rel.total.shape[0]):
        ties += rel.total[row] == highest
    found = _choose(numbers, rel, log.draws[pod], log.use_draws[0], highest, ties)
    log.best[pod], log.total[pod], log.feasible[pod] = ties, highest, totals.feasible[c]
    if log.order.shape[0]:
        log.start[0] = (log.start[0] + log.visited[0]) % log.order.shape[0]
    return DONE, found

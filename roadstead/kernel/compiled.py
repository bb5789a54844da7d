"""The compiled part: totals of classes over rows, kept up to date, and the choice of a row.

Everything here is arithmetic on `arrays`, operation for operation that of the NumPy plugins, whose
modules say what is computed. A change to one is a change to the other; tests hold them equal.
"""

from __future__ import annotations

import math

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    CHANGED,
    DONE,
    END,
    FEW,
    GROUP,
    KEPT_BACK,
    LEAST,
    MOVED,
    NEW,
    NO_ROW,
    NOWHERE,
    OFF,
    RATIO,
    Log,
    Numbers,
    Specs,
    Totals,
)
from roadstead.kernel.compiled_relations import count, decide
from roadstead.kernel.jit import bucket_at, compiled, place_of_bucket, rank_of
from roadstead.kernel.relation_arrays import Relations
from roadstead.nodes.columns import I32, I64

_ZERO = np.uint64(0)

EXACT = 1 << 52


@compiled
def _quotient(dividend: int, divisor: int) -> int:
    """dividend // divisor for divisor > 0.

    By way of float64, which is faster and right to within 1 up to 2**52; what is larger, or has
    wrapped around, is divided as an integer.
    """
    if 0 <= dividend < EXACT and divisor < EXACT:
        found = int(float(dividend) / float(divisor))
        rest = dividend - found * divisor
        return found + (rest >= divisor) - (rest < 0)
    return dividend // divisor


@compiled
def _filter(numbers: Numbers, specs: Specs, totals: Totals, c: int, rows: I64, out: I32) -> None:
    """Writes NOWHERE for rows that cannot take the class, what NODE facts add to totals else."""
    passes, still = totals.passes[specs.fixed[c]], totals.still[specs.fixed[c]]
    pod_count, pod_limit, blocked = numbers.pod_count, numbers.pod_limit, numbers.blocked
    allocatable, requested = numbers.allocatable, numbers.requested
    wants, ports = specs.wants[c], specs.ports[c]
    for place in range(rows.shape[0]):
        row = rows[place]
        fits = passes[row] and pod_count[row] < pod_limit[row]
        for k in range(wants.shape[0]):
            resource = wants[k, 0]
            if resource == END or not fits:
                break
            fits = wants[k, 1] <= allocatable[row, resource] - requested[row, resource]
        for k in range(ports.shape[0]):
            if ports[k] == END or not fits:
                break
            fits = not blocked[row, ports[k]]
        out[place] = still[row] if fits else NOWHERE


@compiled
def _add_fit(numbers: Numbers, specs: Specs, c: int, rows: I64, out: I32) -> None:
    """NodeResourcesFit's weighted score, for rows that can take the class."""
    allocatable, requested, nonzero = numbers.allocatable, numbers.requested, numbers.nonzero
    lines, shapes = specs.fit_lines[c], specs.shapes
    strategy, plugin_weight, shape = specs.fit[c, 0], specs.fit[c, 1], specs.fit[c, 2]
    for place in range(rows.shape[0]):
        if out[place] == NOWHERE:
            continue
        row = rows[place]
        weighted = 0
        weights = 0
        for k in range(lines.shape[0]):
            resource, column = lines[k, 0], lines[k, 1]
            if resource == END:
                break
            capacity = allocatable[row, resource]
            if capacity == 0:
                continue
            there = nonzero[row, column] if column >= 0 else requested[row, resource]
            asked = there + lines[k, 2]
            used = min(asked, capacity)
            score = _quotient((capacity - used if strategy == LEAST else used) * 100, capacity)
            if strategy == RATIO:
                score = shapes[shape, score]
            weighted += score * lines[k, 3]
            if strategy != RATIO or score > 0:
                weights += lines[k, 3]
        weights = max(weights, 1)
        if strategy == RATIO:
            weighted = 2 * weighted + weights
            weights = 2 * weights
        out[place] += plugin_weight * _quotient(weighted, weights)


@compiled
def _add_balanced(numbers: Numbers, specs: Specs, c: int, rows: I64, out: I32) -> None:
    """NodeResourcesBalancedAllocation's weighted score, for rows that can take the class."""
    allocatable, requested = numbers.allocatable, numbers.requested
    lines, plugin_weight = specs.balanced_lines[c], specs.balanced[c]
    fractions = np.empty(lines.shape[0])
    for place in range(rows.shape[0]):
        if out[place] == NOWHERE:
            continue
        row = rows[place]
        present = 0
        total = 0.0
        for k in range(lines.shape[0]):
            resource = lines[k, 0]
            if resource == END:
                break
            capacity = allocatable[row, resource]
            if capacity == 0:
                continue
            asked = requested[row, resource] + lines[k, 1]
            fraction = min(float(asked) / float(max(capacity, 1)), 1.0)
            fractions[present] = fraction
            present += 1
            total += fraction
        deviation = 0.0
        if present == 2:
            deviation = abs((fractions[0] - fractions[1]) / 2)
        elif present > 2:
            mean = total / float(present)
            squares = 0.0
            for k in range(present):
                squares += (fractions[k] - mean) * (fractions[k] - mean)
            deviation = math.sqrt(squares / float(present))
        out[place] += plugin_weight * int((1.0 - deviation) * 100)


@compiled
def _evaluate(numbers: Numbers, specs: Specs, totals: Totals, c: int, rows: I64, out: I32) -> None:
    """Totals of some rows without what normalizing plugins add: int32[rows], NOWHERE for none."""
    _filter(numbers, specs, totals, c, rows, out)
    if specs.fit[c, 0] != OFF:
        _add_fit(numbers, specs, c, rows, out)
    if specs.balanced[c] >= 0:
        _add_balanced(numbers, specs, c, rows, out)


@compiled
def _raise_top(numbers: Numbers, totals: Totals, c: int, bucket: int) -> None:
    """Finds the highest total of a bucket, and how many rows have it."""
    total = totals.total[c]
    highest, tied = NOWHERE, 0
    for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
        if total[place] > highest:
            highest, tied = total[place], 0
        tied += total[place] == highest
    totals.top[c, bucket], totals.tied[c, bucket] = highest, tied


@compiled
def _raise_high(totals: Totals, c: int, group: int) -> None:
    """Finds the highest total of a group of buckets, and how many rows have it."""
    top, tied = totals.top[c], totals.tied[c]
    highest = NOWHERE
    for bucket in range(group * GROUP, (group + 1) * GROUP):
        highest = max(highest, top[bucket])
    many = 0
    for bucket in range(group * GROUP, (group + 1) * GROUP):
        if top[bucket] == highest:
            many += tied[bucket]
    totals.high[c, group], totals.many[c, group] = highest, many


@compiled
def _raise_tops(numbers: Numbers, totals: Totals, c: int) -> None:
    total, begin = totals.total[c], numbers.begin
    top, tied = totals.top[c], totals.tied[c]
    for bucket in range(BUCKETS):
        highest, many = NOWHERE, 0
        for place in range(begin[bucket], begin[bucket + 1]):
            each = total[place]
            if each > highest:
                highest, many = each, 0
            many += each == highest
        top[bucket], tied[bucket] = highest, many
    for group in range(BUCKETS // GROUP):
        _raise_high(totals, c, group)


@compiled
def build(numbers: Numbers, specs: Specs, totals: Totals, classes: I64, seen: int) -> None:
    """Totals of new classes over all rows, as if normalizing plugins said 0."""
    rows = numbers.row_at
    for c in classes:
        total, alive, group = totals.total[c], totals.alive[c], totals.group[specs.fixed[c]]
        _evaluate(numbers, specs, totals, c, rows, total)
        alive[:] = 0
        totals.norm[c] = 0
        feasible = 0
        for place in range(total.shape[0]):
            if total[place] != NOWHERE:
                alive[group[rows[place]]] += 1
                feasible += 1
        totals.feasible[c] = feasible
        totals.seen[c] = seen
        _raise_tops(numbers, totals, c)


@compiled
def renormalize(numbers: Numbers, specs: Specs, totals: Totals, c: int, norm: I32) -> None:
    """Replaces what normalizing plugins add, int32[group], in all totals of a class."""
    total, group, old = totals.total[c], totals.group[specs.fixed[c]], totals.norm[c]
    for place in range(total.shape[0]):
        if total[place] != NOWHERE:
            mine = group[numbers.row_at[place]]
            total[place] += norm[mine] - old[mine]
    for each in range(norm.shape[0]):
        old[each] = norm[each]
    _raise_tops(numbers, totals, c)


@compiled
def _set(numbers: Numbers, totals: Totals, c: int, row: int, group: int, new: int) -> None:
    """Gives a row of a class its new total, NOWHERE if it can no longer take it."""
    place = numbers.place_of[row]
    old = totals.total[c, place]
    if new == old:
        return
    if old == NOWHERE or new == NOWHERE:
        change = 1 if old == NOWHERE else -1
        totals.feasible[c] += change
        totals.alive[c, group] += change
        if totals.alive[c, group] == 0 or (change == 1 and totals.alive[c, group] == 1):
            totals.moved[c] = True
    totals.total[c, place] = new
    bucket = _bucket_of(numbers, place)
    top = totals.top[c, bucket]
    if new > top:
        totals.top[c, bucket], totals.tied[c, bucket] = new, 1
    elif new == top:
        totals.tied[c, bucket] += 1
    elif old < top:
        return
    elif totals.tied[c, bucket] > 1:
        totals.tied[c, bucket] -= 1
    else:
        _raise_top(numbers, totals, c, bucket)
    _raise_high(totals, c, bucket // GROUP)


@compiled
def _bucket_of(numbers: Numbers, place: int) -> int:
    """The last bucket that begins at or before a place."""
    low, high = 0, BUCKETS
    while high - low > 1:
        middle = (low + high) // 2
        if numbers.begin[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@compiled
def catch_up(numbers: Numbers, specs: Specs, totals: Totals, log: Log, c: int) -> None:
    """Brings a class up to date with every row that changed since it was looked at."""
    rows = log.changed[totals.seen[c] : log.length[0]]
    if rows.shape[0] == 0:
        return
    fresh = np.empty(rows.shape[0], np.int32)
    _evaluate(numbers, specs, totals, c, rows, fresh)
    groups, norm = totals.group[specs.fixed[c]], totals.norm[c]
    for place in range(rows.shape[0]):
        group = groups[rows[place]]
        new = fresh[place] if fresh[place] == NOWHERE else fresh[place] + norm[group]
        _set(numbers, totals, c, rows[place], group, new)
    totals.seen[c] = log.length[0]


@compiled
def _first_bucket(
    totals: Totals, c: int, highest: int, ties: int, draw: np.uint64, use_draws: bool
) -> np.int64:
    """Of the buckets that have a row with the highest total, the first in the order of the draw."""
    top = totals.top[c]
    if ties >= FEW:
        for back in range(BUCKETS):
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
            if top[bucket] == highest:
                return bucket
    found, best = np.int64(-1), np.int64(-1)
    for group in range(BUCKETS // GROUP):
        if totals.high[c, group] == highest:
            for each in range(group * GROUP, (group + 1) * GROUP):
                if top[each] == highest:
                    at = np.int64(each)
                    if use_draws:
                        at = np.int64(place_of_bucket(np.uint64(each), draw))
                    if at > best:
                        found, best = np.int64(each), at
    return found


@compiled
def _choose(numbers: Numbers, totals: Totals, log: Log, pod: int, c: int, highest: int) -> int:
    """The row of the draw among those with the highest total; counts them."""
    draw, use_draws = log.draws[pod], log.use_draws[0]
    ties = 0
    for group in range(BUCKETS // GROUP):
        if totals.high[c, group] == highest:
            ties += totals.many[c, group]
    log.best[pod] = ties
    bucket = _first_bucket(totals, c, highest, ties, draw, use_draws)
    total, order = totals.total[c], numbers.order
    found, rank = -1, _ZERO
    for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
        if total[place] == highest:
            mixed = rank_of(order[place], draw, use_draws)
            if found < 0 or mixed > rank:
                found, rank = place, mixed
    return int(numbers.row_at[found])


@compiled
def _place(numbers: Numbers, specs: Specs, c: int, row: int) -> None:
    """Counts a pod of a class on a row."""
    adds = specs.adds[c]
    for k in range(adds.shape[0]):
        if adds[k, 0] == END:
            break
        numbers.requested[row, adds[k, 0]] += adds[k, 1]
    numbers.nonzero[row, 0] += specs.nonzero[c, 0]
    numbers.nonzero[row, 1] += specs.nonzero[c, 1]
    numbers.pod_count[row] += 1
    ports = specs.ports[c]
    for k in range(ports.shape[0]):
        if ports[k] == END:
            break
        for other in range(specs.conflicts.shape[1]):
            if specs.conflicts[ports[k], other]:
                numbers.blocked[row, other] = True


@compiled
def _reason(
    numbers: Numbers, specs: Specs, totals: Totals, log: Log, c: int, is_related: bool
) -> int:
    """Why the next pod of a class cannot be decided here and now; DONE if it can."""
    if totals.stopped[c]:
        return CHANGED
    if not totals.built[c]:
        return NEW
    catch_up(numbers, specs, totals, log, c)
    return MOVED if totals.moved[c] and not is_related else DONE


@compiled
def _best(numbers: Numbers, totals: Totals, log: Log, pod: int, c: int) -> tuple[int, int]:
    """(DONE and the row for a pod of a class that looks at rows alone, or why there is none)."""
    high = totals.high[c]
    highest = NOWHERE
    for group in range(high.shape[0]):
        highest = max(highest, high[group])
    if totals.bound[c] != NOWHERE and highest <= totals.bound[c]:
        return KEPT_BACK, -1
    if highest == NOWHERE:
        return NO_ROW, -1
    log.feasible[pod], log.total[pod] = totals.feasible[c], highest
    return DONE, _choose(numbers, totals, log, pod, c, highest)


@compiled
def run(
    numbers: Numbers, specs: Specs, totals: Totals, rel: Relations, log: Log, start: int
) -> tuple[int, int]:
    """Decides pods from `start` on: (how far it came, why it came back)."""
    for pod in range(start, log.classes.shape[0]):
        c = log.classes[pod]
        is_related = rel.of_class[c] >= 0
        reason = _reason(numbers, specs, totals, log, c, is_related)
        row = -1
        if reason == DONE and is_related:
            reason, row = decide(numbers, totals, rel, log, pod, c)
        elif reason == DONE:
            reason, row = _best(numbers, totals, log, pod, c)
        if reason != DONE:
            return pod, reason
        log.row[pod] = row
        _place(numbers, specs, c, row)
        count(rel, rel.face[c], row)
        log.changed[log.length[0]] = row
        log.length[0] += 1
        affects, stopped = specs.affects[c], totals.stopped
        for other in range(affects.shape[0]):
            if affects[other]:
                stopped[other] = True
    return log.classes.shape[0], DONE

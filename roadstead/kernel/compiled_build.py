"""The compiled part that looks at all rows: the first totals of classes, and what is added to all.

Rows are gone through in pieces, whose numbers are copied side by side first, once for all classes:
what is done with a piece are loops without a branch, of which the compiler makes vector code. They
are operation for operation those of `compiled_rows`, which are taken where a precondition fails.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import (
    BUCKETS,
    END,
    GROUP,
    LEAST,
    NOWHERE,
    OFF,
    PIECE,
    RATIO,
    Numbers,
    Piece,
    Specs,
    Totals,
)
from roadstead.kernel.compiled_rows import EXACT, add_balanced, add_fit, evaluate
from roadstead.kernel.jit import compiled, inlined, internal
from roadstead.nodes.columns import I32, I64

_LARGEST = EXACT // 100

MANY = 4
"""With so many rows in each bucket, buckets are gone through one by one."""

FEW_GROUPS = 8
"""So few groups are gone through one by one, each without a branch."""


@internal
def _use(specs: Specs, classes: I64, piece: Piece) -> None:
    """Notes which resources some classes look at: a fleet may know thousands."""
    for c in classes:
        for lines in (specs.wants[c], specs.balanced_lines[c]):
            for k in range(lines.shape[0]):
                if lines[k, 0] != END:
                    piece.in_use[lines[k, 0]] = True
        for k in range(specs.fit_lines.shape[1]):
            if specs.fit_lines[c, k, 0] != END:
                piece.in_use[specs.fit_lines[c, k, 0]] = True


@inlined
def _copy(numbers: Numbers, rows: I64, piece: Piece) -> bool:
    """Copies the numbers of some rows; whether floating point numbers can stand for all."""
    largest = 0
    for resource in range(piece.capacity.shape[0]):
        if not piece.in_use[resource]:
            continue
        capacity, taken = piece.capacity[resource], piece.taken[resource]
        for place in range(rows.shape[0]):
            row = rows[place]
            capacity[place] = numbers.allocatable[row, resource]
            taken[place] = numbers.requested[row, resource]
            both = max(numbers.allocatable[row, resource], numbers.requested[row, resource])
            largest = max(largest, both)
    for place in range(rows.shape[0]):
        row = rows[place]
        piece.nonzero[0, place] = numbers.nonzero[row, 0]
        piece.nonzero[1, place] = numbers.nonzero[row, 1]
        largest = max(largest, numbers.nonzero[row, 0], numbers.nonzero[row, 1])
        piece.has_room[place] = numbers.pod_count[row] < numbers.pod_limit[row]
    return largest < _LARGEST


@internal
def _is_small(specs: Specs, c: int) -> bool:
    """Whether floating point numbers can stand for all that a class asks for."""
    largest = 0
    for k in range(specs.wants.shape[1]):
        largest = max(largest, specs.wants[c, k, 1])
    for k in range(specs.fit_lines.shape[1]):
        largest = max(largest, specs.fit_lines[c, k, 2])
    for k in range(specs.balanced_lines.shape[1]):
        largest = max(largest, specs.balanced_lines[c, k, 1])
    return largest < _LARGEST


@inlined
def _filter(
    numbers: Numbers,
    specs: Specs,
    totals: Totals,
    c: int,
    start: int,
    rows: I64,
    piece: Piece,
    out: I32,
) -> None:
    """Writes NOWHERE for rows that cannot take the class, what NODE facts add to totals else."""
    passes, still = totals.passes[specs.fixed[c], start:], totals.still[specs.fixed[c], start:]
    wants, ports = specs.wants[c], specs.ports[c]
    size = rows.shape[0]
    for place in range(size):
        out[place] = still[place] if piece.has_room[place] & passes[place] else NOWHERE
    for k in range(wants.shape[0]):
        if wants[k, 0] == END:
            break
        capacity, taken = piece.capacity[wants[k, 0]], piece.taken[wants[k, 0]]
        wanted = np.float64(wants[k, 1])
        for place in range(size):
            out[place] = out[place] if wanted <= capacity[place] - taken[place] else NOWHERE
    for k in range(ports.shape[0]):
        if ports[k] == END:
            break
        for place in range(size):
            out[place] = NOWHERE if numbers.blocked[rows[place], ports[k]] else out[place]


@inlined
def _add_fit(specs: Specs, c: int, piece: Piece, out: I32) -> None:
    """NodeResourcesFit's weighted score by LeastAllocated or MostAllocated.

    A quotient of integers below 2**52, rounded to a floating point number, is below the next
    integer wherever the exact one is: to cut it off is to divide as an integer.
    """
    lines, strategy, plugin_weight = specs.fit_lines[c], specs.fit[c, 0], specs.fit[c, 1]
    weighted, weights, size = piece.score, piece.weights, out.shape[0]
    weighted[:size] = 0.0
    weights[:size] = 0.0
    for k in range(lines.shape[0]):
        resource, column = lines[k, 0], lines[k, 1]
        if resource == END:
            break
        capacities = piece.capacity[resource]
        there = piece.nonzero[column] if column >= 0 else piece.taken[resource]
        asked, weight = np.float64(lines[k, 2]), np.float64(lines[k, 3])
        for place in range(size):
            capacity = capacities[place]
            used = min(there[place] + asked, capacity)
            dividend = (capacity - used if strategy == LEAST else used) * 100.0
            score = np.float64(np.int32(dividend / max(capacity, 1.0)))
            counts = weight if capacity != 0.0 else 0.0
            weighted[place] += score * counts
            weights[place] += counts
    for place in range(size):
        all_in_all = np.int32(weighted[place] / max(weights[place], 1.0))
        out[place] += np.int32(plugin_weight) * all_in_all if out[place] != NOWHERE else 0


@inlined
def _add_balanced(specs: Specs, c: int, piece: Piece, out: I32) -> None:
    """NodeResourcesBalancedAllocation's weighted score, for at most two resources."""
    lines, plugin_weight, size = specs.balanced_lines[c], specs.balanced[c], out.shape[0]
    first, second, present = piece.usage, piece.other, piece.weights
    present[:size] = 0.0
    first[:size] = 0.0
    second[:size] = 0.0
    for k in range(lines.shape[0]):
        resource, asked = lines[k, 0], np.float64(lines[k, 1])
        if resource == END:
            break
        capacities, taken = piece.capacity[resource], piece.taken[resource]
        fractions = first if k == 0 else second
        for place in range(size):
            capacity = capacities[place]
            fractions[place] = min((taken[place] + asked) / max(capacity, 1.0), 1.0)
            present[place] += 1.0 if capacity != 0.0 else 0.0
    for place in range(size):
        both = abs((first[place] - second[place]) / 2) if present[place] == 2.0 else 0.0
        score = np.int32((1.0 - both) * 100)
        out[place] += np.int32(plugin_weight) * score if out[place] != NOWHERE else 0


@inlined
def _lines(lines: I64) -> int:
    count = 0
    for k in range(lines.shape[0]):
        count += lines[k, 0] != END
    return count


@inlined
def _evaluate(
    numbers: Numbers,
    specs: Specs,
    totals: Totals,
    c: int,
    start: int,
    rows: I64,
    piece: Piece,
    is_small: bool,
    out: I32,
) -> None:
    """Totals of a piece without what normalizing plugins add: int32[place], NOWHERE for none."""
    if not is_small:
        evaluate(numbers, specs, totals, c, rows, out)
        return
    _filter(numbers, specs, totals, c, start, rows, piece, out)
    strategy = specs.fit[c, 0]
    if strategy == RATIO:
        add_fit(numbers, specs, c, rows, out)
    elif strategy != OFF:
        _add_fit(specs, c, piece, out)
    if specs.balanced[c] >= 0:
        if _lines(specs.balanced_lines[c]) <= 2:
            _add_balanced(specs, c, piece, out)
        else:
            add_balanced(numbers, specs, c, rows, out)


@internal
def raise_top(numbers: Numbers, totals: Totals, c: int, bucket: int) -> None:
    """Finds the highest total of a bucket, and how many rows have it."""
    total = totals.total[c]
    highest, tied = NOWHERE, 0
    for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
        if total[place] > highest:
            highest, tied = total[place], 0
        tied += total[place] == highest
    totals.top[c, bucket], totals.tied[c, bucket] = highest, tied


@internal
def raise_high(totals: Totals, c: int, group: int) -> None:
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


@internal
def raise_tops(numbers: Numbers, totals: Totals, c: int) -> None:
    total, bucket = totals.total[c], numbers.bucket
    top, tied = totals.top[c], totals.tied[c]
    if total.shape[0] >= MANY * BUCKETS:
        for at in range(BUCKETS):
            some = total[numbers.begin[at] : numbers.begin[at + 1]]
            highest, equal = np.int32(NOWHERE), np.int32(0)
            for place in range(some.shape[0]):
                highest = max(highest, some[place])
            for place in range(some.shape[0]):
                equal += np.int32(some[place] == highest)
            top[at], tied[at] = highest, equal
    else:
        top[:] = NOWHERE
        tied[:] = 0
        # Without a branch: of a few thousand rows, each bucket has one or two.
        for place in range(total.shape[0]):
            at, each = bucket[place], total[place]
            highest = top[at]
            tied[at] = 1 if each > highest else tied[at] + (each == highest)
            top[at] = max(highest, each)
    for group in range(BUCKETS // GROUP):
        raise_high(totals, c, group)


@compiled
def build(
    numbers: Numbers, specs: Specs, totals: Totals, classes: I64, seen: int, piece: Piece
) -> None:
    """Totals of new classes over all rows, normalized as was found last where that holds."""
    rows = numbers.row_at
    _use(specs, classes, piece)
    for start in range(0, rows.shape[0], PIECE):
        some = rows[start : start + PIECE]
        are_small = _copy(numbers, some, piece)
        for c in classes:
            out = totals.total[c, start : start + PIECE]
            is_small = are_small and _is_small(specs, c)
            _evaluate(numbers, specs, totals, c, start, some, piece, is_small, out)
    for c in classes:
        group_at = totals.group_at[specs.fixed[c]]
        totals.feasible[c] = _count(totals.total[c], group_at, totals.alive[c])
        totals.norm[c] = 0
        totals.moved[c] = not is_usual(totals, specs.model[c], totals.alive[c])
        if not totals.moved[c]:
            _renormalize(totals, c, group_at, totals.usual_norm[specs.model[c]])
        totals.seen[c] = seen
        totals.built[c] = True
        raise_tops(numbers, totals, c)


@inlined
def _count(total: I32, group_at: I32, alive: I64) -> int:
    """Counts feasible rows, by group into alive and in all."""
    feasible = 0
    if alive.shape[0] <= FEW_GROUPS:
        for group in range(alive.shape[0]):
            rows = 0
            for place in range(total.shape[0]):
                rows += (total[place] != NOWHERE) & (group_at[place] == group)
            alive[group] = rows
            feasible += rows
        return feasible
    alive[:] = 0
    for place in range(total.shape[0]):
        fits = total[place] != NOWHERE
        alive[group_at[place]] += fits
        feasible += fits
    return feasible


@inlined
def is_usual(totals: Totals, model: int, alive: I64) -> bool:
    """Whether it is known what normalizing plugins add where these groups have feasible rows."""
    same = totals.has_usual[model]
    for each in range(alive.shape[0]):
        same &= (alive[each] > 0) == totals.usual[model, each]
    return bool(same)


@internal
def _renormalize(totals: Totals, c: int, group_at: I32, norm: I32) -> None:
    """Replaces what normalizing plugins add, int32[group], in all totals of a class."""
    total, old = totals.total[c], totals.norm[c]
    if norm.shape[0] <= FEW_GROUPS:
        for group in range(norm.shape[0]):
            more = norm[group] - old[group]
            for place in range(total.shape[0] if more else 0):
                changes = (total[place] != NOWHERE) & (group_at[place] == group)
                total[place] += more if changes else 0
    else:
        for place in range(total.shape[0]):
            if total[place] != NOWHERE:
                mine = group_at[place]
                total[place] += norm[mine] - old[mine]
    for each in range(norm.shape[0]):
        old[each] = norm[each]


@compiled
def renormalize(numbers: Numbers, specs: Specs, totals: Totals, c: int, norm: I32) -> None:
    """The same, for a class that is built."""
    _renormalize(totals, c, totals.group_at[specs.fixed[c]], norm)
    raise_tops(numbers, totals, c)

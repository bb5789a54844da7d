"""The compiled part: totals of classes over rows, kept up to date, and the choice of a row.

Everything here is arithmetic on `arrays`, operation for operation that of the NumPy plugins, whose
modules say what is computed. A change to one is a change to the other; tests hold them equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np

from roadstead.kernel.arrays import (
    BLOCK,
    CHANGED,
    DONE,
    END,
    KEPT_BACK,
    LEAST,
    MOST,
    MOVED,
    NEW,
    NO_ROW,
    NOWHERE,
    OFF,
    Log,
    Numbers,
    Specs,
    Totals,
)
from roadstead.nodes.columns import I32, I64

P = ParamSpec("P")
R = TypeVar("R")

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_ZERO = np.uint64(0)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles without the Python interpreter, divides by zero as NumPy, keeps the machine code."""
    return cast(
        Callable[P, R], numba.njit(cache=True, error_model="numpy", boundscheck=False)(function)
    )


@compiled
def _fits(numbers: Numbers, specs: Specs, c: int, row: int) -> bool:
    if numbers.pod_count[row] >= numbers.pod_limit[row]:
        return False
    wants = specs.wants[c]
    for k in range(wants.shape[0]):
        resource = wants[k, 0]
        if resource == END:
            break
        free = numbers.allocatable[row, resource] - numbers.requested[row, resource]
        if wants[k, 1] > free:
            return False
    ports = specs.ports[c]
    for k in range(ports.shape[0]):
        if ports[k] == END:
            break
        if numbers.blocked[row, ports[k]]:
            return False
    return True


@compiled
def _percent(part: int, whole: int) -> int:
    """part * 100 // whole for 0 <= part <= whole, whole > 0; wraps as int64 does."""
    return (part * 100) // whole


@compiled
def _fit_score(numbers: Numbers, specs: Specs, c: int, row: int) -> int:
    strategy, shape = specs.fit[c, 0], specs.fit[c, 2]
    lines = specs.fit_lines[c]
    weighted = 0
    weights = 0
    for k in range(lines.shape[0]):
        resource = lines[k, 0]
        if resource == END:
            break
        capacity = numbers.allocatable[row, resource]
        if capacity == 0:
            continue
        column = lines[k, 1]
        if column >= 0:
            requested = numbers.nonzero[row, column] + lines[k, 2]
        else:
            requested = numbers.requested[row, resource] + lines[k, 2]
        used = min(requested, capacity)
        weight = lines[k, 3]
        if strategy == LEAST:
            score = _percent(capacity - used, capacity)
        elif strategy == MOST:
            score = _percent(used, capacity)
        elif requested > capacity:
            score = specs.shapes[shape, 100]
        else:
            score = specs.shapes[shape, _percent(used, capacity)]
        weighted += score * weight
        if strategy in (LEAST, MOST) or score > 0:
            weights += weight
    divisor = max(weights, 1)
    if strategy in (LEAST, MOST):
        return weighted // divisor
    return (2 * weighted + divisor) // (2 * divisor)


@compiled
def _fraction(numbers: Numbers, lines: I64, k: int, row: int) -> float:
    capacity = numbers.allocatable[row, lines[k, 0]]
    requested = numbers.requested[row, lines[k, 0]] + lines[k, 1]
    return min(float(requested) / float(max(capacity, 1)), 1.0)


@compiled
def _balanced_score(numbers: Numbers, specs: Specs, c: int, row: int) -> int:
    lines = specs.balanced_lines[c]
    present = 0
    first = last = total = 0.0
    for k in range(lines.shape[0]):
        if lines[k, 0] == END:
            break
        if numbers.allocatable[row, lines[k, 0]] == 0:
            continue
        last = _fraction(numbers, lines, k, row)
        if present == 0:
            first = last
        present += 1
        total += last
    deviation = 0.0
    if present == 2:
        deviation = abs((first - last) / 2)
    elif present > 2:
        mean = total / float(present)
        squares = 0.0
        for k in range(lines.shape[0]):
            if lines[k, 0] == END:
                break
            if numbers.allocatable[row, lines[k, 0]] == 0:
                continue
            distance = _fraction(numbers, lines, k, row) - mean
            squares += distance * distance
        deviation = math.sqrt(squares / float(present))
    return int((1.0 - deviation) * 100)


@compiled
def _score(numbers: Numbers, specs: Specs, totals: Totals, c: int, row: int) -> int:
    """The total of a feasible row without what normalizing plugins add."""
    score = int(totals.still[specs.fixed[c], row])
    if specs.fit[c, 0] != OFF:
        score += specs.fit[c, 1] * _fit_score(numbers, specs, c, row)
    if specs.balanced[c] >= 0:
        score += specs.balanced[c] * _balanced_score(numbers, specs, c, row)
    return score


@compiled
def _raise_tops(totals: Totals, c: int) -> None:
    total, top = totals.total[c], totals.top[c]
    for block in range(top.shape[0]):
        highest = NOWHERE
        for row in range(block * BLOCK, min((block + 1) * BLOCK, total.shape[0])):
            highest = max(highest, total[row])
        top[block] = highest


@compiled
def build(numbers: Numbers, specs: Specs, totals: Totals, classes: I64, seen: int) -> None:
    """Totals of new classes over all rows, as if normalizing plugins said 0."""
    for c in classes:
        fixed = specs.fixed[c]
        total = totals.total[c]
        totals.alive[c] = 0
        totals.norm[c] = 0
        feasible = 0
        for row in range(total.shape[0]):
            if totals.passes[fixed, row] and _fits(numbers, specs, c, row):
                total[row] = _score(numbers, specs, totals, c, row)
                totals.alive[c, totals.group[fixed, row]] += 1
                feasible += 1
            else:
                total[row] = NOWHERE
        totals.feasible[c] = feasible
        totals.seen[c] = seen
        _raise_tops(totals, c)


@compiled
def renormalize(specs: Specs, totals: Totals, c: int, norm: I32) -> None:
    """Replaces what normalizing plugins add, int32[group], in all totals of a class."""
    total, group, old = totals.total[c], totals.group[specs.fixed[c]], totals.norm[c]
    for row in range(total.shape[0]):
        if total[row] != NOWHERE:
            total[row] += norm[group[row]] - old[group[row]]
    for each in range(norm.shape[0]):
        old[each] = norm[each]
    _raise_tops(totals, c)


@compiled
def _redo(numbers: Numbers, specs: Specs, totals: Totals, c: int, row: int) -> None:
    """Brings one row of a class up to date."""
    fixed = specs.fixed[c]
    old = totals.total[c, row]
    group = totals.group[fixed, row]
    new = NOWHERE
    if totals.passes[fixed, row] and _fits(numbers, specs, c, row):
        new = _score(numbers, specs, totals, c, row) + totals.norm[c, group]
    if new == old:
        return
    if old == NOWHERE or new == NOWHERE:
        change = 1 if old == NOWHERE else -1
        totals.feasible[c] += change
        totals.alive[c, group] += change
        if totals.alive[c, group] == 0 or (change == 1 and totals.alive[c, group] == 1):
            totals.moved[c] = True
    totals.total[c, row] = new
    block = row // BLOCK
    if new >= totals.top[c, block]:
        totals.top[c, block] = new
    elif old == totals.top[c, block]:
        highest = NOWHERE
        for each in range(block * BLOCK, min((block + 1) * BLOCK, totals.total.shape[1])):
            highest = max(highest, totals.total[c, each])
        totals.top[c, block] = highest


@compiled
def catch_up(numbers: Numbers, specs: Specs, totals: Totals, log: Log, c: int) -> None:
    """Brings a class up to date with every row that changed since it was looked at."""
    for place in range(totals.seen[c], log.length[0]):
        _redo(numbers, specs, totals, c, log.changed[place])
    totals.seen[c] = log.length[0]


@compiled
def _choose(numbers: Numbers, totals: Totals, log: Log, pod: int, c: int, highest: int) -> int:
    """The row of the draw among those with the highest total; counts them."""
    total, top = totals.total[c], totals.top[c]
    found, count, rank = -1, 0, _ZERO
    draw = log.draws[pod]
    for block in range(top.shape[0]):
        if top[block] != highest:
            continue
        for row in range(block * BLOCK, min((block + 1) * BLOCK, total.shape[0])):
            if total[row] != highest:
                continue
            mixed = numbers.order[row]
            if log.use_draws[0]:
                mixed = mixed ^ draw
                mixed = (mixed ^ (mixed >> _S30)) * _MIX_1
                mixed = (mixed ^ (mixed >> _S27)) * _MIX_2
                mixed = mixed ^ (mixed >> _S31)
            if count == 0 or mixed > rank:
                found, rank = row, mixed
            count += 1
    log.best[pod] = count
    return found


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
def _reason(numbers: Numbers, specs: Specs, totals: Totals, log: Log, c: int) -> int:
    """Why the next pod of a class cannot be decided here and now; DONE if it can."""
    if totals.stopped[c]:
        return CHANGED
    if not totals.built[c]:
        return NEW
    catch_up(numbers, specs, totals, log, c)
    return MOVED if totals.moved[c] else DONE


@compiled
def run(numbers: Numbers, specs: Specs, totals: Totals, log: Log, start: int) -> tuple[int, int]:
    """Decides pods from `start` on: (how far it came, why it came back)."""
    for pod in range(start, log.classes.shape[0]):
        c = log.classes[pod]
        reason = _reason(numbers, specs, totals, log, c)
        if reason != DONE:
            return pod, reason
        highest = NOWHERE
        for block in range(totals.top.shape[1]):
            highest = max(highest, totals.top[c, block])
        if totals.bound[c] != NOWHERE and highest <= totals.bound[c]:
            return pod, KEPT_BACK
        if highest == NOWHERE:
            return pod, NO_ROW
        row = _choose(numbers, totals, log, pod, c, highest)
        log.row[pod], log.feasible[pod], log.total[pod] = row, totals.feasible[c], highest
        _place(numbers, specs, c, row)
        log.changed[log.length[0]] = row
        log.length[0] += 1
        for other in range(specs.affects.shape[1]):
            if specs.affects[c, other]:
                totals.stopped[other] = True
    return log.classes.shape[0], DONE

"""The compiled part that looks at some rows: whether they take a class, and what they score.

Everything here is arithmetic on `arrays`, operation for operation that of the NumPy plugins, whose
modules say what is computed. A change to one is a change to the other; tests hold them equal.
"""

from __future__ import annotations

import math

import numpy as np

from roadstead.kernel.arrays import END, LEAST, NOWHERE, OFF, RATIO, Numbers, Specs, Totals
from roadstead.kernel.jit import inlined, internal
from roadstead.nodes.columns import I32, I64

EXACT = 1 << 52


@internal
def divided(dividend: int, divisor: int) -> int:
    """dividend // divisor for 0 <= dividend < EXACT and 0 < divisor < EXACT, without a branch."""
    found = np.int64(np.float64(dividend) / np.float64(divisor))
    rest = dividend - found * divisor
    return int(found + np.int64(rest >= divisor) - np.int64(rest < 0))


@internal
def quotient(dividend: int, divisor: int) -> int:
    """dividend // divisor for divisor > 0.

    By way of float64, which is faster and right to within 1 up to 2**52; what is larger, or has
    wrapped around, is divided as an integer.
    """
    if 0 <= dividend < EXACT and divisor < EXACT:
        return divided(dividend, divisor)
    return dividend // divisor


@inlined
def filtered(numbers: Numbers, specs: Specs, totals: Totals, c: int, rows: I64, out: I32) -> None:
    """Writes NOWHERE for rows that cannot take the class, what NODE facts add to totals else."""
    passes, still = totals.passes[specs.fixed[c]], totals.still[specs.fixed[c]]
    pod_count, pod_limit, blocked = numbers.pod_count, numbers.pod_limit, numbers.blocked
    allocatable, requested = numbers.allocatable, numbers.requested
    place_of = numbers.place_of
    wants, ports = specs.wants[c], specs.ports[c]
    for place in range(rows.shape[0]):
        row = rows[place]
        at = place_of[row]
        fits = passes[at] and pod_count[row] < pod_limit[row]
        for k in range(wants.shape[0]):
            resource = wants[k, 0]
            if resource == END or not fits:
                break
            fits = wants[k, 1] <= allocatable[row, resource] - requested[row, resource]
        for k in range(ports.shape[0]):
            if ports[k] == END or not fits:
                break
            fits = not blocked[row, ports[k]]
        out[place] = still[at] if fits else NOWHERE


@internal
def add_fit(numbers: Numbers, specs: Specs, c: int, rows: I64, out: I32) -> None:
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
            score = quotient((capacity - used if strategy == LEAST else used) * 100, capacity)
            if strategy == RATIO:
                score = shapes[shape, score]
            weighted += score * lines[k, 3]
            if strategy != RATIO or score > 0:
                weights += lines[k, 3]
        weights = max(weights, 1)
        if strategy == RATIO:
            weighted = 2 * weighted + weights
            weights = 2 * weights
        out[place] += plugin_weight * quotient(weighted, weights)


@inlined
def _fraction(asked: int, capacity: int) -> float:
    return min(float(asked) / float(max(capacity, 1)), 1.0)


@internal
def add_balanced(numbers: Numbers, specs: Specs, c: int, rows: I64, out: I32) -> None:
    """NodeResourcesBalancedAllocation's weighted score, for rows that can take the class."""
    allocatable, requested = numbers.allocatable, numbers.requested
    lines, plugin_weight = specs.balanced_lines[c], specs.balanced[c]
    for place in range(rows.shape[0]):
        if out[place] == NOWHERE:
            continue
        row = rows[place]
        present, total, first, second = 0, 0.0, 0.0, 0.0
        for k in range(lines.shape[0]):
            resource = lines[k, 0]
            if resource == END:
                break
            capacity = allocatable[row, resource]
            if capacity == 0:
                continue
            fraction = _fraction(requested[row, resource] + lines[k, 1], capacity)
            first, second = (fraction, second) if present == 0 else (first, fraction)
            present += 1
            total += fraction
        deviation = 0.0
        if present == 2:
            deviation = abs((first - second) / 2)
        elif present > 2:
            mean = total / float(present)
            squares = 0.0
            for k in range(lines.shape[0]):
                resource = lines[k, 0]
                if resource == END:
                    break
                capacity = allocatable[row, resource]
                if capacity != 0:
                    away = _fraction(requested[row, resource] + lines[k, 1], capacity) - mean
                    squares += away * away
            deviation = math.sqrt(squares / float(present))
        out[place] += plugin_weight * int((1.0 - deviation) * 100)


@inlined
def evaluate(numbers: Numbers, specs: Specs, totals: Totals, c: int, rows: I64, out: I32) -> None:
    """Totals of some rows without what normalizing plugins add: int32[rows], NOWHERE for none."""
    filtered(numbers, specs, totals, c, rows, out)
    if specs.fit[c, 0] != OFF:
        add_fit(numbers, specs, c, rows, out)
    if specs.balanced[c] >= 0:
        add_balanced(numbers, specs, c, rows, out)

"""The compiled part of NodeResourcesFit.

Single rows are computed with integers, which is exact for all amounts; pieces with float64, in
loops without a branch, where that is exact.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from roadstead.kernel.arrays import END, NOWHERE, Numbers, Piece
from roadstead.kernel.jit import inlined, internal, quotient
from roadstead.kernel.lowering.node_resources_fit import LEAST, RATIO, FitArrays
from roadstead.nodes.columns import I32, I64

Amount = TypeVar("Amount", int, float)


@inlined
def has_room(numbers: Numbers, wants: I64, row: int) -> bool:
    """Whether a row has room for one more pod with these requests."""
    fits = numbers.pod_count[row] < numbers.pod_limit[row]
    for k in range(wants.shape[0]):
        resource = wants[k, 0]
        if resource == END or not fits:
            break
        fits = wants[k, 1] <= numbers.allocatable[row, resource] - numbers.requested[row, resource]
    return bool(fits)


@inlined
def refuse_fit_in_piece(wants: I64, piece: Piece, out: I32) -> None:
    """Write NOWHERE for rows of a piece without room for these requests."""
    for k in range(wants.shape[0]):
        if wants[k, 0] == END:
            break
        capacity, taken = piece.capacity[wants[k, 0]], piece.taken[wants[k, 0]]
        wanted = np.float64(wants[k, 1])
        for place in range(out.shape[0]):
            out[place] = out[place] if wanted <= capacity[place] - taken[place] else NOWHERE


@inlined
def _dividend(asked: Amount, capacity: Amount, strategy: int) -> Amount:
    """Return 100 times the used amount of a resource or, for LeastAllocated, the free amount."""
    used = min(asked, capacity)
    return (capacity - used if strategy == LEAST else used) * 100


@internal
def add_fit(numbers: Numbers, fit: FitArrays, c: int, rows: I64, out: I32) -> None:
    """Add the weighted score to the totals of feasible rows."""
    allocatable, requested, nonzero = numbers.allocatable, numbers.requested, numbers.nonzero
    lines, shapes = fit.lines[c], fit.shapes
    strategy, plugin_weight, shape = fit.score[c, 0], fit.score[c, 1], fit.score[c, 2]
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
            score = quotient(_dividend(there + lines[k, 2], capacity, strategy), capacity)
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
def add_fit_in_piece(fit: FitArrays, c: int, piece: Piece, out: I32) -> None:
    """Add the weighted score by LeastAllocated or MostAllocated to rows of a piece.

    A quotient of integers below 2**52, rounded to float64, is below the next integer if the exact
    one is: truncating it gives the integer quotient.
    """
    lines, strategy, plugin_weight = fit.lines[c], fit.score[c, 0], fit.score[c, 1]
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
            dividend = _dividend(there[place] + asked, capacity, strategy)
            score = np.float64(np.int32(dividend / max(capacity, 1.0)))
            counts = weight if capacity != 0.0 else 0.0
            weighted[place] += score * counts
            weights[place] += counts
    for place in range(size):
        all_in_all = np.int32(weighted[place] / max(weights[place], 1.0))
        out[place] += np.int32(plugin_weight) * all_in_all if out[place] != NOWHERE else 0

"""The compiled part of NodeResourcesFit; see `FitArrays` for its parameters.

Single rows are computed with integers, which is exact for all amounts; chunks with float64, in
loops without a branch, if that is exact.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from roadstead.kernel.arrays import END, INFEASIBLE, Chunk, RowArrays
from roadstead.kernel.jit import inlined, internal, quotient
from roadstead.kernel.lowering.node_resources_fit import LEAST, RATIO, FitArrays
from roadstead.nodes.columns import I32, I64

Amount = TypeVar("Amount", int, float)
"""An amount of a resource: int for single rows, float in chunks."""


@inlined
def has_room(table: RowArrays, requests: I64, row: int) -> bool:
    """Whether a row has room for one more pod with these requests."""
    fits = table.pod_count[row] < table.pod_limit[row]
    for k in range(requests.shape[0]):
        resource = requests[k, 0]
        if resource == END or not fits:
            break
        fits = requests[k, 1] <= table.allocatable[row, resource] - table.requested[row, resource]
    return bool(fits)


@inlined
def refuse_fit_in_chunk(requests: I64, chunk: Chunk, out: I32) -> None:
    """Write INFEASIBLE for rows of a chunk without room for these requests."""
    for k in range(requests.shape[0]):
        if requests[k, 0] == END:
            break
        capacity, requested = chunk.capacity[requests[k, 0]], chunk.requested[requests[k, 0]]
        wanted = np.float64(requests[k, 1])
        for position in range(out.shape[0]):
            out[position] = (
                out[position] if wanted <= capacity[position] - requested[position] else INFEASIBLE
            )


@inlined
def _dividend(requested: Amount, capacity: Amount, strategy: int) -> Amount:
    """Return 100 times the used amount of a resource or, for LeastAllocated, the free amount."""
    used = min(requested, capacity)
    return (capacity - used if strategy == LEAST else used) * 100


@internal
def add_fit(table: RowArrays, fit: FitArrays, c: int, rows: I64, out: I32) -> None:
    """Add the weighted score to the totals of feasible rows."""
    allocatable, requested, nonzero = (table.allocatable, table.requested, table.nonzero)
    requests, shapes = fit.scored_requests[c], fit.shapes
    strategy, plugin_weight, shape = fit.score[c, 0], fit.score[c, 1], fit.score[c, 2]
    for position in range(rows.shape[0]):
        if out[position] == INFEASIBLE:
            continue
        row = rows[position]
        weighted = 0
        weights = 0
        for k in range(requests.shape[0]):
            resource, column = requests[k, 0], requests[k, 1]
            if resource == END:
                break
            capacity = allocatable[row, resource]
            if capacity == 0:
                continue
            on_row = nonzero[row, column] if column >= 0 else requested[row, resource]
            score = quotient(_dividend(on_row + requests[k, 2], capacity, strategy), capacity)
            if strategy == RATIO:
                score = shapes[shape, score]
            weighted += score * requests[k, 3]
            # As upstream: with RequestedToCapacityRatio, a resource that scores 0 has no weight.
            if strategy != RATIO or score > 0:
                weights += requests[k, 3]
        weights = max(weights, 1)
        # Upstream rounds halves up for this strategy, (2n + d) / 2d, and truncates for the others.
        if strategy == RATIO:
            weighted = 2 * weighted + weights
            weights = 2 * weights
        out[position] += plugin_weight * quotient(weighted, weights)


@inlined
def add_fit_in_chunk(fit: FitArrays, c: int, chunk: Chunk, out: I32) -> None:
    """Add the weighted score by LeastAllocated or MostAllocated to rows of a chunk.

    If the exact quotient of integers below 2**52 is below an integer, so is the quotient rounded to
    float64: truncating it gives the integer quotient.
    """
    requests, strategy, plugin_weight = fit.scored_requests[c], fit.score[c, 0], fit.score[c, 1]
    weighted, weights, size = chunk.score, chunk.weights, out.shape[0]
    weighted[:size] = 0.0
    weights[:size] = 0.0
    for k in range(requests.shape[0]):
        resource, column = requests[k, 0], requests[k, 1]
        if resource == END:
            break
        capacities = chunk.capacity[resource]
        on_rows = chunk.nonzero[column] if column >= 0 else chunk.requested[resource]
        of_pod, weight = np.float64(requests[k, 2]), np.float64(requests[k, 3])
        for position in range(size):
            capacity = capacities[position]
            dividend = _dividend(on_rows[position] + of_pod, capacity, strategy)
            score = np.float64(np.int32(dividend / max(capacity, 1.0)))
            # A resource that the node does not have has no weight, as upstream.
            row_weight = weight if capacity != 0.0 else 0.0
            weighted[position] += score * row_weight
            weights[position] += row_weight
    for position in range(size):
        mean = np.int32(weighted[position] / max(weights[position], 1.0))
        out[position] += np.int32(plugin_weight) * mean if out[position] != INFEASIBLE else 0

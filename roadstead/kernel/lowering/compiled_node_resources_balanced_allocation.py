"""The compiled part of NodeResourcesBalancedAllocation.

The score is 100 * (1 - standard deviation of the fractions in use of the resources). The loop over
single rows takes any number of resources; the loop over chunks at most two, without a branch.
"""

from __future__ import annotations

import math

import numpy as np

from roadstead.kernel.arrays import END, INFEASIBLE, Chunk, RowArrays
from roadstead.kernel.jit import inlined, internal
from roadstead.kernel.lowering.node_resources_balanced_allocation import BalancedArrays
from roadstead.nodes.columns import I32, I64


@inlined
def _fraction(requested: float, capacity: float) -> float:
    return min(float(requested) / max(float(capacity), 1.0), 1.0)


@inlined
def _score(deviation: float) -> np.int32:
    return np.int32((1.0 - deviation) * 100)


@internal
def add_balanced(table: RowArrays, balanced: BalancedArrays, c: int, rows: I64, out: I32) -> None:
    """Add the weighted score to the totals of feasible rows."""
    allocatable, requested = table.allocatable, table.requested
    requests, plugin_weight = balanced.scored_requests[c], balanced.weight[c]
    for position in range(rows.shape[0]):
        if out[position] == INFEASIBLE:
            continue
        row = rows[position]
        present, total, first, second = 0, 0.0, 0.0, 0.0
        for k in range(requests.shape[0]):
            resource = requests[k, 0]
            if resource == END:
                break
            capacity = allocatable[row, resource]
            # As upstream, a resource that the node does not offer does not count.
            if capacity == 0:
                continue
            fraction = _fraction(requested[row, resource] + requests[k, 1], capacity)
            first, second = (fraction, second) if present == 0 else (first, fraction)
            present += 1
            total += fraction
        deviation = 0.0
        # Upstream's formula for two fractions, whose rounding differs from that of the general
        # one.
        if present == 2:
            deviation = abs((first - second) / 2)
        elif present > 2:
            mean = total / float(present)
            squares = 0.0
            for k in range(requests.shape[0]):
                resource = requests[k, 0]
                if resource == END:
                    break
                capacity = allocatable[row, resource]
                if capacity != 0:
                    distance = _fraction(requested[row, resource] + requests[k, 1], capacity) - mean
                    squares += distance * distance
            deviation = math.sqrt(squares / float(present))
        out[position] += plugin_weight * _score(deviation)


@inlined
def add_balanced_in_chunk(balanced: BalancedArrays, c: int, chunk: Chunk, out: I32) -> None:
    """Add the weighted score of at most two resources to rows of a chunk."""
    requests, plugin_weight, size = balanced.scored_requests[c], balanced.weight[c], out.shape[0]
    first, second = chunk.first_fraction, chunk.second_fraction
    # float64[position], scratch: the number of these resources that the node offers.
    present = chunk.weights
    present[:size] = 0.0
    first[:size] = 0.0
    second[:size] = 0.0
    for k in range(requests.shape[0]):
        resource, of_pod = requests[k, 0], np.float64(requests[k, 1])
        if resource == END:
            break
        capacities, requested = chunk.capacity[resource], chunk.requested[resource]
        fractions = first if k == 0 else second
        for position in range(size):
            capacity = capacities[position]
            fractions[position] = _fraction(requested[position] + of_pod, capacity)
            present[position] += 1.0 if capacity != 0.0 else 0.0
    for position in range(size):
        deviation = (
            abs((first[position] - second[position]) / 2) if present[position] == 2.0 else 0.0
        )
        score = np.int32(plugin_weight) * _score(deviation)
        out[position] += score if out[position] != INFEASIBLE else 0

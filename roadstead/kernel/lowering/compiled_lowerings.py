"""Compiled evaluation of the plugins that read only the row itself: totals, and placed pods.

The arithmetic is in `compiled_<plugin>`, operation for operation that of the NumPy plugin: change
both together. Tests compare them.

A chunk is up to CHUNK rows at consecutive positions, across buckets: to compute the totals of all
rows, their amounts are copied chunk by chunk as float64 (`arrays.Chunk`). c: the class. out:
int32[index in rows], the totals of the given rows, or INFEASIBLE. requests[k]: column 0 is the
resource, END after the last one; the amount is in column 1 or, in `fit.scored_requests`, 2.
"""

from __future__ import annotations

from roadstead.kernel.arrays import END, INFEASIBLE, Chunk, RowArrays, Totals
from roadstead.kernel.jit import FLOAT_BOUND, inlined, internal
from roadstead.kernel.lowering.compiled_node_ports import (
    has_ports,
    occupy_ports,
    refuse_ports_in_chunk,
)
from roadstead.kernel.lowering.compiled_node_resources_balanced_allocation import (
    add_balanced,
    add_balanced_in_chunk,
)
from roadstead.kernel.lowering.compiled_node_resources_fit import (
    add_fit,
    add_fit_in_chunk,
    has_room,
    refuse_fit_in_chunk,
)
from roadstead.kernel.lowering.lowerings import ClassArrays
from roadstead.kernel.lowering.node_resources_fit import OFF, RATIO
from roadstead.nodes.columns import I32, I64

LARGEST = FLOAT_BOUND // 100
"""Amounts below this are computed exactly with float64: scores multiply them by 100."""


@inlined
def evaluate(
    table: RowArrays, class_arrays: ClassArrays, totals: Totals, c: int, rows: I64, out: I32
) -> None:
    """Write the totals of some rows to out, without the scores that need normalization."""
    passes, static = (
        totals.passes[class_arrays.static_index[c]],
        totals.static[class_arrays.static_index[c]],
    )
    requests, wanted = class_arrays.fit.filtered_requests[c], class_arrays.ports.requested[c]
    for index in range(rows.shape[0]):
        row = rows[index]
        position = table.position_of[row]
        fits = passes[position] and has_room(table, requests, row) and has_ports(table, wanted, row)
        out[index] = static[position] if fits else INFEASIBLE
    if class_arrays.fit.score[c, 0] != OFF:
        add_fit(table, class_arrays.fit, c, rows, out)
    if class_arrays.balanced.weight[c] >= 0:
        add_balanced(table, class_arrays.balanced, c, rows, out)


@inlined
def evaluate_chunk(
    table: RowArrays,
    class_arrays: ClassArrays,
    totals: Totals,
    c: int,
    start: int,
    rows: I64,
    chunk: Chunk,
    is_exact: bool,
    out: I32,
) -> None:
    """Write the same as `evaluate` for the rows of a chunk, whose first row is at position `start`.

    is_exact: whether float64 is exact for the chunk's amounts and the class's requests. If not, all
    is computed row by row with integers; so are always the scores without a function for chunks.
    """
    if not is_exact:
        evaluate(table, class_arrays, totals, c, rows, out)
        return
    passes, static = (
        totals.passes[class_arrays.static_index[c], start:],
        totals.static[class_arrays.static_index[c], start:],
    )
    for index in range(rows.shape[0]):
        out[index] = static[index] if chunk.accepts_pods[index] & passes[index] else INFEASIBLE
    refuse_fit_in_chunk(class_arrays.fit.filtered_requests[c], chunk, out)
    refuse_ports_in_chunk(table, class_arrays.ports.requested[c], rows, out)
    strategy = class_arrays.fit.score[c, 0]
    if strategy == RATIO:
        add_fit(table, class_arrays.fit, c, rows, out)
    elif strategy != OFF:
        add_fit_in_chunk(class_arrays.fit, c, chunk, out)
    if class_arrays.balanced.weight[c] >= 0:
        requests = class_arrays.balanced.scored_requests[c]
        # The function for chunks has the formula for at most two resources.
        if requests.shape[0] <= 2 or requests[2, 0] == END:
            add_balanced_in_chunk(class_arrays.balanced, c, chunk, out)
        else:
            add_balanced(table, class_arrays.balanced, c, rows, out)


@internal
def mark_used_resources(class_arrays: ClassArrays, classes: I64, chunk: Chunk) -> None:
    """Mark the resources that some classes request; only their amounts are copied to the chunk.

    There may be thousands of other resources.
    """
    for c in classes:
        for requests in (
            class_arrays.fit.filtered_requests[c],
            class_arrays.fit.scored_requests[c],
            class_arrays.balanced.scored_requests[c],
        ):
            for k in range(requests.shape[0]):
                if requests[k, 0] != END:
                    chunk.used_resources[requests[k, 0]] = True


@internal
def are_requests_exact(class_arrays: ClassArrays, c: int) -> bool:
    """Whether float64 is exact for all amounts that a class requests."""
    largest = 0
    for k in range(class_arrays.fit.filtered_requests.shape[1]):
        largest = max(largest, class_arrays.fit.filtered_requests[c, k, 1])
    for k in range(class_arrays.fit.scored_requests.shape[1]):
        largest = max(largest, class_arrays.fit.scored_requests[c, k, 2])
    for k in range(class_arrays.balanced.scored_requests.shape[1]):
        largest = max(largest, class_arrays.balanced.scored_requests[c, k, 1])
    return largest < LARGEST


@inlined
def place_pod(table: RowArrays, class_arrays: ClassArrays, c: int, row: int) -> None:
    """Count a pod of a class on a row."""
    requests = class_arrays.placed_requests[c]
    for k in range(requests.shape[0]):
        if requests[k, 0] == END:
            break
        table.requested[row, requests[k, 0]] += requests[k, 1]
    table.nonzero[row, 0] += class_arrays.nonzero[c, 0]
    table.nonzero[row, 1] += class_arrays.nonzero[c, 1]
    table.pod_count[row] += 1
    occupy_ports(table, class_arrays.ports, c, row)

"""Compiled evaluation of the plugins that read rows: totals of rows, and placed pods.

The arithmetic is in `compiled_<plugin>`, operation for operation that of the NumPy plugin: change
both together. Tests compare them.
"""

from __future__ import annotations

from roadstead.kernel.arrays import END, NOWHERE, Numbers, Piece, Totals
from roadstead.kernel.jit import EXACT, inlined, internal
from roadstead.kernel.lowering.compiled_node_ports import (
    block_ports,
    has_ports,
    refuse_ports_in_piece,
)
from roadstead.kernel.lowering.compiled_node_resources_balanced_allocation import (
    add_balanced,
    add_balanced_in_piece,
)
from roadstead.kernel.lowering.compiled_node_resources_fit import (
    add_fit,
    add_fit_in_piece,
    has_room,
    refuse_fit_in_piece,
)
from roadstead.kernel.lowering.lowerings import Specs
from roadstead.kernel.lowering.node_resources_fit import OFF, RATIO
from roadstead.nodes.columns import I32, I64

LARGEST = EXACT // 100
"""Amounts below this are computed exactly with float64: scores multiply them by 100."""


@inlined
def evaluate(numbers: Numbers, specs: Specs, totals: Totals, c: int, rows: I64, out: I32) -> None:
    """Compute totals of some rows without normalized scores: int32[rows], NOWHERE if infeasible."""
    passes, static = totals.passes[specs.static_index[c]], totals.static[specs.static_index[c]]
    wants, wanted = specs.fit.wants[c], specs.ports.wanted[c]
    for position in range(rows.shape[0]):
        row = rows[position]
        at = numbers.position_of[row]
        fits = passes[at] and has_room(numbers, wants, row) and has_ports(numbers, wanted, row)
        out[position] = static[at] if fits else NOWHERE
    if specs.fit.score[c, 0] != OFF:
        add_fit(numbers, specs.fit, c, rows, out)
    if specs.balanced.weight[c] >= 0:
        add_balanced(numbers, specs.balanced, c, rows, out)


@inlined
def evaluate_piece(
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
    """Compute the same as `evaluate` for a piece from position `start` on.

    is_small: float64 is exact for its amounts and requests. Otherwise, and for scores that have no
    loop over pieces, single rows are computed with integers.
    """
    if not is_small:
        evaluate(numbers, specs, totals, c, rows, out)
        return
    passes, static = (
        totals.passes[specs.static_index[c], start:],
        totals.static[specs.static_index[c], start:],
    )
    for position in range(rows.shape[0]):
        out[position] = static[position] if piece.has_room[position] & passes[position] else NOWHERE
    refuse_fit_in_piece(specs.fit.wants[c], piece, out)
    refuse_ports_in_piece(numbers, specs.ports.wanted[c], rows, out)
    strategy = specs.fit.score[c, 0]
    if strategy == RATIO:
        add_fit(numbers, specs.fit, c, rows, out)
    elif strategy != OFF:
        add_fit_in_piece(specs.fit, c, piece, out)
    if specs.balanced.weight[c] >= 0:
        requests = specs.balanced.scored_requests[c]
        if requests.shape[0] <= 2 or requests[2, 0] == END:
            add_balanced_in_piece(specs.balanced, c, piece, out)
        else:
            add_balanced(numbers, specs.balanced, c, rows, out)


@internal
def mark_used(specs: Specs, classes: I64, piece: Piece) -> None:
    """Mark the resources that some classes use: a fleet may have thousands."""
    for c in classes:
        for requests in (
            specs.fit.wants[c],
            specs.fit.scored_requests[c],
            specs.balanced.scored_requests[c],
        ):
            for k in range(requests.shape[0]):
                if requests[k, 0] != END:
                    piece.in_use[requests[k, 0]] = True


@internal
def is_small(specs: Specs, c: int) -> bool:
    """Whether float64 is exact for all amounts that a class requests."""
    largest = 0
    for k in range(specs.fit.wants.shape[1]):
        largest = max(largest, specs.fit.wants[c, k, 1])
    for k in range(specs.fit.scored_requests.shape[1]):
        largest = max(largest, specs.fit.scored_requests[c, k, 2])
    for k in range(specs.balanced.scored_requests.shape[1]):
        largest = max(largest, specs.balanced.scored_requests[c, k, 1])
    return largest < LARGEST


@inlined
def place_pod(numbers: Numbers, specs: Specs, c: int, row: int) -> None:
    """Count a pod of a class on a row."""
    adds = specs.adds[c]
    for k in range(adds.shape[0]):
        if adds[k, 0] == END:
            break
        numbers.requested[row, adds[k, 0]] += adds[k, 1]
    numbers.nonzero[row, 0] += specs.nonzero[c, 0]
    numbers.nonzero[row, 1] += specs.nonzero[c, 1]
    numbers.pod_count[row] += 1
    block_ports(numbers, specs.ports, c, row)

"""The compiled part of NodePorts: which ports are in use on a row."""

from __future__ import annotations

from roadstead.kernel.arrays import END, NOWHERE, Numbers
from roadstead.kernel.jit import inlined
from roadstead.kernel.lowering.node_ports import PortArrays
from roadstead.nodes.columns import I32, I64


@inlined
def has_ports(numbers: Numbers, wanted: I64, row: int) -> bool:
    """Whether all requested ports are free on a row."""
    fits = True
    for k in range(wanted.shape[0]):
        if wanted[k] == END or not fits:
            break
        fits = not numbers.blocked[row, wanted[k]]
    return fits


@inlined
def refuse_ports_in_piece(numbers: Numbers, wanted: I64, rows: I64, out: I32) -> None:
    """Write NOWHERE for rows of a piece on which a requested port is in use."""
    for k in range(wanted.shape[0]):
        if wanted[k] == END:
            break
        for position in range(out.shape[0]):
            out[position] = NOWHERE if numbers.blocked[rows[position], wanted[k]] else out[position]


@inlined
def block_ports(numbers: Numbers, ports: PortArrays, c: int, row: int) -> None:
    """Block the ports of a placed pod on its row."""
    wanted = ports.wanted[c]
    for k in range(wanted.shape[0]):
        if wanted[k] == END:
            break
        for other in range(ports.conflicts.shape[1]):
            if ports.conflicts[wanted[k], other]:
                numbers.blocked[row, other] = True

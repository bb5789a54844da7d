"""The compiled part of NodePorts: which ports are in use on a row."""

from __future__ import annotations

from roadstead.kernel.arrays import END, INFEASIBLE, RowArrays
from roadstead.kernel.jit import inlined
from roadstead.kernel.lowering.node_ports import PortArrays
from roadstead.nodes.columns import I32, I64


@inlined
def has_ports(table: RowArrays, requested_ports: I64, row: int) -> bool:
    """Whether all requested ports are free on a row."""
    fits = True
    for k in range(requested_ports.shape[0]):
        if requested_ports[k] == END or not fits:
            break
        fits = not table.ports_in_use[row, requested_ports[k]]
    return fits


@inlined
def refuse_ports_in_chunk(table: RowArrays, requested_ports: I64, rows: I64, out: I32) -> None:
    """Write INFEASIBLE for rows of a chunk on which a requested port is in use."""
    for k in range(requested_ports.shape[0]):
        if requested_ports[k] == END:
            break
        for position in range(out.shape[0]):
            out[position] = (
                INFEASIBLE
                if table.ports_in_use[rows[position], requested_ports[k]]
                else out[position]
            )


@inlined
def occupy_ports(table: RowArrays, ports: PortArrays, c: int, row: int) -> None:
    """Block the ports of a placed pod on its row."""
    requested_ports = ports.requested[c]
    for k in range(requested_ports.shape[0]):
        if requested_ports[k] == END:
            break
        for other in range(ports.conflicts.shape[1]):
            if ports.conflicts[requested_ports[k], other]:
                table.ports_in_use[row, other] = True

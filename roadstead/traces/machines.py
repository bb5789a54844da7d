"""Sizes of machines that a published trace does not state."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.fleet.trace_reader import NODES_MAX
from roadstead.protocol.errors import InputError
from roadstead.traces.sink import TraceSink

GIB_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """The size of all machines; if a trace states fractions of a machine, the size of that machine.

    count: None for the number that the trace states, if it does.
    """

    cpu_milli: int = 64_000
    memory_bytes: int = 256 * GIB_BYTES
    count: int | None = None


def add_machines(
    sink: TraceSink, prefix: str, count: int, allocatable: dict[str, int], zones: int = 1
) -> None:
    """Add equal nodes, assigned to zones round robin; InputError if there are too many."""
    # Before any is added: a trace of a few bytes may state the number of nodes.
    if count > NODES_MAX:
        raise InputError(f"has more than {NODES_MAX} nodes")
    digits = len(str(max(count - 1, 0)))
    for index in range(count):
        sink.add_node(f"{prefix}-{index:0{digits}}", allocatable, zone=f"zone-{index % zones}")
    if not count:
        sink.notes.append("the trace has no nodes; give their number with --nodes")

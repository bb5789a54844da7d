"""The sums over the pods of each row: requests, number of pods and ports in use.

The mapping from pod classes to numbers (`Columns.pods`) is not changed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.nodes.columns import Columns
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.ports import port_counts, ports_in_use


def count_on_row(
    columns: Columns, row: int, pod_class: PodClass, change: int, ports_as_set: bool
) -> None:
    """Add pods of a class to the sums of a row or, with a negative change, subtract them.

    ports_as_set: as in `NodeTable`.
    """
    if pod_class.is_large:
        # Whole arrays wrap around, as integers in Go do; single numbers raise OverflowError.
        count_on_rows(columns, [row], pod_class, [change], ports_as_set)
        return
    if len(columns.requested) < len(columns.classes.resources):
        columns.fit_resources()
    # One number at a time: for a few numbers, vectorized NumPy takes four times as long.
    requested, nonzero = columns.requested, columns.nonzero_requested
    for code, amount in pod_class.coded_requests:
        requested[code, row] += change * amount
    nonzero[0, row] += change * pod_class.facts.nonzero_cpu_milli
    nonzero[1, row] += change * pod_class.facts.nonzero_memory_bytes
    columns.pod_count[row] += change
    columns.count_class(pod_class, change)
    if pod_class.facts.host_ports:
        _count_ports(columns, row, pod_class, change, ports_as_set)


def count_on_rows(
    columns: Columns,
    on: Sequence[int],
    pod_class: PodClass,
    changes: Sequence[int],
    ports_as_set: bool,
) -> None:
    """Do `count_on_row` for changes[i] pods on row on[i], for each i; rows may repeat."""
    # `np.add.at`, because `+=` on repeated rows would add only once.
    rows, change = np.array(on, np.intp), np.array(changes, np.int64)
    if pod_class.facts.host_ports:
        for row, each in zip(on, changes, strict=True):
            _count_ports(columns, row, pod_class, each, ports_as_set)
    if len(columns.requested) < len(columns.classes.resources):
        columns.fit_resources()
    for code, amount in pod_class.coded_requests:
        np.add.at(columns.requested[code], rows, change * amount)
    np.add.at(columns.nonzero_requested[0], rows, change * pod_class.facts.nonzero_cpu_milli)
    np.add.at(columns.nonzero_requested[1], rows, change * pod_class.facts.nonzero_memory_bytes)
    np.add.at(columns.pod_count, rows, change)
    columns.count_class(pod_class, sum(changes))


def _count_ports(
    columns: Columns, row: int, pod_class: PodClass, change: int, ports_as_set: bool
) -> None:
    ports = dict(columns.port_sets.values[columns.port_set[row]])
    count = ports_in_use if ports_as_set else port_counts
    columns.port_set[row] = columns.port_sets.code(count(ports, pod_class.facts.host_ports, change))

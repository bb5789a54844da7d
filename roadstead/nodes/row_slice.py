"""Rows of a table on their way to another process.

A `RowSlice` is numbers, as the bytes of their columns: all that most plugins read of a candidate.
A `NodeSlice` is whole nodes with the classes on them, for profiles whose plugins read those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts
from roadstead.nodes.columns import Columns
from roadstead.nodes.pod_info import PodClasses, PodInfo
from roadstead.nodes.pods_on_row import NO_PODS
from roadstead.nodes.table import NodeTable, Rows


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Rows by name.

    resources: names of the lines of `allocatable` and `requested` (int64[resource, row], C order).
    nonzero_requested: int64[2, row]. allocatable_pods, pod_count: int64[row].
    name_hashes: uint64[row].
    ports: (row, ports in use) of rows that have any, ports as (ip, protocol, port, pods).
    """

    names: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: bytes
    requested: bytes
    nonzero_requested: bytes
    allocatable_pods: bytes
    pod_count: bytes
    name_hashes: bytes
    ports: tuple[tuple[int, tuple[tuple[str, str, int, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class NodeSlice:
    """Whole nodes. pods: per node (index into `classes`, how many)."""

    nodes: tuple[NodeFacts, ...]
    classes: tuple[PodFacts, ...]
    pods: tuple[tuple[tuple[int, int], ...], ...]


def cut(table: NodeTable, rows: Rows) -> RowSlice:
    """The numbers of some rows."""
    columns = table.columns
    ports = []
    for place in np.flatnonzero(columns.port_set[rows]).tolist():
        in_use = columns.port_sets.values[columns.port_set[rows[place]]]
        ports.append((place, tuple((p.ip, p.protocol, p.port, count) for p, count in in_use)))
    return RowSlice(
        names=tuple(columns.names[row] for row in rows.tolist()),
        resources=tuple(columns.classes.resources.values[: len(columns.allocatable)]),
        allocatable=columns.allocatable[:, rows].tobytes(),
        requested=columns.requested[:, rows].tobytes(),
        nonzero_requested=columns.nonzero_requested[:, rows].tobytes(),
        allocatable_pods=columns.allocatable_pods[rows].tobytes(),
        pod_count=columns.pod_count[rows].tobytes(),
        name_hashes=columns.name_hash[rows].tobytes(),
        ports=tuple(ports),
    )


def join(slices: Sequence[RowSlice | NodeSlice], classes: PodClasses) -> NodeTable:
    """One table of all slices' rows, in their order. Rows of a RowSlice have numbers only."""
    table = NodeTable(classes)
    for each in slices:
        if isinstance(each, NodeSlice):
            _add_nodes(table, each)
        else:
            _add_rows(table, each)
    table.index_names()
    return table


def _add_nodes(table: NodeTable, each: NodeSlice) -> None:
    infos = [table.classes.info(facts) for facts in each.classes]
    for facts, pods in zip(each.nodes, each.pods, strict=True):
        table.add_node(facts)
        for index, count in pods:
            table.add_pod(facts.name, infos[index], count)


def _add_rows(table: NodeTable, each: RowSlice) -> None:
    columns = table.columns
    lines = [table.classes.resources.code(name) for name in each.resources]
    columns.fit_resources()
    columns.fit_rows(columns.size + len(each.names))
    start = columns.size
    _place(columns, start, each, lines)
    columns.size += len(each.names)
    columns.put_hashes(start, np.frombuffer(each.name_hashes, np.uint64))


def _place(columns: Columns, start: int, each: RowSlice, lines: list[int]) -> None:
    rows = len(each.names)
    here = slice(start, start + rows)
    shape = (len(each.resources), rows)
    columns.allocatable[lines, here] = np.frombuffer(each.allocatable, np.int64).reshape(shape)
    columns.requested[lines, here] = np.frombuffer(each.requested, np.int64).reshape(shape)
    nonzero = np.frombuffer(each.nonzero_requested, np.int64).reshape(2, rows)
    columns.nonzero_requested[:, here] = nonzero
    columns.allocatable_pods[here] = np.frombuffer(each.allocatable_pods, np.int64)
    columns.pod_count[here] = np.frombuffer(each.pod_count, np.int64)
    for place, ports in each.ports:
        in_use = tuple((HostPort(ip, protocol, port), n) for ip, protocol, port, n in ports)
        columns.port_set[start + place] = columns.port_sets.code(in_use)
    columns.names.extend(each.names)
    columns.facts.extend(NodeFacts(name) for name in each.names)
    columns.pods.extend([NO_PODS] * rows)


def cut_nodes(table: NodeTable, rows: Rows) -> NodeSlice:
    """Some rows as whole nodes."""
    index_of: dict[PodInfo, int] = {}
    pods = tuple(
        tuple((index_of.setdefault(info, len(index_of)), n) for info, n in table.pods(row).items())
        for row in rows.tolist()
    )
    nodes = tuple(table.facts(row) for row in rows.tolist())
    return NodeSlice(nodes, tuple(info.facts for info in index_of), pods)

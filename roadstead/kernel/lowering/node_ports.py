"""NodePorts as arrays: the host ports that classes request, each with a column of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roadstead.kernel.arrays import padded
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows
from roadstead.plugins.node_ports import conflicts


class PortArrays(NamedTuple):
    """requested: int64[class, k], columns of `ports_in_use`. conflicts: bool[port, port]."""

    requested: I64
    conflicts: Bools


class RequestedPorts:
    """The host ports of some classes."""

    def __init__(self, pods: Sequence[PodClass]) -> None:
        self._of_pods = [pod.facts.host_ports for pod in pods]
        self._ports = tuple(dict.fromkeys(port for ports in self._of_pods for port in ports))

    def lay_out(self) -> PortArrays:
        ports = self._ports
        index_of = {port: index for index, port in enumerate(ports)}
        requested = padded([[(index_of[port],) for port in each] for each in self._of_pods], 1)
        in_conflict = [[conflicts((one,), ((other, 1),)) for other in ports] for one in ports]
        return PortArrays(
            requested=requested.squeeze(2),
            conflicts=np.array(in_conflict, dtype=np.bool_).reshape(len(ports), len(ports)),
        )

    def ports_in_use(self, table: NodeTable, rows: Rows) -> Bools:
        """Whether a requested port is in use: bool[rows, port], at least one column."""
        ports = self._ports
        ports_in_use = np.zeros((len(rows), max(1, len(ports))), dtype=np.bool_)
        if ports:
            sets = table.columns.port_set[rows]
            for code in np.unique(sets).tolist():
                in_use = table.port_sets[code]
                ports_in_use[sets == code, : len(ports)] = [conflicts((p,), in_use) for p in ports]
        return ports_in_use

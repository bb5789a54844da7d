"""KnownNodes: the nodes of a table by name, as a mapping that builds each node on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.nodes.table import NodeTable


class KnownNodes(Mapping[str, NodeFacts]):
    """A view of a table that has all nodes of its cluster, in order of arrival."""

    __slots__ = ("_table",)

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def __contains__(self, name: object) -> bool:
        return name in self._table._row_of

    def __getitem__(self, name: str) -> NodeFacts:
        return self._table.columns.node(self._table._row_of[name])

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        names = self._table.columns.names
        for row in np.argsort(self._table.arrivals, kind="stable").tolist():
            yield names[row]

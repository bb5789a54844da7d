"""OfferedResources: the nodes whose allocatable lists a resource, if only with an amount of 0.

A table's column has 0 also for nodes without the resource, so their facts are read where it has 0.
"""

from __future__ import annotations

import numpy as np

from roadstead.nodes.columns import Bools, Columns
from roadstead.nodes.table import Table

NAMES_MAX = 64
"""Number of resources for which the nodes that offer them are cached."""


class OfferedResources:
    """A cache for all nodes of the table that was used last, until its nodes change."""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._node_version = -1
        # By resource, which nodes offer it: bool[row of the columns].
        self._offers: dict[str, Bools] = {}

    def offering(self, table: Table, name: str) -> Bools:
        """Return which nodes offer a resource: bool[row]."""
        columns = table.columns
        is_current = columns is self._columns and table.node_version == self._node_version
        cached = self._offers.get(name) if is_current else None
        if cached is not None:
            return cached[table.row_index]
        offers = _offering(table, name)
        if len(table) == columns.size:
            if not is_current or len(self._offers) >= NAMES_MAX:
                self._offers.clear()
            self._columns, self._node_version = columns, table.node_version
            by_row = np.zeros(columns.size, np.bool_)
            by_row[table.row_index] = offers
            self._offers[name] = by_row
        return offers


def _offering(table: Table, name: str) -> Bools:
    offers: Bools = table.allocatable(table.resource_code(name)) != 0
    for row in np.flatnonzero(~offers).tolist():
        offers[row] = any(name == each for each, _ in table.facts(row).allocatable)
    return offers

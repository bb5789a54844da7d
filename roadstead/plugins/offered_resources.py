"""Nodes that have a resource in their allocatable, be it an amount of 0.

A table's columns have 0 also for nodes without the resource, so facts are read where a column has
0.
"""

from __future__ import annotations

import numpy as np

from roadstead.nodes.columns import Bools, Columns
from roadstead.nodes.table import Table

NAMES_MAX = 64
"""Number of resources whose answers are cached."""


class OfferedResources:
    """Cache the answers for all nodes of the table that was used last, until its nodes change."""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._node_version = -1
        # By resource: bool[row of the columns].
        self._known: dict[str, Bools] = {}

    def offering(self, table: Table, name: str) -> Bools:
        """Return which nodes offer a resource: bool[row]."""
        columns = table.columns
        is_current = columns is self._columns and table.node_version == self._node_version
        known = self._known.get(name) if is_current else None
        if known is not None:
            return known[table.row_index]
        found = _offering(table, name)
        if len(table) == columns.size:
            if not is_current or len(self._known) >= NAMES_MAX:
                self._known.clear()
            self._columns, self._node_version = columns, table.node_version
            by_row = np.zeros(columns.size, np.bool_)
            by_row[table.row_index] = found
            self._known[name] = by_row
        return found


def _offering(table: Table, name: str) -> Bools:
    offers: Bools = table.allocatable(table.resource_code(name)) != 0
    for row in np.flatnonzero(~offers).tolist():
        offers[row] = any(name == each for each, _ in table.facts(row).allocatable)
    return offers

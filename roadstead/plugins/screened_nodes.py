"""The numbers of a table's nodes in the screen.

The screen (`NodeScreen`) numbers the nodes whose devices can be allocated. For many of them it
answers without a search whether they have devices for some claims.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.devices.pools import Labels
from roadstead.devices.screen import NodeScreen
from roadstead.facts.node import NodeFacts
from roadstead.nodes.columns import Columns
from roadstead.nodes.table import Table


class ScreenedNodes:
    """Put the nodes of tables into a screen, and cache the numbers that it gives them.

    The cache is for the columns of one table of all nodes, the most recently used one. Nodes that
    are no longer in these columns are removed from the screen, which may give their numbers to
    other nodes; `NodeScreen.removals` counts them.
    """

    def __init__(self, screen: NodeScreen) -> None:
        self._screen = screen
        self._columns: Columns | None = None
        self._names: list[str] = []
        self._numbers: NDArray[np.intp] = np.zeros(0, np.intp)
        # `_numbers` as a list, which is read faster in a loop.
        self._number_list: list[int] = []
        # Number → row of the columns.
        self._row_of: dict[int, int] = {}
        # The table's `node_version` and `NodeScreen.removals` for which the numbers are valid.
        self._valid_for = (-1, -1)
        # By row of columns that are not cached: the node's class (facts without its name), its
        # name, and its labels.
        self._labels: dict[int, tuple[NodeFacts, str, Labels]] = {}

    def number(self, table: Table, row: int) -> int:
        """Return the number of the node of one row of the columns."""
        if self._is_cached(table):
            return int(self._numbers[row])
        columns = table.columns
        facts, name = columns.facts[row], columns.names[row]
        cached = self._labels.get(row)
        if cached is None or cached[0] is not facts or cached[1] != name:
            # `columns.node` composes a node's facts anew at each call.
            cached = self._labels[row] = facts, name, columns.node(row).labels
        return self._screen.put(name, cached[2])

    def numbers(self, table: Table) -> NDArray[np.intp]:
        """Return the number of each row's node: intp[row]."""
        columns, rows = table.columns, table.row_index
        if self._is_cached(table):
            return self._numbers[rows]
        if len(rows) < columns.size or columns.size < len(self._names) // 2:
            # A view of some rows, or a copy of some: keep the cache, which will be used again.
            return self._put(columns, rows.tolist())
        for name in set(self._names).difference(columns.names):
            self._screen.remove(name)
        self._columns, self._names = columns, columns.names.copy()
        self._numbers = self._put(columns, range(columns.size))
        self._number_list = self._numbers.tolist()
        self._row_of = {number: row for row, number in enumerate(self._number_list)}
        self._valid_for = table.node_version, self._screen.removals
        return self._numbers[rows]

    def numbers_of(self, table: Table, rows: Sequence[int]) -> list[int] | None:
        """Return the numbers of a few rows of a whole table; None if they are not known."""
        if not self._is_cached(table):
            return None
        numbers = self._number_list
        return [numbers[row] for row in rows]

    def rows_since(self, table: Table, position: int) -> tuple[list[int] | None, int]:
        """Return the rows whose nodes may have other verdicts, and a position for the next call.

        table: of all nodes. position: in the screen's log of changes (`NodeScreen.changes`),
        returned by the last call. None instead of rows: any row may have changed.
        """
        if not self._is_cached(table):
            self.numbers(table)
        changes = self._screen.changes
        changed = changes.since(position)
        if changed is None or not self._is_cached(table):
            return None, changes.end
        row_of = self._row_of
        return [row_of[number] for number in {*changed} if number in row_of], changes.end

    def _is_cached(self, table: Table) -> bool:
        """Whether the numbers of all rows of a table's columns are cached and valid."""
        valid_for = table.node_version, self._screen.removals
        return table.columns is self._columns and self._valid_for == valid_for

    def _put(self, columns: Columns, rows: range | list[int]) -> NDArray[np.intp]:
        nodes = map(columns.node, rows)
        return self._screen.numbers((each.name, each.labels) for each in nodes)

"""What plugins read of a node table: columns over rows = nodes, through a row index or whole.

A `Table` is a view: `view(rows)` sees the same columns through other rows, without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from roadstead.nodes.columns import I32, I64, Bools, Columns, PortSet
from roadstead.nodes.labels import match_requirement, match_term
from roadstead.nodes.pod_class import PodClass

Rows = NDArray[np.intp]


class Table:
    """Columns as a plugin reads them. `rows` of None means every row of the columns."""

    __slots__ = ("_rows", "columns")

    def __init__(self, columns: Columns, rows: Rows | None = None) -> None:
        self.columns = columns
        self._rows = rows

    def __len__(self) -> int:
        return self.columns.size if self._rows is None else len(self._rows)

    def _line(self, column: I64) -> I64:
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    def _codes(self, column: I32) -> I32:
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    @property
    def row_index(self) -> Rows:
        """The rows of `columns` that this table shows, for what is kept beside the columns."""
        return np.arange(self.columns.size) if self._rows is None else self._rows

    @property
    def names(self) -> list[str]:
        """Node names, one per row."""
        names = self.columns.names
        return names if self._rows is None else [names[row] for row in self._rows]

    def allocatable(self, resource: int) -> I64:
        """Allocatable of a resource code: int64[row]; 0 where the node has none."""
        return self._resource_line(self.columns.allocatable, resource)

    def requested(self, resource: int) -> I64:
        """What the pods on the node request of a resource code: int64[row]."""
        return self._resource_line(self.columns.requested, resource)

    def _resource_line(self, matrix: I64, resource: int) -> I64:
        if resource >= len(matrix):
            return np.zeros(len(self), dtype=np.int64)
        return self._line(matrix[resource])

    def resource_code(self, name: str) -> int:
        """The code of a resource name (known to every table of the process)."""
        return self.columns.classes.resources.code(name)

    @property
    def resource_names(self) -> list[str]:
        return self.columns.classes.resources.values

    def nonzero_requested(self, resource: int) -> I64:
        """Requests as scoring counts them, for cpu (0) and memory (1): int64[row]."""
        return self._line(self.columns.nonzero_requested[resource])

    @property
    def pod_count(self) -> I64:
        return self._line(self.columns.pod_count)

    @property
    def allocatable_pods(self) -> I64:
        return self._line(self.columns.allocatable_pods)

    @property
    def unschedulable(self) -> Bools:
        column = self.columns.unschedulable
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    @property
    def name_hashes(self) -> NDArray[np.uint64]:
        column = self.columns.name_hash
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    @property
    def zone_codes(self) -> I32:
        """Codes of `zones`: int32[row]."""
        return self._codes(self.columns.zone)

    @property
    def zones(self) -> list[str]:
        return self.columns.zones.values

    @property
    def taint_codes(self) -> I32:
        """Codes of `taint_sets`: int32[row]."""
        return self._codes(self.columns.taint_set)

    @property
    def taint_sets(self) -> list[tuple[Taint, ...]]:
        return self.columns.taint_sets.values

    @property
    def image_codes(self) -> I32:
        """Codes of `image_sets`: int32[row]."""
        return self._codes(self.columns.image_set)

    @property
    def image_sets(self) -> list[tuple[tuple[str, int], ...]]:
        return self.columns.image_sets.values

    @property
    def arrivals(self) -> I64:
        """Place of each node in the order in which nodes came to the cluster: int64[row]."""
        return self._line(self.columns.arrival)

    @property
    def snapshot_at(self) -> I64:
        """How many nodes had come when a row was last snapshotted: int64[row]."""
        return self._line(self.columns.snapshot_at)

    @property
    def port_codes(self) -> I32:
        """Codes of `port_sets`: int32[row]."""
        return self._codes(self.columns.port_set)

    @property
    def port_sets(self) -> list[PortSet]:
        return self.columns.port_sets.values

    def match(self, requirement: Requirement) -> Bools:
        """Rows whose labels satisfy a requirement: bool[row]."""
        column = self.columns.label(requirement.key)
        return match_requirement(
            requirement.key, requirement, column.values, self._codes(column.codes)
        )

    def match_term(self, term: NodeSelectorTerm) -> Bools:
        """Rows that satisfy a node selector term: bool[row]."""
        return match_term(term, self.match, self.names)

    def facts(self, row: int) -> NodeFacts:
        """The node itself, for what no column holds."""
        return self.columns.node(row if self._rows is None else int(self._rows[row]))

    def pods(self, row: int) -> Mapping[PodClass, int]:
        """The classes on a node and how many pods of each."""
        return self.columns.pods[row if self._rows is None else self._rows[row]]

    @property
    def class_counts(self) -> Mapping[PodClass, int]:
        """How many pods of each class are on all nodes of the columns (a view's included)."""
        return self.columns.class_counts

    def view(self, rows: Rows) -> Table:
        """The same columns seen through `rows` (indices into this table)."""
        return Table(self.columns, rows if self._rows is None else self._rows[rows])

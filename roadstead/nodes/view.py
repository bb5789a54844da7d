"""The read interface of a node table for plugins: columns with one row per node.

A `Table` shows all rows, or those of an index: `view(rows)` shows the same columns without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from roadstead.nodes.columns import I32, I64, Bools, Columns, PortSet
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.labels import match_requirement, match_term
from roadstead.nodes.pod_class import PodClass

Rows = NDArray[np.intp]
"""Rows of a table: int[k]."""


class Table:
    """The columns that a plugin reads. `rows` of None means every row of the columns."""

    __slots__ = ("_rows", "columns")

    def __init__(self, columns: Columns, rows: Rows | None = None) -> None:
        self.columns = columns
        self._rows = rows

    def __len__(self) -> int:
        return self.columns.size if self._rows is None else len(self._rows)

    @property
    def node_version(self) -> int:
        """Version of the nodes (not pods) of the columns; copies have their own."""
        return self.columns.node_version

    def _int_column(self, column: I64) -> I64:
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    def _codes(self, column: I32) -> I32:
        return column[: self.columns.size] if self._rows is None else column[self._rows]

    @property
    def row_index(self) -> Rows:
        """The rows of `columns` that this table shows, to index arrays outside the columns."""
        return np.arange(self.columns.size) if self._rows is None else self._rows

    @property
    def names(self) -> list[str]:
        """Node names, one per row."""
        names = self.columns.names
        return names if self._rows is None else [names[row] for row in self._rows]

    def allocatable(self, resource: int) -> I64:
        """Return the allocatable amount of a resource code: int64[row]; 0 for none."""
        return self._resource_column(self.columns.allocatable, resource)

    def requested(self, resource: int) -> I64:
        """Return the amount of a resource code that the pods on each node request: int64[row]."""
        return self._resource_column(self.columns.requested, resource)

    def _resource_column(self, matrix: I64, resource: int) -> I64:
        if resource >= len(matrix):
            return np.zeros(len(self), dtype=np.int64)
        return self._int_column(matrix[resource])

    def resource_code(self, name: str) -> int:
        """Return the code of a resource name, the same in every table of the process."""
        return self.columns.classes.resources.code(name)

    @property
    def resource_names(self) -> list[str]:
        return self.columns.classes.resources.values

    def nonzero_requested(self, resource: int) -> I64:
        """Return requests as scoring counts them, for cpu (0) and memory (1): int64[row]."""
        return self._int_column(self.columns.nonzero_requested[resource])

    @property
    def pod_count(self) -> I64:
        return self._int_column(self.columns.pod_count)

    @property
    def allocatable_pods(self) -> I64:
        return self._int_column(self.columns.allocatable_pods)

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
        """Position of each node in the order of arrival in the cluster: int64[row]."""
        return self._int_column(self.columns.arrival)

    @property
    def snapshot_at(self) -> I64:
        """Number of nodes that had arrived at the row's last snapshot: int64[row]."""
        return self._int_column(self.columns.snapshot_at)

    @property
    def port_codes(self) -> I32:
        """Codes of `port_sets`: int32[row]."""
        return self._codes(self.columns.port_set)

    @property
    def port_sets(self) -> list[PortSet]:
        return self.columns.port_sets.values

    def label_values(self, key: str) -> CodeInterner[str]:
        """Return the values of a label, with their codes in `label_codes`."""
        return self.columns.label(key).values

    def label_codes(self, key: str) -> I32:
        """Return the code of each node's value of a label: int32[row], -1 if the node lacks it."""
        return self._codes(self.columns.label(key).codes)

    def match(self, requirement: Requirement) -> Bools:
        """Return which rows' labels satisfy a requirement: bool[row]."""
        column = self.columns.label(requirement.key)
        return match_requirement(requirement, column.values, self._codes(column.codes))

    def match_term(self, term: NodeSelectorTerm) -> Bools:
        """Return which rows satisfy a node selector term: bool[row]."""
        return match_term(term, self.match, self.names)

    def facts(self, row: int) -> NodeFacts:
        """Return the facts of a node, for data that is in no column."""
        return self.columns.node(row if self._rows is None else int(self._rows[row]))

    def pods(self, row: int) -> Mapping[PodClass, int]:
        """Return the pod classes on a node and the number of pods of each."""
        return self.columns.pods[row if self._rows is None else self._rows[row]]

    @property
    def class_counts(self) -> Mapping[PodClass, int]:
        """Number of pods of each class on all nodes of the columns, not only on a view's rows."""
        return self.columns.class_counts

    def view(self, rows: Rows) -> Table:
        """Return a view of some rows, given as indices into this table; columns are not copied."""
        return Table(self.columns, rows if self._rows is None else self._rows[rows])

"""The read interface of a node table for plugins: columns with one row per node.

A `Table` shows all rows of its columns or, as a view, some of them: `view(rows)` copies nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from roadstead.nodes.columns import I32, I64, Bools, Columns, PortSet
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.labels import match_requirement, match_term
from roadstead.nodes.pod_class import PodClass

Scalar = TypeVar("Scalar", bound=np.generic)

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

    def _shown(self, column: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the values of the rows that this table shows."""
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
        return self._shown(matrix[resource])

    def resource_code(self, name: str) -> int:
        """Return the code of a resource name, the same in every table of the process."""
        return self.columns.classes.resources.code(name)

    @property
    def resource_names(self) -> list[str]:
        return self.columns.classes.resources.values

    def nonzero_requested(self, resource: int) -> I64:
        """Return requests as scoring counts them, for cpu (0) and memory (1): int64[row]."""
        return self._shown(self.columns.nonzero_requested[resource])

    @property
    def pod_count(self) -> I64:
        return self._shown(self.columns.pod_count)

    @property
    def allocatable_pods(self) -> I64:
        return self._shown(self.columns.allocatable_pods)

    @property
    def unschedulable(self) -> Bools:
        return self._shown(self.columns.unschedulable)

    @property
    def name_hashes(self) -> NDArray[np.uint64]:
        return self._shown(self.columns.name_hash)

    @property
    def zone_codes(self) -> I32:
        """Codes of `zones`: int32[row]."""
        return self._shown(self.columns.zone)

    @property
    def zones(self) -> list[str]:
        return self.columns.zones.values

    @property
    def taint_codes(self) -> I32:
        """Codes of `taint_sets`: int32[row]."""
        return self._shown(self.columns.taint_set)

    @property
    def taint_sets(self) -> list[tuple[Taint, ...]]:
        return self.columns.taint_sets.values

    @property
    def image_codes(self) -> I32:
        """Codes of `image_sets`: int32[row]."""
        return self._shown(self.columns.image_set)

    @property
    def image_sets(self) -> list[tuple[tuple[str, int], ...]]:
        """Sets of (image name, size in bytes)."""
        return self.columns.image_sets.values

    @property
    def arrivals(self) -> I64:
        """Position of each node in the order of arrival in the cluster: int64[row]."""
        return self._shown(self.columns.arrival)

    @property
    def snapshot_at(self) -> I64:
        """Number of nodes that had arrived at the row's last snapshot: int64[row]."""
        return self._shown(self.columns.snapshot_at)

    @property
    def port_codes(self) -> I32:
        """Codes of `port_sets`: int32[row]."""
        return self._shown(self.columns.port_set)

    @property
    def port_sets(self) -> list[PortSet]:
        return self.columns.port_sets.values

    def label_values(self, key: str) -> CodeInterner[str]:
        """Return the values of a label, with their codes in `label_codes`."""
        return self.columns.label(key).values

    def label_codes(self, key: str) -> I32:
        """Return the code of each node's value of a label: int32[row], -1 if the node lacks it."""
        return self._shown(self.columns.label(key).codes)

    def match(self, requirement: Requirement) -> Bools:
        """Return which rows' labels satisfy a requirement: bool[row]."""
        values = self.columns.label(requirement.key).values
        return match_requirement(requirement, values, self.label_codes(requirement.key))

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

"""The node table, which events change. Plugins read it as a `Table` (`roadstead.nodes.view`).

`copy_rows(rows)` is an independent copy of some rows in which pods may be added and removed, for
preemption and nominated pods (`roadstead.framework.row_overlay`); plugins read it like the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.nodes.bulk import write_nodes
from roadstead.nodes.columns import I64, UP_TO_DATE, Columns, name_hash
from roadstead.nodes.labels import MISSING
from roadstead.nodes.node_order import NodeTree
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.pod_sums import count_on_row, count_on_rows
from roadstead.nodes.pods_on_row import NO_PODS, add_each, changed, duplicate
from roadstead.nodes.residents import NominationCounts, Residents
from roadstead.nodes.row_values import row_values
from roadstead.nodes.view import Rows, Table

__all__ = ["NodeTable", "Rows", "Table", "name_hash"]


FEW_PODS = 4
"""Fewer pods of a class than this are counted one by one, since NumPy has a fixed cost per call."""

MAX_LAST_ROWS = 256
"""Number of recent changes whose rows `rows_changed_since` returns without reading all rows."""


class NodeTable(Table):
    """The table that events change. Rows are dense: the last row replaces that of a removed node.

    `version` grows with every change. `node_version` grows when nodes (not pods) change: results
    computed from nodes' own facts are valid while it stays equal. `rows_version` grows when nodes
    are added or removed: while it stays equal, each row is of the same node, and
    `facts_changed_since` returns the rows with other facts. arrived: 1 + the arrival of the last
    added node, which is the number of nodes ever added if the table has all nodes. tree: the nodes
    by zone, for the order of node search. residents: the pods on nodes, by UID. nominations: number
    of nominated pods by node. In copies of rows, tree, residents and nominations are empty.
    ports_as_set: the table records only whether a port is in use, as upstream's NodeInfo, and not
    how many pods use it. _row_of: row by node name.
    """

    __slots__ = (
        "_last_rows",
        "_row_of",
        "arrived",
        "nominations",
        "ports_as_set",
        "residents",
        "rows_version",
        "tree",
        "version",
    )  # fmt: skip

    def __init__(self, classes: PodClasses | None = None) -> None:
        super().__init__(Columns(classes or PodClasses()))
        self.version = 0
        self.rows_version = 0
        self.arrived = 0
        self.ports_as_set = False
        self.tree = NodeTree()
        self.residents = Residents()
        self.nominations = NominationCounts()
        self._row_of: dict[str, int] = {}
        # The row of each recent change, oldest first; emptied by a bulk change.
        self._last_rows: list[int] = []

    @staticmethod
    def copy_of(columns: Columns, rows: Rows) -> NodeTable:
        """Return a table of copies of `rows`, sharing classes and interned values."""
        copy = NodeTable(columns.classes)
        target = copy.columns
        target.capacity = max(1, len(rows))
        target.size = len(rows)
        for name in target.numeric_columns():
            gathered = getattr(columns, name)[..., rows]
            # Columns have room for at least one row.
            setattr(
                target,
                name,
                gathered if len(rows) else np.zeros_like(gathered, shape=(*gathered.shape[:-1], 1)),
            )
        # A copy has versions of its own: no row of a new copy has changed yet.
        target.version[:] = target.facts_version[:] = 0
        for key, column in columns.labels.items():
            copied = target.label(key)
            copied.values, copied.has_own = column.values, column.has_own
            copied.codes[: len(rows)] = column.codes[rows]
        target.names = [columns.names[row] for row in rows]
        target.set_hashes(columns.name_hash[rows])
        target.facts = [columns.facts[row] for row in rows]
        target.pods = [duplicate(columns.pods[row]) for row in rows]
        for on_node in target.pods:
            for pod_class, count in on_node.items():
                target.count_class(pod_class, count)
        for name in ("zones", "taint_sets", "image_sets", "port_sets"):
            setattr(target, name, getattr(columns, name))
        copy.index_names()
        return copy

    def index_names(self) -> None:
        """Rebuild the index from names to rows after a bulk write of the columns."""
        self._row_of = {name: row for row, name in enumerate(self.columns.names)}
        self.version += 1
        self.change_all_rows()

    def change_all_rows(self) -> None:
        """Count every row as changed: nodes were added or removed, or rows moved.

        Results that were computed with an earlier `rows_version` are computed again.
        """
        self.columns.node_version = self.rows_version = self.version
        self._last_rows.clear()

    def copy_rows(self, rows: Rows) -> NodeTable:
        """Return an independent copy of some rows, in which pods may be added and removed."""
        return NodeTable.copy_of(self.columns, rows)

    @property
    def classes(self) -> PodClasses:
        return self.columns.classes

    def has_node(self, name: str) -> bool:
        return name in self._row_of

    def row_of(self, name: str) -> int:
        """Return the row of a node. KeyError if there is none."""
        return self._row_of[name]

    def each_row(self, names: Iterable[str]) -> list[int]:
        """Return the row of each node. KeyError for an unknown name."""
        row_of = self._row_of
        return [row_of[name] for name in names]

    def missing(self, names: Iterable[str]) -> set[str]:
        """Return the names without a node."""
        row_of = self._row_of
        return {name for name in names if name not in row_of}

    def rows_of(self, names: Iterable[str]) -> Rows:
        """Return the rows of those names that exist."""
        found = [self._row_of[name] for name in names if name in self._row_of]
        return np.array(found, dtype=np.intp)

    def node_names(self) -> Sequence[str]:
        return self.columns.names

    def add_node(self, facts: NodeFacts, arrival: int | None = None) -> None:
        """Add a node without pods. AssertionError if it is in the table already.

        arrival: its position in the order of arrival in the whole cluster; the default, the order
        of these calls, is right for a table of all nodes.
        """
        assert facts.name not in self._row_of, f"node {facts.name} is in the table already"
        columns = self.columns
        row = columns.size
        columns.fit_rows(row + 1)
        columns.size = row + 1
        columns.names.append(facts.name)
        columns.facts.append(facts)
        columns.pods.append(NO_PODS)
        columns.arrival[row] = self.arrived if arrival is None else arrival
        self.arrived = int(columns.arrival[row]) + 1
        columns.snapshot_at[row] = UP_TO_DATE
        self._row_of[facts.name] = row
        self._write_facts(row, facts)
        self.change_all_rows()

    def add_nodes(self, nodes: NodeList, arrivals: I64 | None = None) -> None:
        """Add nodes, as `add_node` one after another. arrivals: int64[node]."""
        if not nodes:
            return
        columns, start = self.columns, self.columns.size
        rows = dict(zip(nodes.names, range(start, start + len(nodes)), strict=True))
        assert len(rows) == len(nodes), "a node is in the list twice"
        assert self._row_of.keys().isdisjoint(rows), "a node is in the table already"
        zones = write_nodes(columns, nodes)
        added = slice(start, columns.size)
        first = self.arrived
        columns.arrival[added] = (
            np.arange(first, first + len(rows)) if arrivals is None else arrivals
        )
        self.arrived = int(columns.arrival[columns.size - 1]) + 1
        self._row_of.update(rows)
        self.tree.put_all(nodes.names, zones)
        columns.version[added] = np.arange(self.version + 1, self.version + len(rows) + 1)
        self.version += len(rows)
        self.change_all_rows()

    def update_node(self, facts: NodeFacts) -> None:
        """Replace a node's own facts; its pods stay."""
        row = self._row_of[facts.name]
        for column in self.columns.labels.values():
            column.codes[row] = MISSING
        self.columns.facts[row] = facts
        self._write_facts(row, facts)

    def remove_node(self, name: str) -> None:
        """Remove a node and its pods. KeyError if there is none."""
        row = self._row_of.pop(name)
        self.tree.remove(name)
        columns = self.columns
        if columns.pods[row]:
            self.residents.clear(name)
        for pod_class, count in columns.pods[row].items():
            columns.count_class(pod_class, -count)
        last = columns.size - 1
        if row != last:
            columns.move_row(last, row)
            self._row_of[columns.names[row]] = row
        columns.clear_row(last)
        for column in (columns.names, columns.facts, columns.pods):
            column.pop()
        columns.size = last
        self.version += 1
        self.change_all_rows()

    def _write_facts(self, row: int, facts: NodeFacts) -> None:
        columns = self.columns
        codes = [
            (columns.classes.resources.code(name), amount) for name, amount in facts.allocatable
        ]
        columns.fit_resources()
        columns.allocatable[:, row] = 0
        for code, amount in codes:
            columns.allocatable[code, row] = amount
        columns.allocatable_pods[row] = facts.allocatable_pods
        columns.unschedulable[row] = facts.unschedulable
        zone = facts.zone
        columns.zone[row] = columns.zones.code(zone)
        self.tree.put(facts.name, zone)
        columns.taint_set[row] = columns.taint_sets.code(facts.taints)
        columns.image_set[row] = columns.image_sets.code(facts.images)
        for key, value in facts.labels:
            # Not always `label`: it would store each node's own name, perhaps needlessly.
            column = columns.labels.get(key) or columns.label(key)
            column.codes[row] = column.values.code(value)
        self._change_row(row)
        columns.node_version = self.version
        columns.facts_version[row] = self.version

    def rows_changed_since(self, version: int) -> Rows:
        """Return the rows whose pods, nominations or facts changed since `version`.

        Valid while `rows_version` stays equal.
        """
        count = self.version - version
        if count <= len(self._last_rows):
            # Without reading all rows: pods that arrive one by one change few.
            return np.array(sorted(set(self._last_rows[-count:] if count else ())), dtype=np.intp)
        return np.flatnonzero(self.columns.version[: self.columns.size] > version)

    def facts_changed_since(self, version: int) -> Rows:
        """Return the rows whose facts changed since `version`; valid as `rows_changed_since`."""
        if version >= self.node_version:
            return np.zeros(0, dtype=np.intp)
        rows = self.rows_changed_since(version)
        return rows[self.columns.facts_version[rows] > version]

    def _change_row(self, row: int) -> None:
        """Record a change of one row."""
        self.version += 1
        self.columns.version[row] = self.version
        last = self._last_rows
        last.append(row)
        if len(last) > MAX_LAST_ROWS:
            del last[: MAX_LAST_ROWS // 2]

    def _change_rows(self, rows: Sequence[int]) -> None:
        """Record one change of many rows."""
        self.version += 1
        self.columns.version[rows] = self.version
        self._last_rows.clear()

    def add_pod(
        self,
        node_name: str,
        pod_class: PodClass,
        count: int = 1,
        *,
        uid: str = "",
        key: str = "",
        started_s: float | None = None,
    ) -> int:
        """Add pods of a class to a node; return the changed row. KeyError for an unknown node.

        uid, key, started_s: of the pod, if it is one (see `Residents`).
        """
        row = self._row_of[node_name]
        if uid:
            self.residents.add(node_name, uid, pod_class, key, started_s)
        pods = self.columns.pods
        pods[row] = changed(pods[row], pod_class, count)
        count_on_row(self.columns, row, pod_class, count, self.ports_as_set)
        self._change_row(row)
        return row

    def add_pods(self, rows: Sequence[int], pod_classes: Sequence[PodClass]) -> None:
        """Add pod_classes[i] to rows[i] for each i, as `add_pod` does.

        The caller adds the pods to `residents`.
        """
        columns = self.columns
        add_each(columns.pods, rows, pod_classes)
        rows_of: defaultdict[PodClass, list[int]] = defaultdict(list)
        for row, pod_class in zip(rows, pod_classes, strict=True):
            rows_of[pod_class].append(row)
        for pod_class, class_rows in rows_of.items():
            if len(class_rows) < FEW_PODS:
                for row in class_rows:
                    count_on_row(columns, row, pod_class, 1, self.ports_as_set)
                    self._change_row(row)
                continue
            ones = [1] * len(class_rows)
            count_on_rows(columns, class_rows, pod_class, ones, self.ports_as_set)
            self._change_rows(class_rows)

    def change_pods(self, changes: Mapping[int, int], pod_class: PodClass) -> None:
        """Add pods of a class to rows or, with a number below 0, remove them: row → number.

        For copies of rows, which have no residents.
        """
        pods, rows = self.columns.pods, list(changes)
        for row, change in changes.items():
            pods[row] = changed(pods[row], pod_class, change)
        count_on_rows(self.columns, rows, pod_class, list(changes.values()), self.ports_as_set)
        self._change_rows(rows)

    def remove_pod(self, node_name: str, pod_class: PodClass, *, uid: str = "") -> int:
        """Remove a pod of a class from a node; return the changed row."""
        row = self._row_of[node_name]
        self.residents.remove(node_name, pod_class, uid)
        pods = self.columns.pods
        assert pod_class in pods[row], f"no pod of {pod_class!r} on node {node_name}"
        pods[row] = changed(pods[row], pod_class, -1)
        count_on_row(self.columns, row, pod_class, -1, self.ports_as_set)
        self._change_row(row)
        return row

    def nominate(self, node_name: str, pod_class: PodClass, count: int = 1) -> None:
        """Nominate pods of a class to a node, which may be unknown."""
        self.nominations.add(node_name, self.as_nominated(pod_class), count)
        self._change_row_of(node_name)

    def withdraw(self, node_name: str, pod_class: PodClass) -> None:
        """Remove one nomination, if there is one."""
        if self.nominations.remove(node_name, self.as_nominated(pod_class)):
            self._change_row_of(node_name)

    def as_nominated(self, pod_class: PodClass) -> PodClass:
        """Return the class under which a nominated pod is counted, without its nominated node."""
        if not pod_class.facts.nominated_node_name:
            return pod_class
        return self.classes.pod_class(replace(pod_class.facts, nominated_node_name=""))

    def _change_row_of(self, node_name: str) -> None:
        row = self._row_of.get(node_name)
        if row is not None:
            self._change_row(row)

    def validate(self) -> None:
        """Assert that every sum equals a recount from the pods on the node."""
        rebuilt = NodeTable(self.classes)
        for row in range(len(self)):
            facts = self.facts(row)
            rebuilt.add_node(facts)
            assert self._row_of[facts.name] == row, f"{facts.name} is not found at its row"
            counts = self.columns.pods[row]
            # A mapping of one class is the shared one (`PodClass.only_class`).
            assert len(counts) > 1 or counts is duplicate(counts), f"{facts.name} shares no mapping"
            for pod_class, count in counts.items():
                rebuilt.add_pod(facts.name, pod_class, count)
        differences = self.differences(rebuilt)
        assert not differences, "\n".join(differences)

    def differences(self, other: NodeTable) -> list[str]:
        """Return the differences between two tables of the same classes, except row order."""
        found = [f"{name}: only on one side" for name in self._row_of.keys() ^ other._row_of.keys()]
        for name in sorted(self._row_of.keys() & other._row_of.keys()):
            first, second = (table.row_facts(name) for table in (self, other))
            found += [
                f"{name}: {what}: {first[what]} is not {second[what]}"
                for what in first
                if first[what] != second[what]
            ]
        return found

    def row_facts(self, name: str) -> dict[str, object]:
        """Return a node's row with values instead of codes, for comparisons and messages."""
        return row_values(self.columns, self._row_of[name])

"""TermIndex: the pod classes of a process by the facts that inter-pod affinity reads.

Its `TablePods` caches the pods on a table's rows, which all counts of the table share. A
`CodeInterner` gives each distinct value a code: 0, 1, ….
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roadstead.facts.pod import Labels, PodAffinityTerm
from roadstead.nodes.columns import I64, Columns
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.plugins.affinity_terms import TermCompiler, Terms

PodProfile = tuple[int, int]
"""(code of namespace and labels, code of terms); see `TermIndex`."""


class PodsByClass(NamedTuple):
    """Pods on rows, one entry for each class on each row; int64[entry] each.

    classes: by `PodClass.index`. pods: how many pods of the class are on the row.
    """

    rows: I64
    classes: I64
    pods: I64


def read_pods(table: Table, rows: Rows) -> PodsByClass:
    """Read the pods on some rows."""
    on_nodes = [table.pods(row) for row in rows.tolist()]
    return PodsByClass(
        np.repeat(rows.astype(np.int64), [len(each) for each in on_nodes]),
        np.array([pod_class.index for each in on_nodes for pod_class in each], dtype=np.int64),
        np.array([pods for each in on_nodes for pods in each.values()], dtype=np.int64),
    )


class TablePods:
    """The pods on all rows of a table, updated for changed rows; all `InterPodCounts` share it.

    Only the largest table is cached: copies of some of its rows must not replace it.
    """

    __slots__ = ("_columns", "_node_version", "_pods", "_version")

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._node_version = self._version = -1

    def caches(self, table: NodeTable) -> bool:
        """Whether this is the cached table; a table larger than the cached one replaces it."""
        if self._columns is None or len(table) > self._columns.size:
            self._columns, self._version = table.columns, -1
        return self._columns is table.columns

    def read(self, table: NodeTable) -> PodsByClass:
        """Return the pods on all rows of the cached table."""
        assert self._columns is table.columns, "another table"
        if self._version < 0 or self._node_version != table.node_version:
            self._pods = read_pods(table, np.arange(len(table)))
        elif self._version != table.version:
            self._replace(table, table.rows_changed_since(self._version))
        self._node_version, self._version = table.node_version, table.version
        return self._pods

    def _replace(self, table: NodeTable, rows: Rows) -> None:
        unchanged = np.ones(len(table), dtype=np.bool_)
        unchanged[rows] = False
        is_kept, read = unchanged[self._pods.rows], read_pods(table, rows)
        self._pods = PodsByClass(
            *(
                np.concatenate([old[is_kept], new])
                for old, new in zip(self._pods, read, strict=True)
            )
        )


class TermIndex:
    """The pod classes of a process by the facts that inter-pod affinity reads.

    Two codes represent these facts (`PodProfile`): one for namespace and labels, one for terms.
    Classes that differ only in other facts, such as requests, have equal codes and share counts.

    profiles: by `PodClass.index`. terms: by their code, without the namespaces that `Term.merged`
    adds. with_terms: classes with terms.
    """

    __slots__ = (
        "_compiler", "_label_codes", "_term_codes", "classes", "profiles", "table_pods", "terms",
        "with_terms",
    )  # fmt: skip

    def __init__(self, classes: PodClasses) -> None:
        self.classes = classes
        self.table_pods = TablePods()
        self.profiles: list[PodProfile] = []
        self.terms: list[Terms] = []
        self.with_terms: list[PodClass] = []
        self._compiler = TermCompiler()
        self._label_codes: CodeInterner[tuple[str, Labels]] = CodeInterner()
        self._term_codes: CodeInterner[tuple[tuple[PodAffinityTerm, ...], ...]] = CodeInterner()

    def catch_up(self) -> None:
        """Add the classes that are new."""
        for pod_class in self.classes.pod_classes[len(self.profiles) :]:
            facts = pod_class.facts
            terms_code = self._term_codes.code(
                (
                    facts.pod_affinity,
                    facts.pod_anti_affinity,
                    facts.preferred_pod_affinity,
                    facts.preferred_pod_anti_affinity,
                )
            )
            if terms_code == len(self.terms):
                self.terms.append(self._compiler.compile(facts))
            labels_code = self._label_codes.code((facts.namespace, facts.labels))
            self.profiles.append((labels_code, terms_code))
            if any(self.terms[terms_code].groups):
                self.with_terms.append(pod_class)

    def profile(self, pod_class: PodClass) -> PodProfile:
        """Return the codes of a class of this process."""
        if pod_class.index >= len(self.profiles):
            self.catch_up()
        return self.profiles[pod_class.index]

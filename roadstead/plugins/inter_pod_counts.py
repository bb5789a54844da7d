"""Counts of related pods by topology value, kept per kind of pods and brought up to date by row.

For pods to be placed, `Counts` knows which classes concern them (each kind is looked at once), how
many pods of those stand on each row of a table, and sums that up over the values of a topology key.
Rows that pods came to or left are counted again, the others are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from roadstead.facts.pod import Labels, PodAffinityTerm
from roadstead.nodes.columns import I32, I64, Columns
from roadstead.nodes.interning import Interner
from roadstead.nodes.pod_info import PodClasses, PodInfo
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.plugins.inter_pod_terms import (
    Family,
    Line,
    NewPod,
    Relation,
    TermCompiler,
    Terms,
    joined,
)

ByTopology = dict[str, dict[str, int]]
"""Topology key → value → count."""

Kind = tuple[int, int]
"""See `TermIndex`."""


class Placed(NamedTuple):
    """Classes on rows, as arrays: int64[k] each. classes: `PodInfo.index`. pods: how many."""

    rows: I64
    classes: I64
    pods: I64


def read_pods(table: Table, rows: Rows) -> Placed:
    """What stands on some rows."""
    on_nodes = [table.pods(row) for row in rows.tolist()]
    return Placed(
        np.repeat(rows.astype(np.int64), [len(each) for each in on_nodes]),
        np.array([info.index for each in on_nodes for info in each], dtype=np.int64),
        np.array([pods for each in on_nodes for pods in each.values()], dtype=np.int64),
    )


class Placements:
    """What stands on all rows of one table, kept up to date and read by all kinds of pods.

    One table is kept: what-ifs, which are no larger, must not drive out the table itself.
    """

    __slots__ = ("_columns", "_node_version", "_placed", "_version")

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._node_version = self._version = -1

    def keeps(self, table: NodeTable) -> bool:
        """Whether this table is the one, or becomes it."""
        if self._columns is None or len(table) > self._columns.size:
            self._columns, self._version = table.columns, -1
        return self._columns is table.columns

    def read(self, table: NodeTable) -> Placed:
        """What stands on all rows of the table that is kept."""
        assert self._columns is table.columns, "another table"
        if self._version < 0 or self._node_version != table.node_version:
            self._placed = read_pods(table, np.arange(len(table)))
        elif self._version != table.version:
            self._replace(table, table.rows_changed_since(self._version))
        self._node_version, self._version = table.node_version, table.version
        return self._placed

    def _replace(self, table: NodeTable, rows: Rows) -> None:
        unchanged = np.ones(len(table), dtype=np.bool_)
        unchanged[rows] = False
        old, new = unchanged[self._placed.rows], read_pods(table, rows)
        self._placed = Placed(
            *(
                np.concatenate([mine[old], theirs])
                for mine, theirs in zip(self._placed, new, strict=True)
            )
        )


class TermIndex:
    """The classes of a process by what inter-pod affinity sees of them.

    A class is of a kind: (code of its namespace and labels, code of its terms). Classes that differ
    in other things, in what they request for example, are of the same kind.
    """

    __slots__ = (
        "_compiler", "_faces", "_term_codes", "classes", "kinds", "placements", "terms",
        "with_terms",
    )  # fmt: skip

    def __init__(self, classes: PodClasses) -> None:
        self.classes = classes
        self.placements = Placements()
        self.kinds: list[Kind] = []
        self.terms: list[Terms] = []
        self.with_terms: list[PodInfo] = []
        self._compiler = TermCompiler()
        self._faces: Interner[tuple[str, Labels]] = Interner()
        self._term_codes: Interner[tuple[tuple[PodAffinityTerm, ...], ...]] = Interner()

    def catch_up(self) -> None:
        """Takes in the classes that are new."""
        for info in self.classes.infos[len(self.kinds) :]:
            facts = info.facts
            terms = self._term_codes.code(
                (
                    facts.pod_affinity,
                    facts.pod_anti_affinity,
                    facts.preferred_pod_affinity,
                    facts.preferred_pod_anti_affinity,
                )
            )
            if terms == len(self.terms):
                self.terms.append(self._compiler.compile(facts))
            self.kinds.append((self._faces.code((facts.namespace, facts.labels)), terms))
            if any(self.terms[terms].groups):
                self.with_terms.append(info)

    def kind(self, info: PodInfo) -> Kind:
        """The kind of a class of this process."""
        if info.index >= len(self.kinds):
            self.catch_up()
        return self.kinds[info.index]


class Counts:
    """How many related pods stand where, for pods of one kind to be placed.

    cells: what is held in memory: a code per class, and one number per line and row.
    """

    __slots__ = (
        "_by_kind", "_codes", "_columns", "_has_terms", "_index", "_met_by", "_node_version",
        "_relations", "_seen", "_vectors", "_version", "_wishes", "cells", "pod",
    )  # fmt: skip

    def __init__(self, pod: NewPod, index: TermIndex) -> None:
        self.pod = pod
        self._has_terms = any(pod.terms.groups)
        self._index = index
        # Relations by code: 0 is none. The code of each class, of each kind.
        self._relations: Interner[Relation] = Interner([()])
        self._codes: I64 = np.zeros(0, dtype=np.int64)
        self._by_kind: dict[Kind, int] = {}
        self._seen = 0
        self._wishes: dict[int, Relation] = {}
        self._met_by: dict[int, Relation] = {}
        self._columns: Columns | None = None
        self._node_version = self._version = -1
        self._vectors: dict[Line, I64] = {}
        self.cells = 0

    def grown(self) -> int:
        """By how much `cells` has grown since this was asked last."""
        cells = len(self._codes) + sum(map(len, self._vectors.values()))
        grown, self.cells = cells - self.cells, cells
        return grown

    def relates_to(self, other: PodInfo) -> bool:
        """Whether a pod of that class, wherever it stands, counts for this one."""
        self._relate()
        return other.index < len(self._codes) and bool(self._codes[other.index])

    def relation_to(self, other: PodInfo) -> Relation:
        """What one pod of that class adds to each line, wherever it stands."""
        self._relate()
        if other.index >= len(self._codes):
            return ()
        code = int(self._codes[other.index])
        return self._relations.values[code]

    def _relate(self) -> None:
        """Looks once at each class that is new: at all if the pod has terms, else at theirs."""
        index = self._index
        index.catch_up()
        candidates = index.classes.infos if self._has_terms else index.with_terms
        if self._seen == len(candidates):
            return
        found = [
            (other.index, code)
            for other in candidates[self._seen :]
            if (code := self._code(other, index.kinds[other.index]))
        ]
        self._seen = len(candidates)
        if found:
            codes = np.zeros(len(index.kinds), dtype=np.int64)
            codes[: len(self._codes)] = self._codes
            codes[[at for at, _ in found]] = [code for _, code in found]
            self._codes = codes

    def _code(self, other: PodInfo, kind: Kind) -> int:
        """Each namespace with labels, and each set of terms, is compared with the pod once."""
        code = self._by_kind.get(kind)
        if code is None:
            face, terms = kind
            if face not in self._wishes:
                self._wishes[face] = self.pod.wishes(other)
            if terms not in self._met_by:
                self._met_by[terms] = self.pod.met_by(self._index.terms[terms])
            relation = joined(self._wishes[face], self._met_by[terms])
            code = self._by_kind[kind] = self._relations.code(relation)
        return code

    def find(self, table: Table) -> Mapping[Line, I64]:
        """Per line how much the pods on each row add: int64[row]. Lines may be all zero."""
        assert table.columns.classes is self._index.classes, "a table of other classes"
        self._relate()
        if not len(self._codes):
            return {}
        placements = self._index.placements
        if not isinstance(table, NodeTable) or not placements.keeps(table):
            return self._count({}, table, read_pods(table, np.arange(len(table))))
        if self._columns is not table.columns or self._node_version != table.node_version:
            self._vectors = self._count({}, table, placements.read(table))
        elif self._version != table.version:
            self._recount(table, table.rows_changed_since(self._version))
        self._columns, self._node_version = table.columns, table.node_version
        self._version = table.version
        return self._vectors

    def _recount(self, table: NodeTable, rows: Rows) -> None:
        for vector in self._vectors.values():
            vector[rows] = 0
        self._count(self._vectors, table, read_pods(table, rows))

    def _count(self, vectors: dict[Line, I64], table: Table, placed: Placed) -> dict[Line, I64]:
        """Adds placed pods to the vectors."""
        known = np.minimum(placed.classes, len(self._codes))
        codes = np.append(self._codes, 0)[known]
        for code in np.unique(codes[codes > 0]).tolist():
            related = codes == code
            where, pods = placed.rows[related], placed.pods[related]
            for line, each in self._relations.values[code]:
                vector = vectors.get(line)
                if vector is None:
                    vector = vectors[line] = np.zeros(len(table), dtype=np.int64)
                np.add.at(vector, where, each * pods)
        return vectors


def label_codes(table: Table, key: str) -> tuple[Interner[str], I32]:
    """Values of a label key and the code of each row, -1 where the node lacks it: int32[row]."""
    column = table.columns.label(key)
    return column.values, table._codes(column.codes)


def by_topology(table: Table, vectors: Mapping[Line, I64], family: Family) -> ByTopology:
    """Sums of a family by topology key and value; only what is not zero."""
    found = {}
    for (kind, key), vector in vectors.items():
        if kind is family:
            values, sums = _sums(table, key, vector)
            listed = np.flatnonzero(sums)
            if len(listed):
                found[key] = _named(values, listed, sums)
    return found


def scores_by_topology(table: Table, vectors: Mapping[Line, I64]) -> ByTopology:
    """Scores by topology key and value; also zeros, where matches outweigh one another."""
    found = {}
    for (kind, key), vector in vectors.items():
        if kind is Family.SCORED:
            values, matches = _sums(table, key, vector)
            listed = np.flatnonzero(matches)
            if len(listed):
                _, sums = _sums(table, key, vectors[Family.SCORE, key])
                found[key] = _named(values, listed, sums)
    return found


def _sums(table: Table, key: str, vector: I64) -> tuple[Interner[str], I64]:
    """Sum of a vector over the rows of each value of a key: int64[value]."""
    values, codes = label_codes(table, key)
    # Sums in float64 are exact below 2^53, and nodes without the key fall into place 0.
    sums = np.bincount(codes + 1, weights=vector, minlength=len(values) + 1)[1:]
    return values, sums.astype(np.int64)


def _named(values: Interner[str], listed: Rows, sums: I64) -> dict[str, int]:
    names = values.values
    return dict(zip([names[code] for code in listed.tolist()], sums[listed].tolist(), strict=True))


def seen_from(counts: ByTopology, row: Table, added: Mapping[str, int]) -> ByTopology:
    """What one row sees of counts after so much more of each topology key on its node.

    Its own places, and of the others no more than that there is something somewhere.
    """
    found = {}
    for key in counts.keys() | added.keys():
        of_key = counts.get(key, {})
        values, codes = label_codes(row, key)
        own = values.values[codes[0]] if codes[0] >= 0 else None
        here = of_key.get(own, 0) + added.get(key, 0) if own is not None else 0
        seen = {own: here} if own is not None and here else {}
        elsewhere = next(((value, n) for value, n in of_key.items() if value != own), None)
        if elsewhere is not None:
            seen[elsewhere[0]] = elsewhere[1]
        if seen:
            found[key] = seen
    return found


class Domains:
    """What a topology key's values count, looked up by row."""

    __slots__ = ("_by_code", "_counts", "_values", "key")

    def __init__(self, key: str, counts: Mapping[str, int]) -> None:
        self.key = key
        self._counts = counts
        self._values: Interner[str] | None = None
        self._by_code: I64 = np.zeros(1, dtype=np.int64)

    def at(self, table: Table) -> I64:
        """The count of each row's value, 0 where there is none: int64[row]."""
        values, codes = label_codes(table, self.key)
        if values is not self._values or len(values) != len(self._by_code) - 1:
            self._values, self._by_code = values, self._tabulate(values)
        found: I64 = self._by_code[codes]
        return found

    def _tabulate(self, values: Interner[str]) -> I64:
        """int64[code + 1]; the last place is for nodes without the key (code -1)."""
        by_code = np.zeros(len(values) + 1, dtype=np.int64)
        codes = np.fromiter(map(values.find, self._counts), np.intp, len(self._counts))
        by_code[codes] = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        by_code[-1] = 0
        return by_code

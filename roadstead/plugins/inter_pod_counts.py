"""Counts of related pods on each row of a table, recounted for changed rows.

Pods are related if a term of one matches the other. A counter is named by a family of terms and a
topology key (`CounterKey`); its vector, int64[row], has what the pods on each row add to it. For
scores there are two families: SCORE adds up the weights of matches, SCORED the matches.

`InterPodCounts` ──► sums by topology value, for Filter and Score of inter-pod affinity
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roadstead.nodes.columns import I64, Columns
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows, Table
from roadstead.plugins.term_index import PodProfile, PodsByClass, TermIndex, read_pods
from roadstead.plugins.term_relations import (
    CounterKey,
    Family,
    PodsToPlace,
    Relation,
    sum_relations,
)

ByTopology = dict[str, dict[str, int]]
"""Topology key → value → count."""


class InterPodCounts:
    """Related pods on each row, for pods to be placed that have one `PodProfile`.

    Equal profiles are equal namespaces, labels and terms (`TermIndex`). pod: what these pods have
    in common. size: how many integers are in memory: one per class, and one per counter and row.
    """

    __slots__ = (
        "_by_profile",
        "_codes",
        "_columns",
        "_compared",
        "_existing_terms_relations",
        "_has_terms",
        "_index",
        "_node_version",
        "_own_terms_relations",
        "_relations",
        "_vectors",
        "_version",
        "pod",
        "size",
    )  # fmt: skip

    def __init__(self, pod: PodsToPlace, index: TermIndex) -> None:
        self.pod = pod
        self._has_terms = any(pod.terms.groups)
        self._index = index
        # Relations by code, 0 for unrelated; the code of each class, by `PodClass.index`; and the
        # code of each `PodProfile`.
        self._relations: CodeInterner[Relation] = CodeInterner([()])
        self._codes: I64 = np.zeros(0, dtype=np.int64)
        self._by_profile: dict[PodProfile, int] = {}
        # How many classes `_relate_new_classes` has compared with the pod: the first ones.
        self._compared = 0
        # The parts of a relation, for the two numbers of a profile: what the pod's own terms match,
        # by the number for namespace and labels; which terms match the pod, by that for terms.
        self._own_terms_relations: dict[int, Relation] = {}
        self._existing_terms_relations: dict[int, Relation] = {}
        # The vectors, and the columns and versions (of nodes, and of pods) of the table that they
        # count.
        self._columns: Columns | None = None
        self._node_version = self._version = -1
        self._vectors: dict[CounterKey, I64] = {}
        self.size = 0

    def update_size(self) -> int:
        """Update `size`; return its growth since the last call."""
        numbers = len(self._codes) + sum(map(len, self._vectors.values()))
        grown, self.size = numbers - self.size, numbers
        return grown

    def is_related(self) -> bool:
        """Whether any class can be related: the pod has terms, or pods of some class have."""
        self._index.catch_up()
        return self._has_terms or bool(self._index.with_terms)

    def relates_to(self, other: PodClass) -> bool:
        """Whether a pod of class `other` on a node adds to any counter."""
        self._relate_new_classes()
        return other.index < len(self._codes) and bool(self._codes[other.index])

    def relation_to(self, other: PodClass) -> Relation:
        """Return what one pod of class `other` on a node adds to each counter."""
        self._relate_new_classes()
        if other.index >= len(self._codes):
            return ()
        code = int(self._codes[other.index])
        return self._relations.values[code]

    def _relate_new_classes(self) -> None:
        """Compute the relation to each new class.

        If the pod has no terms, only classes with terms can be related to it.
        """
        index = self._index
        index.catch_up()
        candidates = index.classes.pod_classes if self._has_terms else index.with_terms
        if self._compared == len(candidates):
            return
        related = [
            (other.index, code)
            for other in candidates[self._compared :]
            if (code := self._code(other, index.profiles[other.index]))
        ]
        self._compared = len(candidates)
        if related:
            codes = np.zeros(len(index.profiles), dtype=np.int64)
            codes[: len(self._codes)] = self._codes
            codes[[index_of_class for index_of_class, _ in related]] = [code for _, code in related]
            self._codes = codes

    def _code(self, other: PodClass, profile: PodProfile) -> int:
        """Return the code of the relation to a class; each number of a profile is compared once."""
        code = self._by_profile.get(profile)
        if code is None:
            labels, terms = profile
            if labels not in self._own_terms_relations:
                self._own_terms_relations[labels] = self.pod.own_terms_relation(other)
            if terms not in self._existing_terms_relations:
                self._existing_terms_relations[terms] = self.pod.existing_terms_relation(
                    self._index.terms[terms]
                )
            relation = sum_relations(
                self._own_terms_relations[labels], self._existing_terms_relations[terms]
            )
            code = self._by_profile[profile] = self._relations.code(relation)
        return code

    def on_rows(self, table: Table) -> Mapping[CounterKey, I64]:
        """Return for each counter what the pods on each row add: int64[row].

        A counter may be zero on all rows. Valid until the next call, which may write into the same
        arrays.
        """
        assert table.columns.classes is self._index.classes, "a table of other classes"
        self._relate_new_classes()
        if not len(self._codes):
            return {}
        table_pods = self._index.table_pods
        # Nothing is cached for views and copies of rows, which are short-lived.
        if not isinstance(table, NodeTable) or not table_pods.caches(table):
            return self._count({}, table, read_pods(table, np.arange(len(table))))
        if self._columns is not table.columns or self._node_version != table.node_version:
            self._vectors = self._count({}, table, table_pods.read(table))
        elif self._version != table.version:
            self._recount(table, table.rows_changed_since(self._version))
        self._columns, self._node_version = table.columns, table.node_version
        self._version = table.version
        return self._vectors

    def _recount(self, table: NodeTable, rows: Rows) -> None:
        for vector in self._vectors.values():
            vector[rows] = 0
        self._count(self._vectors, table, read_pods(table, rows))

    def _count(
        self, vectors: dict[CounterKey, I64], table: Table, placed: PodsByClass
    ) -> dict[CounterKey, I64]:
        """Add pods on rows to the vectors."""
        # Classes beyond the codes are not related: they get the 0 that is appended.
        index = np.minimum(placed.classes, len(self._codes))
        codes = np.append(self._codes, 0)[index]
        for code in np.unique(codes[codes > 0]).tolist():
            related = codes == code
            rows, pods = placed.rows[related], placed.pods[related]
            for counter, per_pod in self._relations.values[code]:
                vector = vectors.get(counter)
                if vector is None:
                    vector = vectors[counter] = np.zeros(len(table), dtype=np.int64)
                np.add.at(vector, rows, per_pod * pods)
        return vectors


def by_topology(table: Table, vectors: Mapping[CounterKey, I64], family: Family) -> ByTopology:
    """Return the sums of a family by topology key and value, without zeros."""
    result = {}
    for (of_family, key), vector in vectors.items():
        if of_family is family:
            values, sums = _sums(table, key, vector)
            nonzero = np.flatnonzero(sums)
            if len(nonzero):
                result[key] = _by_value(values, nonzero, sums)
    return result


def scores_by_topology(table: Table, vectors: Mapping[CounterKey, I64]) -> ByTopology:
    """Return scores by topology key and value, with zeros where weights cancel each other."""
    result = {}
    for (of_family, key), vector in vectors.items():
        if of_family is Family.SCORED:
            values, matches = _sums(table, key, vector)
            nonzero = np.flatnonzero(matches)
            if len(nonzero):
                _, sums = _sums(table, key, vectors[Family.SCORE, key])
                result[key] = _by_value(values, nonzero, sums)
    return result


def _sums(table: Table, key: str, vector: I64) -> tuple[CodeInterner[str], I64]:
    """Return a key's values, and the sum of a vector over the rows of each: int64[code]."""
    values, codes = table.label_values(key), table.label_codes(key)
    # Sums in float64 are exact below 2^53; index 0 is for nodes without the key.
    sums = np.bincount(codes + 1, weights=vector, minlength=len(values) + 1)[1:]
    return values, sums.astype(np.int64)


def _by_value(values: CodeInterner[str], codes: Rows, sums: I64) -> dict[str, int]:
    """Return the sums of some codes by their values. sums: int64[code]."""
    names = values.values
    return dict(zip([names[code] for code in codes.tolist()], sums[codes].tolist(), strict=True))


def counts_for_row(counts: ByTopology, row: Table, added: Mapping[str, int]) -> ByTopology:
    """Return the counts that Filter needs for one row after pods of its node added `added`.

    added: by topology key. The result has the counts of the row's own domains and, for each key, of
    one other domain that is not empty: of other domains, Filter reads only whether any has a count
    (`FilterState.is_first`).
    """
    result = {}
    for key in counts.keys() | added.keys():
        of_key = counts.get(key, {})
        values, codes = row.label_values(key), row.label_codes(key)
        own = values.values[codes[0]] if codes[0] >= 0 else None
        own_count = of_key.get(own, 0) + added.get(key, 0) if own is not None else 0
        needed = {own: own_count} if own is not None and own_count else {}
        elsewhere = next(((value, n) for value, n in of_key.items() if value != own), None)
        if elsewhere is not None:
            needed[elsewhere[0]] = elsewhere[1]
        if needed:
            result[key] = needed
    return result


class Domains:
    """The counts of a topology key's values, looked up by row."""

    __slots__ = ("_by_code", "_counts", "_values", "key")

    def __init__(self, key: str, counts: Mapping[str, int]) -> None:
        self.key = key
        self._counts = counts
        self._values: CodeInterner[str] | None = None
        self._by_code: I64 = np.zeros(1, dtype=np.int64)

    def at(self, table: Table) -> I64:
        """Return the count of each row's value, 0 without one: int64[row]."""
        values, codes = table.label_values(self.key), table.label_codes(self.key)
        # Another table has other codes; values that were added since have no entry yet.
        if values is not self._values or len(values) != len(self._by_code) - 1:
            self._values, self._by_code = values, self._tabulate(values)
        by_row: I64 = self._by_code[codes]
        return by_row

    def _tabulate(self, values: CodeInterner[str]) -> I64:
        """Return counts by code: int64[code + 1]; the last is for nodes without the key (-1)."""
        by_code = np.zeros(len(values) + 1, dtype=np.int64)
        codes = np.fromiter(map(values.find, self._counts), np.intp, len(self._counts))
        by_code[codes] = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        # `find` returns -1 for a value that this table does not have.
        by_code[-1] = 0
        return by_code

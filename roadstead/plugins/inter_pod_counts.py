"""Pod (anti-)affinity terms: what classes of pods are to each other, and how many are where.

terms of two classes ──► `Relation`: what a pod of one adds to which counts of the other
`Counts`: related pods on each row of a table, counted again where pods came or left
                         ──► by topology value, for Filter and Score
                         ──► `may_stand`: pods that come one after another

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm.Matches),
pkg/scheduler/framework/types.go (PodClass.Update) and plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Labels, PodAffinityTerm, PodFacts
from roadstead.facts.selectors import LabelSelector, join_errors
from roadstead.framework.events import HintError
from roadstead.nodes.columns import I32, I64, Columns
from roadstead.nodes.interning import Interner
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable, Rows, Table

NamespaceLabels = Mapping[str, Mapping[str, str]]
"""Labels of each known namespace."""


def labels_of_namespaces(cluster: ClusterFacts) -> NamespaceLabels:
    """The labels of the namespaces that a cluster tells of."""
    return {name: dict(labels) for name, labels in cluster.namespaces}


class Family(IntEnum):
    """What a pod on a node is counted as.

    EXISTING_ANTI: its required anti-affinity terms match the new pod. AFFINITY: it matches all
    required affinity terms of the new pod. ANTI_AFFINITY: it matches required anti-affinity terms
    of the new pod. SCORE: the weights of all matches that score. SCORED: how many those are.
    """

    EXISTING_ANTI = 0
    AFFINITY = 1
    ANTI_AFFINITY = 2
    SCORE = 3
    SCORED = 4


FILTERING = (Family.EXISTING_ANTI, Family.AFFINITY, Family.ANTI_AFFINITY)
"""What Filter looks at."""


Line = tuple[Family, str]
"""A family and a topology key."""
Relation = tuple[tuple[Line, int], ...]
"""What one pod of a class adds to each line; empty where two classes do not concern each other.

A SCORED line stands beside each SCORE line, whose sum may be 0.
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A term that parses; a selector of None matches nothing.

    meaning: its code among all that mean the same pods, whatever their key and weight.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int
    meaning: int

    def matches(self, pod: PodClass, namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod, whose namespace has these labels, is meant by the term."""
        return self.means(pod.facts.namespace, pod.labels, namespace_labels)

    def means(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether a pod of this namespace and these labels is meant."""
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels):
                return False
        return self.selector is not None and self.selector.matches(labels)

    def merged(self, known: NamespaceLabels) -> Term:
        """The term of a new pod: the namespaces that its selector selects are named as well.

        The selector stays, and new pods' terms are asked with no namespace labels: as upstream
        has it since 1.34, one that is met by no labels (NotIn, DoesNotExist) means every namespace.
        """
        chosen = self.namespace_selector
        if chosen is None:
            return self
        found = {name for name, labels in known.items() if chosen.matches(labels)}
        return replace(self, namespaces=self.namespaces | found)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a pod. A group with a term that does not parse is empty; `error` says why."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_anti: tuple[Term, ...] = ()
    error: str = ""

    @property
    def groups(self) -> tuple[tuple[Term, ...], ...]:
        return (self.affinity, self.anti_affinity, self.preferred, self.preferred_anti)

    def merged(self, known: NamespaceLabels) -> Terms:
        """See `Term.merged`."""
        affinity, anti, preferred, preferred_anti = (
            tuple(term.merged(known) for term in group) for group in self.groups
        )
        return Terms(affinity, anti, preferred, preferred_anti, self.error)


NO_TERMS = Terms()


class TermCompiler:
    """Compiles the terms of pods, with upstream's text for those that do not parse."""

    __slots__ = ("_meanings",)

    def __init__(self) -> None:
        self._meanings: Interner[Hashable] = Interner()

    def compile(self, pod: PodFacts) -> Terms:
        """The terms of a pod; NO_TERMS itself for one that has none."""
        named = {
            "requiredAffinityTerms": pod.pod_affinity,
            "requiredAntiAffinityTerms": pod.pod_anti_affinity,
            "preferredAffinityTerms": pod.preferred_pod_affinity,
            "preferredAntiAffinityTerms": pod.preferred_pod_anti_affinity,
        }
        if not any(named.values()):
            return NO_TERMS
        errors = {name: _first_error(terms) for name, terms in named.items()}
        affinity, anti, preferred, preferred_anti = (
            () if errors[name] else tuple(map(self._term, terms)) for name, terms in named.items()
        )
        text = join_errors(f"{name}: {error}" for name, error in errors.items() if error)
        return Terms(affinity, anti, preferred, preferred_anti, text)

    def _term(self, term: PodAffinityTerm) -> Term:
        meaning = (term.selector, term.namespaces, term.namespace_selector)
        return Term(
            term.topology_key,
            term.selector,
            frozenset(term.namespaces),
            term.namespace_selector,
            term.weight,
            self._meanings.code(meaning),
        )


def _first_error(terms: Iterable[PodAffinityTerm]) -> str:
    return next((term.error for term in terms if term.error), "")


def matches_all(terms: Sequence[Term], pod: PodClass) -> bool:
    """Whether a pod matches all of a new pod's (merged) terms; False where there are none."""
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


class WaitingTerms:
    """The required terms of a rejected pod, as its queueing hints compare them with pods.

    Raises HintError where one does not parse.
    """

    __slots__ = ("affinity", "anti_affinity")

    def __init__(self, pod: PodFacts, known: NamespaceLabels) -> None:
        problem = _first_error(pod.pod_affinity) or _first_error(pod.pod_anti_affinity)
        if problem:
            raise HintError(problem)
        terms = TermCompiler().compile(pod).merged(known)
        self.affinity, self.anti_affinity = terms.affinity, terms.anti_affinity

    def is_near(self, other: PodFacts) -> bool:
        """Whether a pod matches all the affinity terms."""
        return _means_all(self.affinity, other)

    def is_avoided(self, other: PodFacts) -> bool:
        """Whether a pod matches all the anti-affinity terms; one that matches some does not count.

        So upstream's hint has it, though any of them refuses a node.
        """
        return _means_all(self.anti_affinity, other)

    def is_avoided_by_some(self, other: PodFacts) -> bool:
        """Whether a pod matches any of the anti-affinity terms, so that it may refuse a node."""
        labels = dict(other.labels)
        return any(term.means(other.namespace, labels, {}) for term in self.anti_affinity)


def _means_all(terms: Sequence[Term], pod: PodFacts) -> bool:
    labels = dict(pod.labels)
    return bool(terms) and all(term.means(pod.namespace, labels, {}) for term in terms)


class NewPod:
    """A kind of pods to be placed, as it meets the pods on the nodes.

    terms: merged. namespace_labels: of the pod's namespace. scores: whether scoring looks at it.
    """

    __slots__ = ("_meant", "hard_weight", "info", "namespace_labels", "scores", "terms")

    def __init__(
        self,
        info: PodClass,
        terms: Terms,
        namespace_labels: Mapping[str, str],
        *,
        scores: bool,
        hard_weight: int,
    ) -> None:
        self.info = info
        self.terms = terms
        self.namespace_labels = namespace_labels
        self.scores = scores
        self.hard_weight = hard_weight
        self._meant: dict[int, bool] = {}

    def wishes(self, other: PodClass) -> Relation:
        """What the pod's own terms make of one pod of `other`: its namespace and labels matter."""
        terms = self.terms
        lines: Counter[Line] = Counter()
        if matches_all(terms.affinity, other):
            lines.update((Family.AFFINITY, term.topology_key) for term in terms.affinity)
        for term in terms.anti_affinity:
            if term.matches(other, {}):
                lines[Family.ANTI_AFFINITY, term.topology_key] += 1
        for sign, preferred in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for term in preferred:
                if term.matches(other, {}):
                    _add_score(lines, term.topology_key, sign * term.weight)
        return _relation(lines)

    def met_by(self, theirs: Terms) -> Relation:
        """What the (unmerged) terms of a pod on a node make of this one."""
        lines: Counter[Line] = Counter()
        for term in theirs.anti_affinity:
            if self._is_meant(term):
                lines[Family.EXISTING_ANTI, term.topology_key] += 1
        if self.scores:
            for term in theirs.affinity if self.hard_weight > 0 else ():
                if self._is_meant(term):
                    _add_score(lines, term.topology_key, self.hard_weight)
            for sign, preferred in ((1, theirs.preferred), (-1, theirs.preferred_anti)):
                for term in preferred:
                    if self._is_meant(term):
                        _add_score(lines, term.topology_key, sign * term.weight)
        return _relation(lines)

    def _is_meant(self, term: Term) -> bool:
        """Whether a term of another pod means this one; each meaning is tried once."""
        meant = self._meant.get(term.meaning)
        if meant is None:
            meant = self._meant[term.meaning] = term.matches(self.info, self.namespace_labels)
        return meant


def _add_score(lines: Counter[Line], key: str, weight: int) -> None:
    lines[Family.SCORE, key] += weight
    lines[Family.SCORED, key] += 1


def _relation(lines: Counter[Line]) -> Relation:
    return tuple(sorted(lines.items())) if lines else ()


def joined(ours: Relation, theirs: Relation) -> Relation:
    """The sum of two relations, line by line."""
    if not ours or not theirs:
        return ours or theirs
    lines = Counter(dict(ours))
    lines.update(dict(theirs))
    return _relation(lines)


ByTopology = dict[str, dict[str, int]]
"""Topology key → value → count."""

Kind = tuple[int, int]
"""See `TermIndex`."""


class Placed(NamedTuple):
    """Classes on rows, as arrays: int64[k] each. classes: `PodClass.index`. pods: how many."""

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
        self.with_terms: list[PodClass] = []
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

    def kind(self, info: PodClass) -> Kind:
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

    def is_related(self) -> bool:
        """Whether any class can count for this one: either it has terms, or some other has."""
        self._index.catch_up()
        return self._has_terms or bool(self._index.with_terms)

    def relates_to(self, other: PodClass) -> bool:
        """Whether a pod of that class, wherever it stands, counts for this one."""
        self._relate()
        return other.index < len(self._codes) and bool(self._codes[other.index])

    def relation_to(self, other: PodClass) -> Relation:
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

    def _code(self, other: PodClass, kind: Kind) -> int:
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


AVOIDED = (Family.EXISTING_ANTI, Family.ANTI_AFFINITY)
_REQUIRED = (*AVOIDED, Family.AFFINITY)

MAX_CLASSES = 16
"""Classes of which each may be something to each other; of more the answer is 0."""

Codes = Callable[[str], I32]
"""The label codes of a topology key: int32[row], -1 where a node lacks it."""


class _Sums:
    """For one line of a class, related pods by domain: int64[code]."""

    __slots__ = ("by_code", "codes", "is_avoided")

    def __init__(self, line: Line, vector: I64 | None, codes: I32) -> None:
        self.is_avoided = line[0] in AVOIDED
        self.codes = codes
        size = int(codes.max(initial=-1)) + 1
        self.by_code: I64 = np.zeros(size, dtype=np.int64)
        if vector is not None:
            there = codes >= 0
            found = np.bincount(codes[there], weights=vector[there], minlength=size)
            self.by_code = found.astype(np.int64)

    def admits(self, row: int) -> bool:
        code = self.codes[row]
        beside = code >= 0 and self.by_code[code] > 0
        return bool(not beside if self.is_avoided else beside)

    def come(self, row: int, pods: int) -> None:
        code = self.codes[row]
        if code >= 0:
            self.by_code[code] += pods


def may_stand(
    pods: Sequence[PodClass],
    rows: Rows,
    table: Table,
    counts_of: Mapping[PodClass, Counts],
    codes: Codes,
) -> int:
    """How many of the first pods, which come to `rows` in this order, may stand there.

    counts_of: by class, of all classes of the pods; none of their terms failed to parse.
    """
    meeting = counts_of if any(any(each.pod.terms.groups) for each in counts_of.values()) else {}
    if len(meeting) > MAX_CLASSES:
        return 0
    lines: dict[PodClass, dict[Line, _Sums]] = {}
    for info, counts in counts_of.items():
        vectors = counts.find(table)
        wanted = {line for line in vectors if line[0] in _REQUIRED}
        for other in meeting:
            wanted |= {line for line, _ in counts.relation_to(other) if line[0] in _REQUIRED}
        wanted |= {(Family.AFFINITY, each.topology_key) for each in counts.pod.terms.affinity}
        lines[info] = {line: _Sums(line, vectors.get(line), codes(line[1])) for line in wanted}
    if not any(lines.values()):
        return len(pods)
    means = {info: _means(info, meeting, lines) for info in counts_of}
    for place, (info, row) in enumerate(zip(pods, rows.tolist(), strict=True)):
        if not all(sums.admits(row) for sums in lines[info].values()):
            return place
        for sums, number in means[info]:
            sums.come(row, number)
    return len(pods)


def _means(
    info: PodClass,
    counts_of: Mapping[PodClass, Counts],
    lines: Mapping[PodClass, Mapping[Line, _Sums]],
) -> list[tuple[_Sums, int]]:
    """What one pod of a class adds to the sums of all."""
    return [
        (lines[other][line], number)
        for other, counts in counts_of.items()
        for line, number in counts.relation_to(info)
        if line in lines[other]
    ]

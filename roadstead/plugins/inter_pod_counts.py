"""Pod (anti-)affinity terms: which classes of pods they relate, and counts of related pods.

terms of two classes ──► `Relation`: what a pod of one adds to which counts of the other
`Counts`: related pods on each row of a table, recounted for changed rows
                         ──► by topology value, for Filter and Score
                         ──► `count_admitted`: pods that are placed one after another

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm.Matches),
pkg/scheduler/framework/types.go (PodInfo.Update) and plugins/interpodaffinity/plugin.go
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
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable, Rows, Table

NamespaceLabels = Mapping[str, Mapping[str, str]]
"""Namespace → its labels."""


def labels_of_namespaces(cluster: ClusterFacts) -> NamespaceLabels:
    """Return the labels of the namespaces in a cluster's facts."""
    return {name: dict(labels) for name, labels in cluster.namespaces}


class Family(IntEnum):
    """The counts to which a pod on a node can add.

    EXISTING_ANTI: its required anti-affinity terms that match the new pod. AFFINITY: it matches all
    required affinity terms of the new pod. ANTI_AFFINITY: required anti-affinity terms of the new
    pod that it matches. SCORE: the weights of all matches that score. SCORED: their number.
    """

    EXISTING_ANTI = 0
    AFFINITY = 1
    ANTI_AFFINITY = 2
    SCORE = 3
    SCORED = 4


FILTERING = (Family.EXISTING_ANTI, Family.AFFINITY, Family.ANTI_AFFINITY)
"""The counts that Filter reads."""


CounterKey = tuple[Family, str]
"""A counter: its family and topology key."""
Relation = tuple[tuple[CounterKey, int], ...]
"""What one pod of a class adds to each counter; empty if the classes are not related.

Each SCORE counter has a SCORED counter: weights may add up to 0 in a domain where terms match, and
such a domain is scored, too.
"""


@dataclass(frozen=True, slots=True)
class Term:
    """A valid term; a selector of None matches nothing.

    match_code: a code; terms that match the same pods, with any topology key and weight, share it.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int
    match_code: int

    def matches(self, pod: PodClass, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term matches a pod whose namespace has these labels."""
        return self.matches_labels(pod.facts.namespace, pod.labels, namespace_labels)

    def matches_labels(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term matches a pod of this namespace with these labels."""
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels):
                return False
        return self.selector is not None and self.selector.matches(labels)

    def merged(self, known: NamespaceLabels) -> Term:
        """Return the term of a new pod, with the namespaces that its selector selects added.

        The selector is kept, and terms of new pods are matched with no namespace labels. So, as
        upstream since 1.34, a selector that is satisfied without any label (NotIn, DoesNotExist)
        selects every namespace.
        """
        chosen = self.namespace_selector
        if chosen is None:
            return self
        found = {name for name, labels in known.items() if chosen.matches(labels)}
        return replace(self, namespaces=self.namespaces | found)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a pod. A group with an invalid term is empty; `error` has its first error."""

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
    """Compiles the terms of pods, with upstream's text for invalid ones."""

    __slots__ = ("_match_codes",)

    def __init__(self) -> None:
        self._match_codes: CodeInterner[Hashable] = CodeInterner()

    def compile(self, pod: PodFacts) -> Terms:
        """Return the terms of a pod; NO_TERMS itself for one without any."""
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
            self._match_codes.code(meaning),
        )


def _first_error(terms: Iterable[PodAffinityTerm]) -> str:
    return next((term.error for term in terms if term.error), "")


def matches_all(terms: Sequence[Term], pod: PodClass) -> bool:
    """Whether a pod matches all of a new pod's (merged) terms; False if there are none."""
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


class WaitingTerms:
    """The required terms of a rejected pod, for its queueing hints.

    Raises HintError if one does not parse.
    """

    __slots__ = ("affinity", "anti_affinity")

    def __init__(self, pod: PodFacts, known: NamespaceLabels) -> None:
        problem = _first_error(pod.pod_affinity) or _first_error(pod.pod_anti_affinity)
        if problem:
            raise HintError(problem)
        terms = TermCompiler().compile(pod).merged(known)
        self.affinity, self.anti_affinity = terms.affinity, terms.anti_affinity

    def matches_affinity(self, other: PodFacts) -> bool:
        """Whether a pod matches all the affinity terms."""
        return _match_all(self.affinity, other)

    def matches_anti_affinity(self, other: PodFacts) -> bool:
        """Whether a pod matches all the anti-affinity terms, as in upstream's hint.

        Filter, in contrast, refuses a node for a match of any of them.
        """
        return _match_all(self.anti_affinity, other)

    def matches_any_anti_affinity(self, other: PodFacts) -> bool:
        """Whether a pod matches any anti-affinity term, so that Filter may refuse its node."""
        labels = dict(other.labels)
        return any(term.matches_labels(other.namespace, labels, {}) for term in self.anti_affinity)


def _match_all(terms: Sequence[Term], pod: PodFacts) -> bool:
    labels = dict(pod.labels)
    return bool(terms) and all(term.matches_labels(pod.namespace, labels, {}) for term in terms)


class NewPod:
    """Pods to be placed with equal namespace, labels and terms.

    terms: merged. namespace_labels: of the pod's namespace. scores: whether Score runs for it.
    """

    __slots__ = ("_matched", "hard_weight", "namespace_labels", "pod_class", "scores", "terms")

    def __init__(
        self,
        pod_class: PodClass,
        terms: Terms,
        namespace_labels: Mapping[str, str],
        *,
        scores: bool,
        hard_weight: int,
    ) -> None:
        self.pod_class = pod_class
        self.terms = terms
        self.namespace_labels = namespace_labels
        self.scores = scores
        self.hard_weight = hard_weight
        self._matched: dict[int, bool] = {}

    def own_terms_relation(self, other: PodClass) -> Relation:
        """Return the relation of this pod's terms to `other`, by its namespace and labels."""
        terms = self.terms
        counters: Counter[CounterKey] = Counter()
        if matches_all(terms.affinity, other):
            counters.update((Family.AFFINITY, term.topology_key) for term in terms.affinity)
        for term in terms.anti_affinity:
            if term.matches(other, {}):
                counters[Family.ANTI_AFFINITY, term.topology_key] += 1
        for sign, preferred in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for term in preferred:
                if term.matches(other, {}):
                    _add_score(counters, term.topology_key, sign * term.weight)
        return _relation(counters)

    def existing_terms_relation(self, theirs: Terms) -> Relation:
        """Return the relation of the (unmerged) terms of a pod on a node to this pod."""
        counters: Counter[CounterKey] = Counter()
        for term in theirs.anti_affinity:
            if self._is_matched(term):
                counters[Family.EXISTING_ANTI, term.topology_key] += 1
        if self.scores:
            for term in theirs.affinity if self.hard_weight > 0 else ():
                if self._is_matched(term):
                    _add_score(counters, term.topology_key, self.hard_weight)
            for sign, preferred in ((1, theirs.preferred), (-1, theirs.preferred_anti)):
                for term in preferred:
                    if self._is_matched(term):
                        _add_score(counters, term.topology_key, sign * term.weight)
        return _relation(counters)

    def _is_matched(self, term: Term) -> bool:
        """Whether a term of another pod matches this one; evaluated once per `Term.match_code`."""
        is_match = self._matched.get(term.match_code)
        if is_match is None:
            is_match = self._matched[term.match_code] = term.matches(
                self.pod_class, self.namespace_labels
            )
        return is_match


def _add_score(counters: Counter[CounterKey], key: str, weight: int) -> None:
    counters[Family.SCORE, key] += weight
    counters[Family.SCORED, key] += 1


def _relation(counters: Counter[CounterKey]) -> Relation:
    return tuple(sorted(counters.items())) if counters else ()


def sum_relations(ours: Relation, theirs: Relation) -> Relation:
    """Return the sum of two relations, by counter."""
    if not ours or not theirs:
        return ours or theirs
    counters = Counter(dict(ours))
    counters.update(dict(theirs))
    return _relation(counters)


ByTopology = dict[str, dict[str, int]]
"""Topology key → value → count."""

PodProfile = tuple[int, int]
"""(code of namespace and labels, code of terms); see `TermIndex`."""


class PodsByClass(NamedTuple):
    """Pods on rows by class: int64[k] each. classes: `PodClass.index`. pods: their number."""

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
    """The pods on all rows of one table, updated by row and shared by all `Counts`.

    Only the largest table is kept: overlays, which are no larger, must not replace it.
    """

    __slots__ = ("_columns", "_node_version", "_pods", "_version")

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._node_version = self._version = -1

    def adopts(self, table: NodeTable) -> bool:
        """Whether this table is the kept one, or becomes it because it is larger."""
        if self._columns is None or len(table) > self._columns.size:
            self._columns, self._version = table.columns, -1
        return self._columns is table.columns

    def read(self, table: NodeTable) -> PodsByClass:
        """Return the pods on all rows of the kept table."""
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
        old, new = unchanged[self._pods.rows], read_pods(table, rows)
        self._pods = PodsByClass(
            *(
                np.concatenate([mine[old], theirs])
                for mine, theirs in zip(self._pods, new, strict=True)
            )
        )


class TermIndex:
    """The classes of a process by the facts that inter-pod affinity reads.

    These are two codes (`PodProfile`): one for namespace and labels, one for terms. Classes that
    differ only in other facts, such as requests, have equal codes and share their counts.

    profiles: by `PodClass.index`. terms: unmerged, by their code. with_terms: classes with terms.
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
            self.profiles.append((self._label_codes.code((facts.namespace, facts.labels)), terms))
            if any(self.terms[terms].groups):
                self.with_terms.append(pod_class)

    def profile(self, pod_class: PodClass) -> PodProfile:
        """Return the codes of a class of this process."""
        if pod_class.index >= len(self.profiles):
            self.catch_up()
        return self.profiles[pod_class.index]


class Counts:
    """Related pods on each row, for pods to be placed that have equal codes in `TermIndex`.

    pod: these pods. cells: numbers in memory: one per class, and one per counter and row.
    """

    __slots__ = (
        "_by_profile",
        "_codes",
        "_columns",
        "_existing_terms_relations",
        "_has_terms",
        "_index",
        "_node_version",
        "_own_terms_relations",
        "_relations",
        "_seen",
        "_vectors",
        "_version",
        "pod",
        "size",
    )  # fmt: skip

    def __init__(self, pod: NewPod, index: TermIndex) -> None:
        self.pod = pod
        self._has_terms = any(pod.terms.groups)
        self._index = index
        # Relations by code, 0 for none; then the code of each class, and of each `PodProfile`.
        self._relations: CodeInterner[Relation] = CodeInterner([()])
        self._codes: I64 = np.zeros(0, dtype=np.int64)
        self._by_profile: dict[PodProfile, int] = {}
        # How many candidates of `_relate` have been compared with the pod.
        self._seen = 0
        self._own_terms_relations: dict[int, Relation] = {}
        self._existing_terms_relations: dict[int, Relation] = {}
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
        """Whether any class can be related: this one has terms, or some other has."""
        self._index.catch_up()
        return self._has_terms or bool(self._index.with_terms)

    def relates_to(self, other: PodClass) -> bool:
        """Whether a pod of class `other` on a node adds to any counter."""
        self._relate()
        return other.index < len(self._codes) and bool(self._codes[other.index])

    def relation_to(self, other: PodClass) -> Relation:
        """Return what one pod of class `other` on a node adds to each counter."""
        self._relate()
        if other.index >= len(self._codes):
            return ()
        code = int(self._codes[other.index])
        return self._relations.values[code]

    def _relate(self) -> None:
        """Compute the relation to each new class; only to those with terms if the pod has none."""
        index = self._index
        index.catch_up()
        candidates = index.classes.pod_classes if self._has_terms else index.with_terms
        if self._seen == len(candidates):
            return
        found = [
            (other.index, code)
            for other in candidates[self._seen :]
            if (code := self._code(other, index.profiles[other.index]))
        ]
        self._seen = len(candidates)
        if found:
            codes = np.zeros(len(index.profiles), dtype=np.int64)
            codes[: len(self._codes)] = self._codes
            codes[[at for at, _ in found]] = [code for _, code in found]
            self._codes = codes

    def _code(self, other: PodClass, profile: PodProfile) -> int:
        """Return the relation's code; each half of a `PodProfile` is compared only once."""
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

    def find(self, table: Table) -> Mapping[CounterKey, I64]:
        """Return for each counter what the pods on each row add: int64[row]; some are all zero.

        Valid until the next call, which may write into the same arrays.
        """
        assert table.columns.classes is self._index.classes, "a table of other classes"
        self._relate()
        if not len(self._codes):
            return {}
        table_pods = self._index.table_pods
        # Nothing is cached for views and overlays.
        if not isinstance(table, NodeTable) or not table_pods.adopts(table):
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
        known = np.minimum(placed.classes, len(self._codes))
        codes = np.append(self._codes, 0)[known]
        for code in np.unique(codes[codes > 0]).tolist():
            related = codes == code
            where, pods = placed.rows[related], placed.pods[related]
            for counter, each in self._relations.values[code]:
                vector = vectors.get(counter)
                if vector is None:
                    vector = vectors[counter] = np.zeros(len(table), dtype=np.int64)
                np.add.at(vector, where, each * pods)
        return vectors


def label_codes(table: Table, key: str) -> tuple[CodeInterner[str], I32]:
    """Return a label key's values and each row's code: int32[row], -1 if the node lacks it."""
    column = table.columns.label(key)
    return column.values, table._codes(column.codes)


def by_topology(table: Table, vectors: Mapping[CounterKey, I64], family: Family) -> ByTopology:
    """Return the sums of a family by topology key and value, without zeros."""
    found = {}
    for (kind, key), vector in vectors.items():
        if kind is family:
            values, sums = _sums(table, key, vector)
            listed = np.flatnonzero(sums)
            if len(listed):
                found[key] = _named(values, listed, sums)
    return found


def scores_by_topology(table: Table, vectors: Mapping[CounterKey, I64]) -> ByTopology:
    """Return scores by topology key and value, with zeros where matches cancel each other."""
    found = {}
    for (kind, key), vector in vectors.items():
        if kind is Family.SCORED:
            values, matches = _sums(table, key, vector)
            listed = np.flatnonzero(matches)
            if len(listed):
                _, sums = _sums(table, key, vectors[Family.SCORE, key])
                found[key] = _named(values, listed, sums)
    return found


def _sums(table: Table, key: str, vector: I64) -> tuple[CodeInterner[str], I64]:
    """Sum a vector over the rows of each value of a key: int64[value]."""
    values, codes = label_codes(table, key)
    # Sums in float64 are exact below 2^53; index 0 is for nodes without the key.
    sums = np.bincount(codes + 1, weights=vector, minlength=len(values) + 1)[1:]
    return values, sums.astype(np.int64)


def _named(values: CodeInterner[str], listed: Rows, sums: I64) -> dict[str, int]:
    names = values.values
    return dict(zip([names[code] for code in listed.tolist()], sums[listed].tolist(), strict=True))


def counts_for_row(counts: ByTopology, row: Table, added: Mapping[str, int]) -> ByTopology:
    """Return the counts that one row needs after pods of its node added `added` by topology key.

    These are the counts of its own domains and, for each key, of one other domain that is not
    empty: of other domains, Filter reads only whether any has a count (`FilterState.first`).
    """
    found = {}
    for key in counts.keys() | added.keys():
        of_key = counts.get(key, {})
        values, codes = label_codes(row, key)
        own = values.values[codes[0]] if codes[0] >= 0 else None
        own_count = of_key.get(own, 0) + added.get(key, 0) if own is not None else 0
        seen = {own: own_count} if own is not None and own_count else {}
        elsewhere = next(((value, n) for value, n in of_key.items() if value != own), None)
        if elsewhere is not None:
            seen[elsewhere[0]] = elsewhere[1]
        if seen:
            found[key] = seen
    return found


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
        values, codes = label_codes(table, self.key)
        if values is not self._values or len(values) != len(self._by_code) - 1:
            self._values, self._by_code = values, self._tabulate(values)
        found: I64 = self._by_code[codes]
        return found

    def _tabulate(self, values: CodeInterner[str]) -> I64:
        """Return counts by code: int64[code + 1]; the last is for nodes without the key (-1)."""
        by_code = np.zeros(len(values) + 1, dtype=np.int64)
        codes = np.fromiter(map(values.find, self._counts), np.intp, len(self._counts))
        by_code[codes] = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        # `find` returns -1 for a value that this table does not have.
        by_code[-1] = 0
        return by_code


ANTI_FAMILIES = (Family.EXISTING_ANTI, Family.ANTI_AFFINITY)
_REQUIRED = (*ANTI_FAMILIES, Family.AFFINITY)

MAX_CLASSES = 16
"""Most classes that `count_admitted` compares pairwise; for more it returns 0."""

Codes = Callable[[str], I32]
"""Returns the label codes of a topology key: int32[row], -1 if a node lacks it."""


class _Sums:
    """Related pods by domain for one counter of a class: int64[code]."""

    __slots__ = ("by_code", "codes", "is_anti")

    def __init__(self, counter: CounterKey, vector: I64 | None, codes: I32) -> None:
        self.is_anti = counter[0] in ANTI_FAMILIES
        self.codes = codes
        size = int(codes.max(initial=-1)) + 1
        self.by_code: I64 = np.zeros(size, dtype=np.int64)
        if vector is not None:
            has_key = codes >= 0
            found = np.bincount(codes[has_key], weights=vector[has_key], minlength=size)
            self.by_code = found.astype(np.int64)

    def admits(self, row: int) -> bool:
        """Whether the counter lets a pod of the class pass on a row.

        The rule for the first pod of a group (`FilterState.first`) is left out.
        """
        code = self.codes[row]
        has_related = code >= 0 and self.by_code[code] > 0
        return bool(not has_related if self.is_anti else has_related)

    def add(self, row: int, pods: int) -> None:
        code = self.codes[row]
        if code >= 0:
            self.by_code[code] += pods


def count_admitted(
    pods: Sequence[PodClass],
    rows: Rows,
    table: Table,
    counts_of: Mapping[PodClass, Counts],
    codes: Codes,
) -> int:
    """Return how many of the first pods pass Filter if placed on `rows` in this order.

    counts_of: of all classes of the pods, without invalid terms. The result may be too low: there
    may be too many classes to compare, and the first pod of a group is not admitted without others.
    """
    # Without terms, none of these pods adds to a counter of another.
    related = counts_of if any(any(each.pod.terms.groups) for each in counts_of.values()) else {}
    if len(related) > MAX_CLASSES:
        return 0
    counters: dict[PodClass, dict[CounterKey, _Sums]] = {}
    for pod_class, counts in counts_of.items():
        vectors = counts.find(table)
        wanted = {counter for counter in vectors if counter[0] in _REQUIRED}
        for other in related:
            wanted |= {
                counter for counter, _ in counts.relation_to(other) if counter[0] in _REQUIRED
            }
        # Also without matching pods: a sum of 0 refuses the node.
        wanted |= {(Family.AFFINITY, each.topology_key) for each in counts.pod.terms.affinity}
        counters[pod_class] = {
            counter: _Sums(counter, vectors.get(counter), codes(counter[1])) for counter in wanted
        }
    if not any(counters.values()):
        return len(pods)
    added_by = {pod_class: _added_by(pod_class, related, counters) for pod_class in counts_of}
    for index, (pod_class, row) in enumerate(zip(pods, rows.tolist(), strict=True)):
        if not all(sums.admits(row) for sums in counters[pod_class].values()):
            return index
        for sums, number in added_by[pod_class]:
            sums.add(row, number)
    return len(pods)


def _added_by(
    pod_class: PodClass,
    counts_of: Mapping[PodClass, Counts],
    counters: Mapping[PodClass, Mapping[CounterKey, _Sums]],
) -> list[tuple[_Sums, int]]:
    """Return what one pod of a class adds to the sums of all classes."""
    return [
        (counters[other][counter], number)
        for other, counts in counts_of.items()
        for counter, number in counts.relation_to(pod_class)
        if counter in counters[other]
    ]

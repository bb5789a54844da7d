"""Pod (anti-)affinity terms as InterPodAffinity compares them with pods, and what pairs of classes
of pods say to each other.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm.Matches),
pkg/scheduler/framework/types.go (PodInfo.Update) and plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodAffinityTerm, PodFacts
from roadstead.facts.selectors import LabelSelector, join_errors
from roadstead.framework.events import HintError
from roadstead.nodes.interning import Interner
from roadstead.nodes.pod_info import PodInfo

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

    def matches(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> bool:
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


def matches_all(terms: Sequence[Term], pod: PodInfo) -> bool:
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
        info: PodInfo,
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

    def wishes(self, other: PodInfo) -> Relation:
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

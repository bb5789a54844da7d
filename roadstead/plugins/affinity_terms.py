"""Pod (anti-)affinity terms, compiled: the pods and namespaces that they select.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (AffinityTerm.Matches),
pkg/scheduler/framework/types.go (PodInfo.Update) and plugins/interpodaffinity/plugin.go
(mergeAffinityTermNamespacesIfNotEmpty).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodAffinityTerm, PodFacts
from roadstead.facts.selectors import LabelSelector, join_errors
from roadstead.framework.events import HintError
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.pod_class import PodClass

LabelsByNamespace = Mapping[str, Mapping[str, str]]
"""Namespace → its labels."""


def labels_of_namespaces(cluster: ClusterFacts) -> LabelsByNamespace:
    """Return the labels of the namespaces in a cluster's facts."""
    return {name: dict(labels) for name, labels in cluster.namespaces}


@dataclass(frozen=True, slots=True)
class Term:
    """A valid term; a selector of None matches nothing.

    match_code: equal for terms with equal selectors and namespaces, which match the same pods, even
    if their topology keys or weights differ.
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
            selector = self.namespace_selector
            if selector is None or not selector.matches(namespace_labels):
                return False
        return self.selector is not None and self.selector.matches(labels)

    def merged(self, labels_of: LabelsByNamespace) -> Term:
        """Return the term of a pod to be placed, with the namespaces that it selects added.

        Added are the namespaces that the namespaceSelector selects now. The returned term keeps the
        selector, and callers match it with `{}` for the labels of namespaces. So, as upstream since
        1.34, a selector that is satisfied without any label (NotIn, DoesNotExist) selects every
        namespace.
        """
        selector = self.namespace_selector
        if selector is None:
            return self
        selected = {name for name, labels in labels_of.items() if selector.matches(labels)}
        return replace(self, namespaces=self.namespaces | selected)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a pod, in four groups.

    If any term of a group is invalid, the group is empty. error: the first error of each such
    group, joined; "" if all terms are valid.
    """

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_anti: tuple[Term, ...] = ()
    error: str = ""

    @property
    def groups(self) -> tuple[tuple[Term, ...], ...]:
        return (self.affinity, self.anti_affinity, self.preferred, self.preferred_anti)

    def merged(self, labels_of: LabelsByNamespace) -> Terms:
        """Return the terms with the namespaces that they select added; see `Term.merged`."""
        affinity, anti, preferred, preferred_anti = (
            tuple(term.merged(labels_of) for term in group) for group in self.groups
        )
        return Terms(affinity, anti, preferred, preferred_anti, self.error)


NO_TERMS = Terms()


class TermCompiler:
    """Compile the terms of pods, with upstream's text for invalid ones."""

    __slots__ = ("_match_codes",)

    def __init__(self) -> None:
        # Gives equal values equal codes.
        self._match_codes: CodeInterner[Hashable] = CodeInterner()

    def compile(self, pod: PodFacts) -> Terms:
        """Return the terms of a pod; NO_TERMS itself for one without any."""
        groups = {
            "requiredAffinityTerms": pod.pod_affinity,
            "requiredAntiAffinityTerms": pod.pod_anti_affinity,
            "preferredAffinityTerms": pod.preferred_pod_affinity,
            "preferredAntiAffinityTerms": pod.preferred_pod_anti_affinity,
        }
        if not any(groups.values()):
            return NO_TERMS
        errors = {name: _first_error(terms) for name, terms in groups.items()}
        affinity, anti, preferred, preferred_anti = (
            () if errors[name] else tuple(map(self._term, terms)) for name, terms in groups.items()
        )
        joined = join_errors(f"{name}: {error}" for name, error in errors.items() if error)
        return Terms(affinity, anti, preferred, preferred_anti, joined)

    def _term(self, term: PodAffinityTerm) -> Term:
        matched_by = (term.selector, term.namespaces, term.namespace_selector)
        return Term(
            term.topology_key,
            term.selector,
            frozenset(term.namespaces),
            term.namespace_selector,
            term.weight,
            self._match_codes.code(matched_by),
        )


def _first_error(terms: Iterable[PodAffinityTerm]) -> str:
    return next((term.error for term in terms if term.error), "")


def matches_all(terms: Sequence[Term], pod: PodClass) -> bool:
    """Whether a pod matches all of a new pod's terms (`Term.merged`); False if there are none."""
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


class WaitingTerms:
    """The required terms of a rejected pod, for its queueing hints.

    Raises HintError, with which a hint fails, if a term does not parse.
    """

    __slots__ = ("affinity", "anti_affinity")

    def __init__(self, pod: PodFacts, labels_of: LabelsByNamespace) -> None:
        problem = _first_error(pod.pod_affinity) or _first_error(pod.pod_anti_affinity)
        if problem:
            raise HintError(problem)
        terms = TermCompiler().compile(pod).merged(labels_of)
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

"""Relations of two classes by their (anti-)affinity terms.

A counter of a class counts something about the pods in a domain: its `Family` says what, its
topology key which domains. A `Relation` is what one pod of another class on a node adds to each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum

from roadstead.nodes.pod_class import PodClass
from roadstead.plugins.affinity_terms import Term, Terms, matches_all


class Family(IntEnum):
    """The counts to which a pod on a node can add.

    EXISTING_ANTI: its required anti-affinity terms that match the new pod. AFFINITY: it matches all
    required affinity terms of the new pod. ANTI_AFFINITY: required anti-affinity terms of the new
    pod that it matches. SCORE: the sum of the weights of all matches that score. SCORED: the number
    of these matches.
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


class PodsToPlace:
    """Pods to be placed with equal namespace, labels and terms.

    terms: with the namespaces that their namespaceSelectors select (`Term.merged`).
    namespace_labels: labels of the pods' namespace. runs_score: whether Score runs for them.
    hard_weight: hardPodAffinityWeight.
    """

    __slots__ = ("_matched", "hard_weight", "namespace_labels", "pod_class", "runs_score", "terms")

    def __init__(
        self,
        pod_class: PodClass,
        terms: Terms,
        namespace_labels: Mapping[str, str],
        *,
        runs_score: bool,
        hard_weight: int,
    ) -> None:
        self.pod_class = pod_class
        self.terms = terms
        self.namespace_labels = namespace_labels
        self.runs_score = runs_score
        self.hard_weight = hard_weight
        # By `Term.match_code`: whether a term of another pod matches.
        self._matched: dict[int, bool] = {}

    def own_terms_relation(self, other: PodClass) -> Relation:
        """Return what a pod of class `other` adds to each counter by this pod's terms."""
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

    def existing_terms_relation(self, existing: Terms) -> Relation:
        """Return what a pod on a node with these terms adds to each counter, by the terms alone."""
        counters: Counter[CounterKey] = Counter()
        for term in existing.anti_affinity:
            if self._is_matched(term):
                counters[Family.EXISTING_ANTI, term.topology_key] += 1
        if self.runs_score:
            for term in existing.affinity if self.hard_weight > 0 else ():
                if self._is_matched(term):
                    _add_score(counters, term.topology_key, self.hard_weight)
            for sign, preferred in ((1, existing.preferred), (-1, existing.preferred_anti)):
                for term in preferred:
                    if self._is_matched(term):
                        _add_score(counters, term.topology_key, sign * term.weight)
        return _relation(counters)

    def _is_matched(self, term: Term) -> bool:
        """Whether a term of another pod matches this pod; evaluated once per `Term.match_code`."""
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


def sum_relations(first: Relation, second: Relation) -> Relation:
    """Return the sum of two relations, by counter."""
    if not first or not second:
        return first or second
    counters = Counter(dict(first))
    counters.update(dict(second))
    return _relation(counters)

"""interpodaffinity, ported one pod and one node at a time, close to the Go code of 1.34.

Nodes are NodeInfo of tests.plugins.upstream; nothing here uses tables, classes or shards.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from roadstead.facts.selectors import LabelSelector
from tests.plugins.upstream import MAX_NODE_SCORE

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_AWAY = "node(s) didn't match pod anti-affinity rules"
NOT_WANTED = "node(s) didn't satisfy existing pods anti-affinity rules"
SKIP = "Skip"


@dataclass
class AffinityTerm:
    """staging/src/k8s.io/kube-scheduler/framework AffinityTerm."""

    topology_key: str
    namespaces: set[str]
    selector: LabelSelector | None
    namespace_selector: LabelSelector | None
    weight: int

    def matches(self, pod, namespace_labels):
        selected = self.namespace_selector is not None and self.namespace_selector.matches(
            namespace_labels
        )
        if pod.namespace in self.namespaces or selected:
            return self.selector is not None and self.selector.matches(dict(pod.labels))
        return False


@dataclass
class PodTerms:
    """pkg/scheduler/framework/types.go PodInfo: a list that does not parse is empty."""

    affinity: list[AffinityTerm] = field(default_factory=list)
    anti_affinity: list[AffinityTerm] = field(default_factory=list)
    preferred: list[AffinityTerm] = field(default_factory=list)
    preferred_anti: list[AffinityTerm] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def pod_terms(pod):
    found = PodTerms()
    for name, target, terms in (
        ("requiredAffinityTerms", found.affinity, pod.pod_affinity),
        ("requiredAntiAffinityTerms", found.anti_affinity, pod.pod_anti_affinity),
        ("preferredAffinityTerms", found.preferred, pod.preferred_pod_affinity),
        ("preferredAntiAffinityTerms", found.preferred_anti, pod.preferred_pod_anti_affinity),
    ):
        for term in terms:
            if term.error:
                found.errors.append(f"{name}: {term.error}")
                target.clear()
                break
            target.append(
                AffinityTerm(
                    term.topology_key,
                    set(term.namespaces),
                    term.selector,
                    term.namespace_selector,
                    term.weight,
                )
            )
    return found


def aggregate(errors):
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


@dataclass
class Affinity:
    """The plugin with its arguments; namespaces: name → labels."""

    namespaces: dict[str, dict[str, str]]
    hard_weight: int = 1
    ignore_preferred: bool = False

    def new_pod(self, pod):
        """NewPodInfo; mergeAffinityTermNamespacesIfNotEmpty keeps the selector since 1.34."""
        terms = pod_terms(pod)
        for group in (terms.affinity, terms.anti_affinity, terms.preferred, terms.preferred_anti):
            for term in group:
                if term.namespace_selector is not None:
                    for name, labels in self.namespaces.items():
                        if term.namespace_selector.matches(labels):
                            term.namespaces.add(name)
        return terms

    def pre_filter(self, pod, nodes):
        """Return the counts (existing anti, affinity, anti-affinity), the status' text, or SKIP."""
        terms = self.new_pod(pod)
        if terms.errors:
            return f"parsing pod: {aggregate(terms.errors)}"
        labels = self.namespaces.get(pod.namespace, {})
        existing, affinity, anti = defaultdict(int), defaultdict(int), defaultdict(int)
        for node in nodes:
            for other in node.pods:
                for term in pod_terms(other).anti_affinity:
                    if term.matches(pod, labels):
                        count(existing, node, term.topology_key)
                if matches_all(terms.affinity, other):
                    for term in terms.affinity:
                        count(affinity, node, term.topology_key)
                for term in terms.anti_affinity:
                    if term.matches(other, {}):
                        count(anti, node, term.topology_key)
        if not existing and not terms.affinity and not terms.anti_affinity:
            return SKIP
        return existing, affinity, anti

    def filter(self, pod, node, counts):
        """Return the reason why a node does not fit the pod, or None."""
        existing, affinity, anti = counts
        terms = self.new_pod(pod)
        labels = dict(node.facts.labels)
        if not satisfies_affinity(pod, terms.affinity, labels, affinity):
            return NOT_NEAR
        for term in terms.anti_affinity:
            key = term.topology_key
            if key in labels and anti.get((key, labels[key]), 0) > 0:
                return NOT_AWAY
        if any(existing.get(pair, 0) > 0 for pair in labels.items()):
            return NOT_WANTED
        return None

    def pre_score(self, pod, nodes):
        """Return scores by (key, value), the error's text, or SKIP."""
        preferring = pod.preferred_pod_affinity or pod.preferred_pod_anti_affinity
        if self.ignore_preferred and not preferring:
            return SKIP
        terms = self.new_pod(pod)
        if terms.errors:
            return f"failed to parse pod: {aggregate(terms.errors)}"
        scores = defaultdict(int)
        for node in nodes:
            for other in node.pods:
                self._process_existing(pod, terms, other, node, scores)
        return dict(scores) if scores else SKIP

    def _process_existing(self, pod, terms, other, node, scores):
        theirs, labels = pod_terms(other), self.namespaces.get(pod.namespace, {})
        process(scores, node, terms.preferred, other, {}, 1)
        process(scores, node, terms.preferred_anti, other, {}, -1)
        if self.hard_weight > 0:
            for term in theirs.affinity:
                term.weight = self.hard_weight
            process(scores, node, theirs.affinity, pod, labels, 1)
        process(scores, node, theirs.preferred, pod, labels, 1)
        process(scores, node, theirs.preferred_anti, pod, labels, -1)


def count(counts, node, key):
    labels = dict(node.facts.labels)
    if key in labels:
        counts[key, labels[key]] += 1


def process(scores, node, terms, pod, namespace_labels, sign):
    labels = dict(node.facts.labels)
    for term in terms:
        if term.matches(pod, namespace_labels) and term.topology_key in labels:
            scores[term.topology_key, labels[term.topology_key]] += sign * term.weight


def matches_all(terms, pod):
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


def satisfies_affinity(pod, terms, labels, counts):
    pods_exist = True
    for term in terms:
        if term.topology_key not in labels:
            return False
        if counts.get((term.topology_key, labels[term.topology_key]), 0) <= 0:
            pods_exist = False
    return pods_exist or (not counts and matches_all(terms, pod))


def score(scores, node):
    return sum(scores.get(pair, 0) for pair in dict(node.facts.labels).items())


def normalize(raw):
    low, high = min(raw), max(raw)
    if high == low:
        return [0] * len(raw)
    return [int(float(MAX_NODE_SCORE) * (float(each - low) / float(high - low))) for each in raw]

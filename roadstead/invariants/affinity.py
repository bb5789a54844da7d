"""Required affinity and anti-affinity between pods, in both directions, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodAffinityTerm, PodFacts
from roadstead.invariants.world import World, label_value, selects


def unmet_affinity(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: each required affinity term matches a pod in the node's domain.

    As upstream, a pod that matches its own terms needs no other while no pod matches them.
    """
    terms = pod.pod_affinity
    if not terms:
        return
    missing = [term for term in terms if label_value(node, term.topology_key) is None]
    if missing:
        yield f"the node has no {missing[0].topology_key}"
        return
    matching = [
        (there, other)
        for there, other in world.running()
        if all(_selects_other(world, term, other) for term in terms)
    ]
    for term in terms:
        domain = label_value(node, term.topology_key)
        if any(label_value(there, term.topology_key) == domain for there, _ in matching):
            continue
        # Upstream counts a matching pod in the domains of its node; without any it is not counted.
        keys = [each.topology_key for each in terms]
        is_any_counted = any(
            label_value(there, key) is not None for key in keys for there, _ in matching
        )
        if is_any_counted or not all(_selects_other(world, each, pod) for each in terms):
            yield f"affinity over {term.topology_key}: no such pod is near"
            return


def violated_anti_affinity(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: no required anti-affinity between the pod and one in the node's domain, either way."""
    for there, other in world.running() if pod.pod_anti_affinity else ():
        for term in pod.pod_anti_affinity:
            if _same_domain(there, node, term) and _selects_other(world, term, other):
                yield f"anti-affinity over {term.topology_key}: such a pod is near"
                return
    for there, other in world.running_with_anti_affinity():
        for term in other.pod_anti_affinity:
            if _same_domain(there, node, term) and _selects(world, term, pod):
                yield f"a pod near excludes it over {term.topology_key}"
                return


def _same_domain(one: NodeFacts, other: NodeFacts, term: PodAffinityTerm) -> bool:
    domain = label_value(one, term.topology_key)
    return domain is not None and domain == label_value(other, term.topology_key)


def _selects_other(world: World, term: PodAffinityTerm, other: PodFacts) -> bool:
    """Whether a term of the pod to be bound selects another pod.

    Upstream resolves the namespace selector of such a term to names, and then matches it against
    empty labels: a selector that matches those (NotIn, DoesNotExist) selects every namespace.
    """
    if selects(term.namespace_selector, {}):
        return selects(term.selector, dict(other.labels))
    return _selects(world, term, other)


def _selects(world: World, term: PodAffinityTerm, pod: PodFacts) -> bool:
    in_namespace = pod.namespace in term.namespaces or selects(
        term.namespace_selector, world.namespace_labels(pod.namespace)
    )
    return in_namespace and selects(term.selector, dict(pod.labels))

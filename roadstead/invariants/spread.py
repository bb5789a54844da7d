"""Hard topology spread, counted again over all pods for each bind."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, SpreadConstraint
from roadstead.invariants.node_rules import matches_node_affinity, tolerates
from roadstead.invariants.world import World, label_value, selects


def exceeded_skew(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: the domain's count, plus the pod itself, minus the least count, is at most maxSkew."""
    hard = [each for each in pod.spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    labels = dict(pod.labels)
    for each in hard:
        domain = label_value(node, each.topology_key)
        if domain is None:
            yield f"the node has no {each.topology_key}"
            continue
        counts = _counts(world, pod, each, hard)
        least = min(counts.values(), default=None)
        if least is None:
            continue
        if len(counts) < each.min_domains:
            least = 0
        itself = int(selects(each.effective_selector(labels), labels))
        skew = counts.get(domain, 0) + itself - least
        if skew > each.max_skew:
            yield f"skew {skew} over {each.topology_key} is more than {each.max_skew}"


def _counts(
    world: World, pod: PodFacts, constraint: SpreadConstraint, hard: list[SpreadConstraint]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    selector = constraint.effective_selector(dict(pod.labels))
    for node in world.nodes.values():
        # As upstream (calPreFilterState), a node that lacks the key of any hard constraint counts
        # for none of them.
        if any(label_value(node, each.topology_key) is None for each in hard):
            continue
        if constraint.node_affinity_policy == "Honor" and not matches_node_affinity(pod, node):
            continue
        if constraint.node_taints_policy == "Honor" and not _tolerates_all(pod, node):
            continue
        domain = label_value(node, constraint.topology_key)
        assert domain is not None
        # As upstream (countPodsMatchSelector), an empty selector counts no pod.
        counts[domain] = counts.get(domain, 0) + sum(
            other.namespace == pod.namespace
            and not other.is_terminating
            and selector is not None
            and bool(selector.requirements)
            and selects(selector, dict(other.labels))
            for other in world.on(node.name)
        )
    return counts


def _tolerates_all(pod: PodFacts, node: NodeFacts) -> bool:
    return all(
        tolerates(pod, taint)
        for taint in node.taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )

"""The cluster at one point of a journal: nodes and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import (
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    parse_int64,
)


@dataclass(slots=True)
class World:
    """Nodes and pods. nodes: by name. pods: node name → uid → facts, also of removed nodes.

    with_anti_affinity: uid → node name, of the few pods that have required anti-affinity terms.
    leaves_to_devices: whether DRAExtendedResource is on; then devices may serve resources that a
    node does not offer.
    """

    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    pods: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    with_anti_affinity: dict[str, str] = field(default_factory=dict)
    leaves_to_devices: bool = False

    def on(self, node_name: str) -> list[PodFacts]:
        """Return the pods of one node."""
        return list(self.pods.get(node_name, {}).values())

    def running(self) -> Iterator[tuple[NodeFacts, PodFacts]]:
        """Yield every pod on a node that exists."""
        for name, node in self.nodes.items():
            for facts in self.pods.get(name, {}).values():
                yield node, facts

    def running_with_anti_affinity(self) -> Iterator[tuple[NodeFacts, PodFacts]]:
        """Yield every pod with required anti-affinity terms on a node that exists."""
        for uid, name in self.with_anti_affinity.items():
            if name in self.nodes:
                yield self.nodes[name], self.pods[name][uid]

    def put(self, uid: str, node_name: str, facts: PodFacts) -> None:
        self.pods.setdefault(node_name, {})[uid] = facts
        if facts.pod_anti_affinity:
            self.with_anti_affinity[uid] = node_name

    def remove(self, uid: str, node_name: str) -> None:
        self.pods.get(node_name, {}).pop(uid, None)
        self.with_anti_affinity.pop(uid, None)

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        return next(
            (dict(labels) for name, labels in self.cluster.namespaces if name == namespace), {}
        )


def label_value(node: NodeFacts, key: str) -> str | None:
    """Return the value of a node's label; None if it has no such label."""
    return dict(node.labels).get(key)


def selects(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """Whether a selector matches labels; an absent one matches nothing, an empty one all."""
    return selector is not None and all(
        meets(labels.get(each.key), each) for each in selector.requirements
    )


def matches_terms(terms: Iterable[NodeSelectorTerm], node: NodeFacts) -> bool:
    """Whether a node meets one of the terms of a node selector."""
    labels = dict(node.labels)
    return any(
        not term.error
        and bool(term.expressions or term.fields)
        and all(meets(labels.get(each.key), each) for each in term.expressions)
        and all((node.name in each.values) == (each.operator == "In") for each in term.fields)
        for term in terms
    )


def meets(value: str | None, wanted: Requirement) -> bool:
    """Whether the value of a label (None: there is none) meets a requirement."""
    if wanted.operator == "Exists":
        return value is not None
    if wanted.operator == "DoesNotExist":
        return value is None
    if wanted.operator == "In":
        return value in wanted.values
    if wanted.operator == "NotIn":
        return value not in wanted.values
    number, limit = parse_int64(value or ""), parse_int64(wanted.values[0])
    if number is None or limit is None:
        return False
    return number > limit if wanted.operator == "Gt" else number < limit

"""The cluster at one point of a journal: nodes and their pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import LabelSelector, Requirement, parse_int64


@dataclass(slots=True)
class World:
    """Nodes and pods. nodes: by name. pods: node name → uid → facts, also of removed nodes.

    excluding: uid → node name, of the pods that have anti-affinity terms: they are few.
    leaves_to_devices: whether DRAExtendedResource is on.
    """

    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    pods: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    excluding: dict[str, str] = field(default_factory=dict)
    leaves_to_devices: bool = False

    def on(self, node_name: str) -> list[PodFacts]:
        """Return the pods of one node."""
        return list(self.pods.get(node_name, {}).values())

    def running(self) -> Iterator[tuple[NodeFacts, PodFacts]]:
        """Yield every pod on a node that exists."""
        for name, node in self.nodes.items():
            for facts in self.pods.get(name, {}).values():
                yield node, facts

    def running_that_exclude(self) -> Iterator[tuple[NodeFacts, PodFacts]]:
        """Yield those of them that have anti-affinity terms."""
        for uid, name in self.excluding.items():
            if name in self.nodes:
                yield self.nodes[name], self.pods[name][uid]

    def put(self, uid: str, node_name: str, facts: PodFacts) -> None:
        self.pods.setdefault(node_name, {})[uid] = facts
        if facts.pod_anti_affinity:
            self.excluding[uid] = node_name

    def remove(self, uid: str, node_name: str) -> None:
        self.pods.get(node_name, {}).pop(uid, None)
        self.excluding.pop(uid, None)

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


def meets(has: str | None, wanted: Requirement) -> bool:
    """Whether the value of a label (None: there is none) meets a requirement."""
    if wanted.operator == "Exists":
        return has is not None
    if wanted.operator == "DoesNotExist":
        return has is None
    if wanted.operator == "In":
        return has in wanted.values
    if wanted.operator == "NotIn":
        return has not in wanted.values
    label, limit = parse_int64(has or ""), parse_int64(wanted.values[0])
    if label is None or limit is None:
        return False
    return label > limit if wanted.operator == "Gt" else label < limit

"""Diagnosis: why a pod fits on no node, with upstream's messages.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (FitError.Error).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roadstead.facts.node import NodeFacts
from roadstead.protocol.status import SUCCESS, Code, Status, unresolvable

NO_NODES = "no nodes available to schedule pods"


def excluded_status(plugins: Iterable[str]) -> Status:
    """Return the status of nodes that are not among PreFilter's node names."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")


@dataclass(slots=True)
class Diagnosis:
    """Numbers of refused nodes by status, of `node_count` nodes.

    refused: status → number of nodes. lowest_priority: of all pods on all nodes; None for no pods.
    pre_filter: PreFilter's status; not Success if it rejected the pod.
    unreached: plugins whose PreFilter did not run, because PreFilter rejected the pod before.
    restricted_by: plugins whose PreFilter restricted the nodes by name, and "Extender".
    refused_nodes: by plugin, the nodes that it refused, for PostFilter plugins that read them.
    """

    node_count: int
    pre_filter: Status = SUCCESS
    unreached: tuple[str, ...] = ()
    restricted_by: tuple[str, ...] = ()
    refused: dict[Status, int] = field(default_factory=dict)
    lowest_priority: int | None = None
    refused_nodes: dict[str, tuple[NodeFacts, ...]] = field(default_factory=dict)

    def add(self, status: Status, nodes: int) -> None:
        self.refused[status] = self.refused.get(status, 0) + nodes

    def record_priority(self, priority: int | None) -> None:
        """Include the lowest priority of the pods on some nodes; None for no pods."""
        if priority is not None and (
            self.lowest_priority is None or priority < self.lowest_priority
        ):
            self.lowest_priority = priority

    @property
    def plugins(self) -> tuple[str, ...]:
        """Sorted names of the plugins that refused nodes, rejected the pod or restricted nodes."""
        names = {status.plugin for status in self.refused} | {self.pre_filter.plugin}
        names |= set(self.restricted_by)
        return tuple(sorted(names - {""}))

    def reasons(self) -> Counter[str]:
        """Return the number of nodes for each reason; a node may have several reasons."""
        counts: Counter[str] = Counter()
        for status, nodes in self.refused.items():
            for reason in status.reasons:
                counts[reason] += nodes
        return counts

    def helpful(self) -> int:
        """Return how many nodes are Unschedulable: removing pods might make this pod fit."""
        return sum(
            nodes for status, nodes in self.refused.items() if status.code is Code.UNSCHEDULABLE
        )

    def message(self, post_filter: str = "") -> str:
        """Return the text of the FailedScheduling event. post_filter: PostFilter's message."""
        if not self.node_count:
            return NO_NODES
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter.reasons:
            text += f" {self.pre_filter.message}."
        else:
            text += _histogram(self.reasons())
        return f"{text} {post_filter}" if post_filter else text


def _histogram(counts: Mapping[str, int]) -> str:
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f" {', '.join(parts)}." if parts else ""

"""Why a pod does not fit anywhere, in upstream's words.

Upstream: staging/src/k8s.io/kube-scheduler/framework/types.go (FitError.Error).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roadstead.protocol.status import SUCCESS, Code, Status, unresolvable

NO_NODES = "no nodes available to schedule pods"


def excluded_status(plugins: Iterable[str]) -> Status:
    """The status of nodes that PreFilter's node names leave out."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")


@dataclass(slots=True)
class Diagnosis:
    """How many nodes were refused with which status.

    refused: status → [nodes, nodes that also hold a pod of lower priority].
    pre_filter: what PreFilter said, if it rejected the pod.
    unreached: plugins whose PreFilter did not run then.
    narrowed_by: plugins whose PreFilter left only some nodes over.
    """

    node_count: int
    pre_filter: Status = SUCCESS
    unreached: tuple[str, ...] = ()
    narrowed_by: tuple[str, ...] = ()
    refused: dict[Status, list[int]] = field(default_factory=dict)

    def add(self, status: Status, nodes: int, with_victims: int = 0) -> None:
        counts = self.refused.setdefault(status, [0, 0])
        counts[0] += nodes
        counts[1] += with_victims

    def merge(self, other: Diagnosis) -> None:
        for status, (nodes, with_victims) in other.refused.items():
            self.add(status, nodes, with_victims)

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins that refused anything, sorted."""
        names = {status.plugin for status in self.refused} | {self.pre_filter.plugin}
        names |= set(self.narrowed_by)
        return tuple(sorted(names - {""}))

    def reasons(self) -> Counter[str]:
        """How many nodes gave each reason; a node with several reasons counts in each."""
        counts: Counter[str] = Counter()
        for status, (nodes, _) in self.refused.items():
            for reason in status.reasons:
                counts[reason] += nodes
        return counts

    def helpful(self) -> tuple[int, int]:
        """Nodes refused with Unschedulable, and those of them with pods of lower priority."""
        found = [counts for s, counts in self.refused.items() if s.code is Code.UNSCHEDULABLE]
        return sum(nodes for nodes, _ in found), sum(victims for _, victims in found)

    def message(self, post_filter: str = "") -> str:
        """The text of the FailedScheduling event."""
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

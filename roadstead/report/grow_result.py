"""The answers of `roadstead grow`: which nodes to add, and which nodes can be removed.

The shape of a node is its resources, labels and taints, like an instance type; the catalogue is the
user's list of shapes that can be added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from roadstead.report.result import Json, PendingPod

if TYPE_CHECKING:
    from arro3.core import Table


@dataclass(frozen=True, slots=True)
class GrownShape:
    """Added nodes of one shape. price_per_hour: of one node. pods: number placed on these nodes.

    used: (resource, share of its allocatable amount on these nodes that pods request).
    """

    shape: str
    count: int
    price_per_hour: float | None
    pods: int
    used: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GrowResult:
    """Nodes to add. source: description of the input, for display.

    shapes: those to add, in the catalogue's order. nodes, manifests: names of the added nodes, and
    their manifests. pending: pods that fit nowhere however many nodes of the catalogue are added.
    placed_on: pod key → node, for the pods placed on added nodes. missing_before: number of pods
    that are pending if no node is added. pods: number of pods to schedule. runs: how often pods
    were scheduled on a copy of the cluster. is_minimal: without any single one of these nodes, a
    pod stayed pending; false if the search ended before that was known.
    """

    source: str
    shapes: tuple[GrownShape, ...]
    nodes: tuple[str, ...]
    manifests: tuple[Mapping[str, object], ...]
    pending: tuple[PendingPod, ...]
    placed_on: Mapping[str, str]
    missing_before: int
    pods: int
    runs: int
    is_minimal: bool

    @property
    def count(self) -> int:
        """The number of added nodes."""
        return len(self.nodes)

    @property
    def price_per_hour(self) -> float | None:
        """The price of all added nodes; None if the catalogue has no prices."""
        prices = [each.price_per_hour for each in self.shapes]
        if any(each is None for each in prices):
            return None
        return sum((each.price_per_hour or 0.0) * each.count for each in self.shapes)

    @property
    def is_complete(self) -> bool:
        """Whether every pod is placed once the nodes are added."""
        return not self.pending

    def document(self) -> dict[str, Json]:
        """The answer as JSON."""
        return {
            "source": self.source,
            "nodes": list(self.nodes),
            "count": self.count,
            "price_per_hour": self.price_per_hour,
            "shapes": [{**asdict(each), "used": dict(each.used)} for each in self.shapes],
            "pods": self.pods,
            "missing_before": self.missing_before,
            "pending": [_pending(each) for each in self.pending],
            "minimal": self.is_minimal,
            "runs": self.runs,
            "placed_on_added": dict(sorted(self.placed_on.items())),
        }

    def to_arrow(self) -> Table:
        """Return a table with a row for each shape: shape, count, price_per_hour, pods."""
        from roadstead.report.arrow import FLOAT64, INT64, STRING, column, make_table

        types = {"shape": STRING, "count": INT64, "price_per_hour": FLOAT64, "pods": INT64}
        return make_table(
            {
                name: column([getattr(each, name) for each in self.shapes], kind)
                for name, kind in types.items()
            }
        )


@dataclass(frozen=True, slots=True)
class LeavingNode:
    """A node that can be removed.

    pods: number that must move to other nodes. daemons: number of DaemonSet pods, which end with
    the node.
    """

    node: str
    zone: str
    shape: str
    pods: int
    daemons: int


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """A disruption budget that selects moved pods.

    allowed: its disruptionsAllowed. pods: number of its pods to evict. refused: how many of their
    evictions it would refuse if all were requested at once.
    """

    budget: str
    allowed: int
    pods: int
    refused: int


@dataclass(frozen=True, slots=True)
class ShrinkResult:
    """Nodes that can be removed while every pod keeps or finds a node.

    nodes: in the order in which they were emptied. candidates: how many nodes were considered;
    node_count: all nodes. moved: pods that were rescheduled. bare: those of them without a
    controller, which nothing creates again. pending_before: pods that are pending with all nodes.
    budgets: disruption budgets that select moved pods. runs: how often removals were tried.
    is_complete: no other single candidate can be removed, too; false if the search ended before
    that was known.
    """

    source: str
    nodes: tuple[LeavingNode, ...]
    candidates: int
    node_count: int
    moved: int
    bare: int
    pending_before: int
    budgets: tuple[BudgetReport, ...]
    runs: int
    is_complete: bool

    def document(self) -> dict[str, Json]:
        """The answer as JSON."""
        return {
            "source": self.source,
            "nodes": [dict(asdict(each)) for each in self.nodes],
            "count": len(self.nodes),
            "node_count": self.node_count,
            "candidates": self.candidates,
            "moved": self.moved,
            "bare": self.bare,
            "pending_before": self.pending_before,
            "budgets": [dict(asdict(each)) for each in self.budgets],
            "runs": self.runs,
            "complete": self.is_complete,
        }

    def to_arrow(self) -> Table:
        """Return a table with a row for each removable node: node, zone, shape, pods, daemons."""
        from roadstead.report.arrow import INT64, STRING, column, make_table

        types = {**dict.fromkeys(("node", "zone", "shape"), STRING), "pods": INT64}
        types["daemons"] = INT64
        return make_table(
            {
                name: column([getattr(each, name) for each in self.nodes], kind)
                for name, kind in types.items()
            }
        )


def _pending(pod: PendingPod) -> dict[str, Json]:
    return {
        "pod": pod.pod,
        "message": pod.message,
        "reasons": [{"reason": reason, "nodes": nodes} for reason, nodes in pod.reasons],
        "plugins": list(pod.plugins),
    }

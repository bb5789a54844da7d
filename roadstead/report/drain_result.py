"""The answer of `roadstead drain`: where each pod goes, and what forbids it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from roadstead.report.result import Json, PreemptedPod

if TYPE_CHECKING:
    from arro3.core import Table

Outcome = Literal["moved", "pending", "blocked", "refused", "leaves"]
"""moved: evicted, and placed on another node. pending: evicted, and without a node. blocked: a
disruption budget refuses the eviction. refused: `kubectl drain` refuses to begin. leaves: not
evicted; it ends with the node."""


@dataclass(frozen=True, slots=True)
class DrainedPod:
    """A pod of a drained node.

    to: the node of its replacement. round: the round of its eviction, from 1; 0 if it is not
    evicted. In a round all evictions are requested that disruption budgets allow at that time.
    reason: why it is pending, blocked or refused; of a moved pod, that it has no controller.
    """

    pod: str
    workload: str
    node: str
    outcome: Outcome
    to: str = ""
    round: int = 0
    reason: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether a moved pod has no controller, so that nothing creates it again."""
        return self.outcome == "moved" and bool(self.reason)


@dataclass(frozen=True, slots=True)
class DrainBudget:
    """A disruption budget that selects evicted pods.

    allowed: its disruptionsAllowed. pods: number of selected pods to evict. evicted: number of
    those that were evicted. rounds: number of rounds in which it allowed evictions. blocked: number
    of evictions that it never allows.
    """

    budget: str
    allowed: int
    pods: int
    evicted: int
    rounds: int
    blocked: int


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The answer. source: description of the input, for display.

    nodes: those drained. pods: all pods on them, in order. budgets: by name. preempted: pods of
    other nodes that were evicted for a replacement. pending_before: pods of the input that have no
    node before the drain. rounds: number of rounds of evictions.
    """

    source: str
    nodes: tuple[str, ...]
    pods: tuple[DrainedPod, ...]
    budgets: tuple[DrainBudget, ...]
    preempted: tuple[PreemptedPod, ...]
    pending_before: int
    rounds: int

    @property
    def counts(self) -> dict[Outcome, int]:
        """The number of pods by outcome."""
        counts = Counter(each.outcome for each in self.pods)
        names: tuple[Outcome, ...] = ("moved", "pending", "blocked", "refused", "leaves")
        return {name: counts[name] for name in names}

    @property
    def is_complete(self) -> bool:
        """Whether every pod that must move has another node, and no other pod lost its own."""
        counts = self.counts
        unmoved = counts["pending"] + counts["blocked"] + counts["refused"]
        return not unmoved and not self.preempted

    @property
    def targets(self) -> dict[str, int]:
        """Nodes that receive pods, with their number; most first."""
        counts = Counter(each.to for each in self.pods if each.to)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def document(self) -> dict[str, Json]:
        """The answer as JSON."""
        return {
            "source": self.source,
            "nodes": list(self.nodes),
            "complete": self.is_complete,
            "rounds": self.rounds,
            "counts": dict(self.counts.items()),
            "targets": dict(self.targets),
            "pods": [dict(asdict(each)) for each in self.pods],
            "budgets": [dict(asdict(each)) for each in self.budgets],
            "preempted": [dict(asdict(each)) for each in self.preempted],
            "pending_before": self.pending_before,
        }

    def to_arrow(self) -> Table:
        """Return a table with a row for each pod; its columns are the fields of `DrainedPod`."""
        from roadstead.report.arrow import INT64, STRING, column, make_table

        names = ("pod", "workload", "node", "outcome", "to", "round", "reason")
        return make_table(
            {
                name: column(
                    [getattr(each, name) for each in self.pods],
                    INT64 if name == "round" else STRING,
                )
                for name in names
            }
        )

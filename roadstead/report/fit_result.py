"""The answer of `roadstead fit`: how many more replicas fit, where, and what stops the next one.

Replicas are added in sets: `fit web=3 db` adds three of web and one of db in each round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from roadstead.report.result import Json, PreemptedPod

if TYPE_CHECKING:
    from arro3.core import Table

ChangeKind = Literal["tolerate", "drop", "reduce", "preempt"]
"""Add tolerations; drop a restriction, such as a label of the node selector; reduce a request; let
the pod preempt others."""


@dataclass(frozen=True, slots=True)
class FitSpec:
    """A pod whose replicas are counted, as one argument of the command names it.

    name: as the user wrote it. pod: the key of the pod that the replicas copy. ratio: its replicas
    in each set (3 for web=3). replicas: number of those that fit.
    """

    name: str
    pod: str
    ratio: int
    replicas: int


@dataclass(frozen=True, slots=True)
class FitNode:
    """A node with the number of replicas on it. shape: its instance type, or its size."""

    node: str
    zone: str
    shape: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason that the next replica does not fit: the FailedScheduling message of the scheduler.

    spec: the name of the replica's `FitSpec`. reasons: (reason, number of nodes with it). preempts:
    pods that it would evict, if it is placed by preemption.
    """

    spec: str
    message: str
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()
    preempts: tuple[PreemptedPod, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmittingChange:
    """A change of the pod with which the scheduler places it.

    It may have several parts, such as a toleration and a lower request. kinds: of the parts. text:
    for display. node: where the scheduler placed the pod. share: the reduction divided by the
    request, added up over reduced resources. evicts: keys of preempted pods.
    """

    kinds: tuple[ChangeKind, ...]
    text: str
    node: str
    share: float = 0.0
    evicts: tuple[str, ...] = ()

    @property
    def parts(self) -> int:
        return len(self.kinds)


@dataclass(frozen=True, slots=True)
class FitResult:
    """The answer. source: description of the input, for display. rounds: number of complete sets.

    is_limited: the count stopped at its limit, so more may fit. nodes: those with replicas, most
    replicas first. next: why the next replica does not fit; None if the count stopped at its
    limit. changes: smallest first. placed, pending: numbers of the input's pods that were placed,
    or refused, before the count. tried: number of changes that were tried. is_total: the input's
    pending pods of the specs are counted as replicas.
    """

    source: str
    specs: tuple[FitSpec, ...]
    rounds: int
    is_limited: bool
    nodes: tuple[FitNode, ...]
    node_count: int
    next: Refusal | None
    changes: tuple[AdmittingChange, ...]
    placed: int
    pending: int
    tried: int = 0
    is_total: bool = False

    @property
    def replicas(self) -> int:
        """The number of replicas of all specs together."""
        return sum(each.replicas for each in self.specs)

    @property
    def zones(self) -> dict[str, int]:
        """Replicas by zone; "" for nodes without one."""
        return _counted((each.zone, each.replicas) for each in self.nodes)

    @property
    def shapes(self) -> dict[str, int]:
        """Replicas by shape of the node."""
        return _counted((each.shape, each.replicas) for each in self.nodes)

    def document(self) -> dict[str, Json]:
        """The answer as JSON."""
        return {
            "source": self.source,
            "replicas": self.replicas,
            "rounds": self.rounds,
            "limited": self.is_limited,
            "specs": [dict(asdict(each)) for each in self.specs],
            "zones": dict(self.zones),
            "shapes": dict(self.shapes),
            "nodes": [dict(asdict(each)) for each in self.nodes],
            "next": None if self.next is None else _refusal(self.next),
            "changes": [_change(each) for each in self.changes],
            "changes_tried": self.tried,
            "given": {"placed": self.placed, "pending": self.pending},
        }

    def to_arrow(self) -> Table:
        """Return a table of the nodes that have replicas: node, zone, shape, replicas."""
        from roadstead.report.arrow import INT64, STRING, column, make_table

        types = {"node": STRING, "zone": STRING, "shape": STRING, "replicas": INT64}
        return make_table(
            {
                name: column([getattr(each, name) for each in self.nodes], kind)
                for name, kind in types.items()
            }
        )


def _counted(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in pairs:
        counts[name] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _refusal(refusal: Refusal) -> dict[str, Json]:
    return {
        "spec": refusal.spec,
        "message": refusal.message,
        "reasons": [{"reason": reason, "nodes": nodes} for reason, nodes in refusal.reasons],
        "plugins": list(refusal.plugins),
        "preempts": [dict(asdict(each)) for each in refusal.preempts],
    }


def _change(change: AdmittingChange) -> dict[str, Json]:
    return {
        "kinds": list(change.kinds),
        "change": change.text,
        "node": change.node,
        "share": change.share,
        "evicts": list(change.evicts),
    }

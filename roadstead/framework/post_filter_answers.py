"""Input and output of PostFilter plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.facts.node import NodeFacts
from roadstead.framework.victims import Candidate, DryRunResult
from roadstead.protocol.status import Status


def first_name(names: Sequence[str]) -> str:
    """Return the bytewise smallest of some names."""
    return min(names, key=str.encode)


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of PostFilter.

    nominated_node: None keeps the pod's nomination, "" clears it. candidates: nodes with victims
    that preemption found; acceptable: the nodes of the candidates that are as good as the best one.
    exhaustive: the dry run was not limited to some nodes. deallocated: key of the ResourceClaim
    whose allocation is removed, or ""; deallocatable: all claims that would have helped so.
    """

    status: Status
    nominated_node: str | None = None
    candidates: tuple[Candidate, ...] = ()
    acceptable: tuple[str, ...] = ()
    exhaustive: bool = True
    deallocated: str = ""
    deallocatable: tuple[str, ...] = ()

    @property
    def chosen(self) -> Candidate | None:
        """The candidate on the nominated node, whose victims preemption evicts."""
        return next((c for c in self.candidates if c.node_name == self.nominated_node), None)


@dataclass(frozen=True, slots=True)
class PostFilterView:
    """The part of a failed cycle that PostFilter reads.

    helpful: number of nodes refused with Unschedulable (removing pods may help).
    node_count: number of all nodes of the cluster.
    pre_filter: PreFilter's status (Success if the pod passed).
    unreached: plugins whose PreFilter did not run, because another one ended PreFilter.
    lowest_priority: of all pods on nodes; None if there are none.
    refused_nodes: plugin → the nodes it refused, of plugins that read them in PostFilter.
    tried: the result of the dry run of preemption, if a plugin requested one. pick: chooses among
    nodes that are equally good.
    """

    node_count: int
    helpful: int
    pre_filter: Status
    unreached: tuple[str, ...] = ()
    lowest_priority: int | None = None
    refused_nodes: Mapping[str, Sequence[NodeFacts]] = field(default_factory=dict)
    tried: DryRunResult | None = None
    pick: Callable[[Sequence[str]], str] = first_name

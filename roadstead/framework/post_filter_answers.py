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
    that preemption found. For comparisons with kube-scheduler, acceptable: the nodes of the best
    candidates, any of which upstream could choose; exhaustive: the dry run tried all helpful nodes.
    deallocated: key of the ResourceClaim whose allocation is removed, so that the pod may fit, or
    ""; deallocatable: the keys of all claims whose removal would have the same effect.
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
    dry_run_result: of preemption, if a plugin requested a dry run. pick: chooses among nodes that
    are equally good.
    """

    node_count: int
    helpful: int
    pre_filter: Status
    unreached: tuple[str, ...] = ()
    lowest_priority: int | None = None
    refused_nodes: Mapping[str, Sequence[NodeFacts]] = field(default_factory=dict)
    dry_run_result: DryRunResult | None = None
    pick: Callable[[Sequence[str]], str] = first_name

"""What a PostFilter plugin sees of a failed cycle, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roadstead.framework.victims import Candidate, Tried
from roadstead.protocol.status import Status


def first_name(names: Sequence[str]) -> str:
    """The bytewise smallest of some names."""
    return min(names, key=str.encode)


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter says.

    nominated_node: None leaves the pod's nomination as it is, "" clears it. candidates: what
    preemption found; acceptable: the names of those that are equally good. exhaustive: the dry run
    was not limited to some nodes.
    """

    status: Status
    nominated_node: str | None = None
    candidates: tuple[Candidate, ...] = ()
    acceptable: tuple[str, ...] = ()
    exhaustive: bool = True

    @property
    def chosen(self) -> Candidate | None:
        """The candidate on the nominated node: whom preemption has to evict."""
        return next((c for c in self.candidates if c.node_name == self.nominated_node), None)


@dataclass(frozen=True, slots=True)
class PostFilterView:
    """What PostFilter sees of a failed cycle.

    helpful: nodes refused with Unschedulable (removing pods may help).
    node_count: all nodes of the cluster.
    pre_filter: what PreFilter said (Success if it passed).
    unreached: plugins whose PreFilter did not run, because another one stopped the phase.
    lowest_priority: of all pods on nodes; None where there are none.
    tried: what came of the dry run, where a plugin wanted one. pick: chooses among equal nodes.
    """

    node_count: int
    helpful: int
    pre_filter: Status
    unreached: tuple[str, ...] = ()
    lowest_priority: int | None = None
    tried: Tried | None = None
    pick: Callable[[Sequence[str]], str] = first_name

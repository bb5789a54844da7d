"""What preemption is about: victims, and the nodes on which a pod would fit without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_LIFT = 2**31


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go. started_s: None for one that is not known to have started."""

    uid: str
    key: str
    priority: int
    started_s: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and whom the pod would need gone from it, the most important first.

    violations: how many of them a disruption budget would miss. loss: what taking the node costs,
    which is computed once for all pods that find the candidate: the fewest violated budgets, the
    lowest priority of the most important victim, the lowest sum of priorities (each counted from
    the lowest there is, so that fewer pods of negative priority are better), the fewest victims,
    and the latest start of the earliest among the most important victims, in this order.
    Upstream: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
    """

    node_name: str
    victims: tuple[Victim, ...]
    violations: int = 0
    loss: tuple[float, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.victims, f"nobody has to go from {self.node_name}, which would be feasible"
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        starts = (v.started_s for v in self.victims if v.priority == highest)
        # One that is not known to run starts later than all.
        earliest = min(math.inf if each is None else each for each in starts)
        lifted = sum(priorities) + _LIFT * len(priorities)
        loss = (self.violations, priorities[0], lifted, len(priorities), -earliest)
        object.__setattr__(self, "loss", loss)


@dataclass(frozen=True, slots=True)
class DryRun:
    """What to try: preemption on the nodes in the order of a draw (bytewise for None), until
    `wanted` candidates are found, one of them without violations (or there are no more nodes)."""

    wanted: int
    draw: int | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a dry run.

    candidates: in the order of the draw. nodes: how many nodes were refused, and reasons: how many
    of them for which reason; both only where there is no candidate. waits: the pod has preempted
    before, and victims are still on their way out. errors: why it failed where nothing was found.
    none_left: candidates were found, and extenders refused them all.
    """

    candidates: tuple[Candidate, ...] = ()
    nodes: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    waits: bool = False
    errors: tuple[str, ...] = ()
    none_left: bool = False


def are_enough(clean: int, violating: int, wanted: int) -> bool:
    """Whether so many candidates, of which some violate a budget, are as many as are wanted."""
    return clean > 0 and clean + min(violating, wanted) >= wanted


def shortlist(candidates: Sequence[Candidate], wanted: int) -> tuple[Candidate, ...]:
    """The first candidates, until so many are found and one of them violates no budget.

    Of those that violate one no more than `wanted` are kept. What is cut off from a part of all
    candidates would be cut off from all of them.
    Upstream: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
    """
    if not wanted:
        return ()
    chosen: list[Candidate] = []
    violating = 0
    for each in candidates:
        if are_enough(len(chosen) - violating, violating, wanted):
            break
        if each.violations and violating == wanted:
            continue
        violating += bool(each.violations)
        chosen.append(each)
    return tuple(chosen)

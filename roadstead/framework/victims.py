"""Victims of preemption, and candidates: the nodes on which a pod would fit without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_MINUS_LOWEST_PRIORITY = 2**31
"""Added to each priority in a sum, so that the lowest possible priority, -2**31, counts as 0."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would be evicted. key: namespace/name. started_s: None if no start is known."""

    uid: str
    key: str
    priority: int
    started_s: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and the victims that the pod needs removed from it, the most important first.

    violations: how many victims violate a disruption budget. loss: the cost of choosing the node;
    the smallest is best. It is computed once for all pods that find the candidate. Best are, in
    this order: the fewest violations, the lowest priority of the most important victim, the lowest
    sum of priorities (each counted from the lowest possible one, so that fewer pods of negative
    priority are better), the fewest victims, and the latest start of the earliest among the most
    important victims.
    Upstream: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
    """

    node_name: str
    victims: tuple[Victim, ...]
    violations: int = 0
    loss: tuple[float, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.victims, f"no victims on {self.node_name}, which would be feasible"
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        starts = (each.started_s for each in self.victims if each.priority == highest)
        # A victim without a known start counts as started after all others.
        earliest = min(math.inf if each is None else each for each in starts)
        priority_sum = sum(priorities) + _MINUS_LOWEST_PRIORITY * len(priorities)
        loss = (self.violations, priorities[0], priority_sum, len(priorities), -earliest)
        object.__setattr__(self, "loss", loss)


@dataclass(frozen=True, slots=True)
class DryRun:
    """A request for a dry run of preemption.

    size: it ends when so many candidates are found, one of them without violations, or after all
    nodes. pod_hash: the nodes are tried in the order of their ranks for this hash
    (`TieBreak.pod_hash`); None: in bytewise order of their names.
    """

    size: int
    pod_hash: int | None = None


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result of a dry run.

    candidates: in the order in which they were found. nodes: how many nodes were refused, and
    reasons: how many of them for each reason; both only if there is no candidate. waits: no dry run
    was made: the pod has preempted before, and its victims still terminate on its nominated node.
    errors: failures, if no candidate was
    found. refused_by_extenders: candidates were found, but extenders refused them all.
    """

    candidates: tuple[Candidate, ...] = ()
    nodes: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    waits: bool = False
    errors: tuple[str, ...] = ()
    refused_by_extenders: bool = False


def are_enough(clean: int, violating: int, size: int) -> bool:
    """Whether so many candidates without violations (`clean`) and with violations suffice.

    size: of the dry run, see `DryRun`.
    """
    return clean > 0 and clean + min(violating, size) >= size


def shortlist(candidates: Sequence[Candidate], size: int) -> tuple[Candidate, ...]:
    """Return the first candidates, until `size` are found and one of them violates no budget.

    At most `size` candidates that violate a budget are included. Lists of candidates, in order, may
    each be shortened before they are joined and shortened again: the result is the same.
    Upstream: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
    """
    if not size:
        return ()
    chosen: list[Candidate] = []
    violating = 0
    for each in candidates:
        if are_enough(len(chosen) - violating, violating, size):
            break
        if each.violations and violating == size:
            continue
        violating += bool(each.violations)
        chosen.append(each)
    return tuple(chosen)

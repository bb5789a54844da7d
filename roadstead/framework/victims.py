"""What preemption is about: victims, and the nodes on which a pod would fit without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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

    violations: how many of them a disruption budget would miss.
    """

    node_name: str
    victims: tuple[Victim, ...]
    violations: int = 0


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


def shortlist(candidates: Sequence[Candidate], wanted: int) -> tuple[Candidate, ...]:
    """The first candidates, until so many are found and one of them violates no budget.

    Of those that violate one no more than `wanted` are kept. What is cut off from a part of all
    candidates would be cut off from all of them.
    Upstream: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption).
    """
    if not wanted:
        return ()
    clean: list[Candidate] = []
    violating: list[Candidate] = []
    for each in candidates:
        if not each.violations:
            clean.append(each)
        elif len(violating) < wanted:
            violating.append(each)
        if clean and len(clean) + len(violating) >= wanted:
            break
    chosen = {id(each) for each in (*clean, *violating)}
    return tuple(each for each in candidates if id(each) in chosen)

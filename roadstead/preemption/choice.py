"""Which candidate is taken: the node whose loss is the least.

In this order: the fewest violated budgets, the lowest priority of the most important victim, the
lowest sum of priorities (each counted from the lowest there is, so that fewer pods of negative
priority are better), the fewest victims, and the latest start of the earliest among the most
important victims.

Upstream: pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.framework.victims import Candidate
from roadstead.preemption.importance import started

_LIFT = 2**31


def best(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """All candidates that are equally good and better than the others, in their order."""
    if not candidates:
        return ()
    losses = [_loss(each) for each in candidates]
    least = min(losses)
    return tuple(c for c, loss in zip(candidates, losses, strict=True) if loss == least)


def _loss(candidate: Candidate) -> tuple[float, ...]:
    victims = candidate.victims
    top = victims[0].priority
    highest = max(victim.priority for victim in victims)
    earliest = min(started(v.started_s) for v in victims if v.priority == highest)
    return (
        candidate.violations,
        top,
        sum(victim.priority + _LIFT for victim in victims),
        len(victims),
        -earliest,
    )

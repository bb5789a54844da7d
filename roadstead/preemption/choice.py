"""Choice of a preemption candidate: the node with the smallest loss.

`Candidate.loss` has upstream's criteria in their order, for example the number of violated budgets.
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.framework.victims import Candidate


def best(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return all candidates with the smallest loss, in the given order."""
    if not candidates:
        return ()
    least = min(each.loss for each in candidates)
    return tuple(each for each in candidates if each.loss == least)

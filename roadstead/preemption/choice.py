"""Which candidate is taken: the node whose loss is the least (`Candidate.loss`)."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.framework.victims import Candidate


def best(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """All candidates that are equally good and better than the others, in their order."""
    if not candidates:
        return ()
    least = min(each.loss for each in candidates)
    return tuple(each for each in candidates if each.loss == least)

"""Scores of placed pods, as the schedulers that placed them still know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roadstead.actors.messages import PageAsk
from roadstead.actors.messages.scheduling import SCORES
from roadstead.actors.seam import Ref
from roadstead.protocol.errors import RoadsteadError
from roadstead.report.result import Placement

CHUNK = 20_000
"""Pods in one message."""


async def with_scores(
    placements: Sequence[Placement], schedulers: Sequence[Ref], timeout_s: float
) -> tuple[Placement, ...]:
    """The placements with their scores; without one where its scheduler has ended."""
    found: dict[tuple[str, str], int] = {}
    for scheduler in schedulers:
        try:
            await _ask(scheduler, found, timeout_s)
        except RoadsteadError:
            # A run does not fail for them: they are not kept where a scheduler ends.
            continue
    return tuple(
        each if (score := found.get((each.uid, each.node))) is None else replace(each, score=score)
        for each in placements
    )


async def _ask(scheduler: Ref, found: dict[tuple[str, str], int], timeout_s: float) -> None:
    start, total = 0, 1
    while start < total:
        page = await scheduler.call(SCORES, PageAsk(start, CHUNK), timeout_s=timeout_s)
        found.update(zip(zip(page.uids, page.nodes, strict=True), page.scores, strict=True))
        start, total = start + CHUNK, page.total

"""Scores of placed pods, from the schedulers that placed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.actors.interface import Ref
from roadstead.actors.messages import PageRequest
from roadstead.actors.messages.scheduling import SCORES
from roadstead.protocol.errors import RoadsteadError
from roadstead.report.result import PlacedPod

SCORES_PER_MESSAGE = 20_000
"""Scores in one message."""


async def with_scores(
    placements: Sequence[PlacedPod], schedulers: Sequence[Ref], timeout_s: float
) -> tuple[PlacedPod, ...]:
    """Return placements with their scores; None for those of a scheduler that was replaced."""
    node_of = {each.uid: each.node for each in placements}
    score_of: dict[str, int] = {}
    for scheduler in schedulers:
        try:
            await _read_scores(scheduler, node_of, score_of, timeout_s)
        except RoadsteadError:
            # Scores are lost with a scheduler; that must not fail the run.
            continue
    return tuple(
        PlacedPod(each.pod, each.uid, each.node, score_of.get(each.uid)) for each in placements
    )


async def _read_scores(
    scheduler: Ref, node_of: Mapping[str, str], score_of: dict[str, int], timeout_s: float
) -> None:
    start, total = 0, 1
    while start < total:
        page = await scheduler.call(
            SCORES, PageRequest(start, SCORES_PER_MESSAGE), timeout_s=timeout_s
        )
        rows = zip(page.uids, page.nodes, page.scores, strict=True)
        score_of.update((uid, score) for uid, node, score in rows if node_of.get(uid) == node)
        start, total = start + SCORES_PER_MESSAGE, page.total

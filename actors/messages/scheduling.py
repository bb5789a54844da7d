"""To schedulers: what is asked about the pods that they placed."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.messages.common import PageAsk
from roadstead.actors.seam import method


@dataclass(frozen=True, slots=True)
class ScorePage:
    """Scheduler → client: uid, node and its total score, of pods that were placed.

    A pod comes once for each time that it was. total: how many there are in all.
    """

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    scores: tuple[int, ...]
    total: int


SCORES = method("scores", PageAsk, ScorePage)

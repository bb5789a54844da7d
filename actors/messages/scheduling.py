"""Messages to schedulers about the pods that they placed."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import method
from roadstead.actors.messages.common import PageRequest


@dataclass(frozen=True, slots=True)
class ScorePage:
    """Scheduler → client: UID, node and the node's total score, for each placement.

    A pod that was placed several times is listed several times. total: entries in all pages.
    """

    uids: tuple[str, ...]
    nodes: tuple[str, ...]
    scores: tuple[int, ...]
    total: int


SCORES = method("scores", PageRequest, ScorePage)

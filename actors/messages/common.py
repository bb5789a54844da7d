"""What every actor is asked, and parts of long lists."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.seam import Nothing, method


@dataclass(frozen=True, slots=True)
class PageAsk:
    """Client → queue, binder or scheduler: part of a long list."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """Any actor → supervisor: what it did and holds, for people; error: why it cannot go on.

    figures: of a scheduler (`roadstead.actors.scheduler.figures`).
    """

    text: str
    error: str = ""
    error_kind: str = ""
    error_parts: tuple[str, ...] = ()
    timings_s: tuple[tuple[str, float], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    figures: tuple[tuple[str, float], ...] = ()


STATUS = method("status", Nothing, ActorStatus)
RUN = method("run", Nothing, Nothing)
STOP = method("stop", Nothing, Nothing)

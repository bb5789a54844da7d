"""Messages that every actor answers, and requests for pages of long lists."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.actors.interface import Nothing, method


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Client → queue, binder or scheduler: request for a page of a long list."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """Any actor → supervisor: its state. error: why it cannot continue, or "".

    text: the state in words, for messages. error_kind, error_parts: as in `Failure`. timings_s:
    time spent, by phase. counts: events, by name. metrics: further values by name, for the report
    on concurrent schedulers and for publication (`roadstead.actors.metrics`). warnings: of the
    actor's process on Ray, since the last status of one of its actors.
    """

    text: str
    error: str = ""
    error_kind: str = ""
    error_parts: tuple[str, ...] = ()
    timings_s: tuple[tuple[str, float], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    metrics: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()


STATUS = method("status", Nothing, ActorStatus)
RUN = method("run", Nothing, Nothing)
"""Client or supervisor → scheduler: start to lease and decide pods."""
STOP = method("stop", Nothing, Nothing)
"""Supervisor → scheduler or binder: start no further work."""

"""EventHeap: the events of a simulated run that are still to be handled.

Events of one time are handled in the order of their phase: first those that free resources, then
arrivals, then timers, then samples; within a phase in the order in which they were pushed. So one
scenario and one seed give one history.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

RELEASES, ARRIVALS, TIMERS, SAMPLES = range(4)
"""Phases of the events of one time."""

Handler = Callable[[object], None]
"""What handles an event; it is called with the subject of the event."""


class EventHeap:
    """The events to handle, except arrivals, which the engine merges from their sources.

    entries: a `heapq` of (time in microseconds, phase, number, handler, subject); the number makes
    entries differ before the handlers would be compared.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int, Handler, object]] = []
        self._numbers = count()

    def push(self, at_us: int, phase: int, handle: Handler, subject: object) -> None:
        """Add an event."""
        heapq.heappush(self.entries, (at_us, phase, next(self._numbers), handle, subject))

"""Hints: whether events are worth a retry, for each class of pods.

Follows isPodWorthRequeuing of pkg/scheduler/backend/queue/scheduling_queue.go (1.34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic

from roadstead.facts.pod import PodFacts
from roadstead.queue.pods import AnyOf, EventT, PodEntry

Hint = Callable[[str, EventT, PodFacts], bool]
"""(plugin, event, facts) -> whether the plugin may accept the pod after the event; False also if
the plugin did not register the event."""


def queue_always(plugin: str, event: object, facts: PodFacts) -> bool:
    """Return True: the hint of a plugin without a queueing hint function."""
    return True


def _registered_always(plugin: str, event: object) -> bool:
    return True


def _concerns_all(event: object, facts: PodFacts, rejected_by: tuple[str, ...]) -> bool:
    return True


def _any_event(events: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class EventRules(Generic[EventT]):
    """Functions that decide which events help which waiting pods; the queue never reads an event.

    hint: queueing hints. registered: whether a plugin registered the event; a gated pod is
    considered only for events of the plugin that gated it. concerns: called with an event, facts
    and rejecting plugins; whether such waiting pods are considered for the event (upstream
    considers fewer pods if a pod was assigned). Pods in flight are considered for every event.
    any_of: returns one event in place of many, when the log of events is full.
    """

    hint: Hint[EventT] = queue_always
    registered: Callable[[str, EventT], bool] = _registered_always
    concerns: Callable[[EventT, PodFacts, tuple[str, ...]], bool] = _concerns_all
    any_of: AnyOf[EventT] = _any_event


class Strategy(IntEnum):
    """Way in which a pod is requeued (upstream's queueingStrategy); the highest one applies."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class Hints(Generic[EventT]):
    """The strategy of each pod for one list of events; None in the list stands for "any event".

    Cached by facts object and rejecting plugins, so that for a million pods of fifty classes the
    hints run fifty times. An event object that is in the list twice is evaluated once.
    """

    def __init__(self, hint: Hint[EventT], events: Sequence[EventT | None]) -> None:
        self._hint = hint
        self._events = [*{id(event): event for event in events}.values()]
        self._cached: dict[tuple[tuple[str, ...], tuple[str, ...], int], Strategy] = {}

    def strategy(self, entry: PodEntry[EventT]) -> Strategy:
        """Return the highest strategy of any of the events for this pod."""
        key = (entry.rejected_by, entry.pending, id(entry.facts))
        cached = self._cached.get(key)
        if cached is None:
            cached = best_strategy(self._hint, self._events, entry)
            self._cached[key] = cached
        return cached


def best_strategy(
    hint: Hint[EventT], events: Iterable[EventT | None], entry: PodEntry[EventT]
) -> Strategy:
    """Return the highest strategy over events; AFTER_BACKOFF for a pod that no plugin rejected."""
    if not entry.rejected_by:
        return Strategy.AFTER_BACKOFF
    best = Strategy.SKIP
    highest = Strategy.IMMEDIATELY if entry.pending else Strategy.AFTER_BACKOFF
    for event in events:
        best = max(best, _strategy_of_event(hint, event, entry))
        if best == highest:
            break
    return best


def _strategy_of_event(
    hint: Hint[EventT], event: EventT | None, entry: PodEntry[EventT]
) -> Strategy:
    if event is None:
        return Strategy.AFTER_BACKOFF
    # A plugin that returned Pending waits for such an event, so the pod skips its backoff.
    if any(hint(plugin, event, entry.facts) for plugin in entry.pending):
        return Strategy.IMMEDIATELY
    rejecting = (plugin for plugin in entry.rejected_by if plugin not in entry.pending)
    if any(hint(plugin, event, entry.facts) for plugin in rejecting):
        return Strategy.AFTER_BACKOFF
    return Strategy.SKIP

"""Is an event worth a retry? The answer per class of pods.

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
"""(plugin, event, facts) -> may the event let the plugin pass this pod? False also where the
plugin did not register for the event."""


def queue_always(plugin: str, event: object, facts: PodFacts) -> bool:
    """The hint of a plugin without a queueing hint function."""
    return True


def _registered_always(plugin: str, event: object) -> bool:
    return True


def _concerns_all(event: object, facts: PodFacts, rejected_by: tuple[str, ...]) -> bool:
    return True


def _any_event(events: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class EventRules(Generic[EventT]):
    """What events mean to pods that wait; the queue itself never looks inside an event.

    hint: queueing hints. registered: whether a plugin wants to be told of the event; only the
    plugin that shut a gate can open it. concerns: whether pods rejected by these plugins are looked
    at when the event comes (upstream narrows them down for a pod that was assigned); pods in flight
    are, whatever it says. any_of: what stands for events of which there are too many to keep.
    """

    hint: Hint[EventT] = queue_always
    registered: Callable[[str, EventT], bool] = _registered_always
    concerns: Callable[[EventT, PodFacts, tuple[str, ...]], bool] = _concerns_all
    any_of: AnyOf[EventT] = _any_event


class Strategy(IntEnum):
    """How a pod comes back; a higher one wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class Hints(Generic[EventT]):
    """The strategy of pods for one list of events; None among the events stands for "any event".

    Pods with the same facts object and the same rejecting plugins get one answer, so a million
    pods of fifty classes ask the hints fifty times. An event that comes twice is asked about once.
    """

    def __init__(self, hint: Hint[EventT], events: Sequence[EventT | None]) -> None:
        self._hint = hint
        self._events = [*{id(event): event for event in events}.values()]
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...], int], Strategy] = {}

    def strategy(self, entry: PodEntry[EventT]) -> Strategy:
        """The best strategy that any of the events gives this pod."""
        key = (entry.rejected_by, entry.pending, id(entry.facts))
        known = self._known.get(key)
        if known is None:
            known = best_strategy(self._hint, self._events, entry)
            self._known[key] = known
        return known


def best_strategy(
    hint: Hint[EventT], events: Iterable[EventT | None], entry: PodEntry[EventT]
) -> Strategy:
    """The highest strategy over events; AFTER_BACKOFF at once for a pod that no plugin rejected."""
    if not entry.rejected_by:
        return Strategy.AFTER_BACKOFF
    best = Strategy.SKIP
    most = Strategy.IMMEDIATELY if entry.pending else Strategy.AFTER_BACKOFF
    for event in events:
        best = max(best, _strategy_of_event(hint, event, entry))
        if best == most:
            break
    return best


def _strategy_of_event(
    hint: Hint[EventT], event: EventT | None, entry: PodEntry[EventT]
) -> Strategy:
    if event is None:
        return Strategy.AFTER_BACKOFF
    # A plugin that said Pending waits for this very event: its word skips the backoff.
    if any(hint(plugin, event, entry.facts) for plugin in entry.pending):
        return Strategy.IMMEDIATELY
    rejecting = (plugin for plugin in entry.rejected_by if plugin not in entry.pending)
    if any(hint(plugin, event, entry.facts) for plugin in rejecting):
        return Strategy.AFTER_BACKOFF
    return Strategy.SKIP

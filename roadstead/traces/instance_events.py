"""Events of instances (submitted, scheduled, ended) become pods; both traces of Google have them.

A pod arrives when its instance was submitted first, and runs for as long as the instance ran after
its last start: an instance that was evicted or failed starts again. The sink's spool stores all
events, and returns them by instance, in order of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from roadstead.fleet.trace import NEVER_MS, TIME_MAX_S
from roadstead.traces.sink import LeftOut, TraceSink
from roadstead.traces.spool import EventRow

Event = Literal["submit", "schedule", "end", "other"]
NO_CLASS: Final = -1
"""In place of the number of a pod class: no request."""
US_PER_MS: Final = 1000
AFTER_US: Final = (1 << 63) - 1
"""The time of events after the end of a trace."""

_CODES: Final[Mapping[Event, int]] = {"submit": 0, "schedule": 1, "end": 2, "other": 3}
"""In place of the words in stored events."""


def add_event(
    sink: TraceSink, key: tuple[int, int], time_us: int, event: Event, pod_class: int, line_id: int
) -> None:
    """Store an event. key: numbers of the job and of the instance within it.

    pod_class: of its request, or NO_CLASS. line_id: its line in the input (`Spool.line_id`).
    """
    sink.spool.add_event(EventRow(*key, time_us, _CODES[event], pod_class, line_id))


def add_instances(sink: TraceSink, name_prefix: str) -> None:
    """Add the pods of all events; instances that never ran or have no request are left out."""
    repeated = 0
    for (job, instance), events in sink.spool.events():
        try:
            repeated += _add(sink, f"{name_prefix}-{job}-{instance}", events)
        except LeftOut as reason:
            sink.leave_out(str(reason), ": ".join(sink.spool.line_of(events[0].line_id)))
    if repeated:
        sink.notes.append(f"{repeated:,} earlier attempts of restarted instances are left out")


def _add(sink: TraceSink, name: str, events: list[EventRow]) -> int:
    """Add one pod, and return how often its instance was started before the last time."""
    submitted, scheduled, ended = (
        [event.time_us for event in events if event.code == _CODES[name]]
        for name in ("submit", "schedule", "end")
    )
    pod_class = next((event.pod_class for event in events if event.pod_class != NO_CLASS), NO_CLASS)
    if not scheduled:
        raise LeftOut("never scheduled")
    if pod_class == NO_CLASS:
        raise LeftOut("no request")
    # The submit event may be missing, or later than the first schedule event.
    arrival_us = min([*submitted[:1], scheduled[0]])
    start_us = scheduled[-1]
    end_us = next((time for time in ended if time >= start_us), AFTER_US)
    # Beyond the longest time of a trace file: how these traces mark what follows their end.
    if arrival_us >= TIME_MAX_S * 1_000_000:
        raise LeftOut("after the end of the trace")
    still_runs = end_us >= TIME_MAX_S * 1_000_000
    duration_ms = NEVER_MS if still_runs else (end_us - start_us) // US_PER_MS
    deletion_ms = NEVER_MS if still_runs else end_us // US_PER_MS
    sink.add_pod(name, pod_class, arrival_us // US_PER_MS, duration_ms, deletion_ms=deletion_ms)
    return len(scheduled) - 1

"""Views of a simulated fleet for `roadstead demo --live`: a view on a terminal, or lines."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import click

from roadstead.config.scenario.values import time_text
from roadstead.facts.node import zone_text
from roadstead.simulator.samples import WHOLE_FLEET, sample_rows

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from roadstead.facts.node import NodeFacts
    from roadstead.simulator.component import Note
    from roadstead.simulator.recording import RecordedWorld

MINUTE_US: Final = 60_000_000
SHOWN_MIN_S: Final = 8.0
"""Minimum time for which a run is shown on a terminal, so that it can be watched."""

EVENTS_SHOWN: Final = 9
"""Number of events below the table of zones."""

LINE_INTERVAL_US: Final = 120 * MINUTE_US
"""Interval of the lines without a terminal."""

NODE_TAINTS: Final = "node.kubernetes.io/"
"""Prefix of the taints of nodes that are not ready, or cordoned."""


@dataclass(frozen=True, slots=True)
class ZoneFrame:
    """A zone at one time. available: nodes that accept pods. cpu_share: requested share, 0 to 1."""

    name: str
    nodes: int
    available: int
    running: int
    cpu_share: float


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """A fleet at one time, with numbers of pods. ended: since the start."""

    now_us: int
    running: int
    pending: int
    ended: int
    zones: tuple[ZoneFrame, ...]

    def line(self) -> str:
        """Return the frame as one line."""
        zones = ", ".join(f"{each.name} {each.available}/{each.nodes}" for each in self.zones)
        pods = f"{self.running:,} running, {self.pending:,} pending, {self.ended:,} ended"
        return f"{clock(self.now_us)}  {pods}; nodes {zones}"


def clock(now_us: int) -> str:
    """Return a time as HH:MM."""
    hours, minutes = divmod(now_us // MINUTE_US, 60)
    return f"{hours:02}:{minutes:02}"


def frame_of(world: RecordedWorld) -> LiveFrame:
    """Return what a view shows of a fleet now."""
    # By zone, metric and resource.
    values = {row[:3]: row[3] for row in sample_rows(world)}
    zone_of = {name: zone_text(node.zone) for name, node in world.nodes.items()}
    nodes = Counter(zone_of.values())
    available = Counter(zone_of[name] for name, node in world.nodes.items() if _is_available(node))
    running = Counter(zone_of[pod.node] for pod in world.pods.values() if pod.node)
    zones = (
        ZoneFrame(
            zone.rpartition("/")[2],  # without the region
            nodes[zone],
            available[zone],
            running[zone],
            values.get((zone, "requested", "cpu"), 0.0)
            / max(1.0, values.get((zone, "allocatable", "cpu"), 0.0)),
        )
        for zone in sorted(nodes)
    )
    running_all, pending, ended = (
        int(values[WHOLE_FLEET, metric, ""]) for metric in ("running", "pending", "ended")
    )
    return LiveFrame(world.now_us, running_all, pending, ended, tuple(zones))


def _is_available(node: NodeFacts) -> bool:
    has_node_taint = any(taint.key.startswith(NODE_TAINTS) for taint in node.taints)
    return not node.unschedulable and not has_node_taint


def event_text(now_us: int, note: Note) -> str:
    """Return an event as one line."""
    return "  ".join(part for part in (clock(now_us), note.what, note.subject, note.detail) if part)


class LatestEvents:
    """Events since the previous frame; those of one kind and minute become one line.

    A `Note` is an event of the fleet: what happened, to which subject, with a detail.
    """

    def __init__(self) -> None:
        # (minute, kind of event) → text of the first event, number of events.
        self._lines: dict[tuple[str, str], tuple[str, int]] = {}

    def add(self, now_us: int, note: Note) -> None:
        key = clock(now_us), note.what
        first, count = self._lines.get(key, (event_text(now_us, note), 0))
        self._lines[key] = first, count + 1

    def pop_lines(self) -> list[str]:
        """Return and remove the lines."""
        lines = [
            first if count == 1 else f"{first}, and {count - 1:,} more"
            for first, count in self._lines.values()
        ]
        self._lines.clear()
        return lines


class LiveView(Protocol):
    """Show a fleet while it is simulated."""

    def event(self, now_us: int, note: Note) -> None:
        """Record an event, which the next frame shows."""
        ...

    def frame(self, frame: LiveFrame) -> None:
        """Show the state of the fleet."""
        ...


class LineView:
    """Write lines to standard error: events by kind and minute, and at intervals the fleet."""

    def __init__(self) -> None:
        self._next_us = 0
        self._latest = LatestEvents()

    def event(self, now_us: int, note: Note) -> None:
        self._latest.add(now_us, note)

    def frame(self, frame: LiveFrame) -> None:
        for line in self._latest.pop_lines():
            click.echo(line, err=True)
        if frame.now_us >= self._next_us:
            self._next_us = frame.now_us + LINE_INTERVAL_US
            click.echo(frame.line(), err=True)


class TerminalView:
    """Keep a table of zones and the latest events on a terminal.

    horizon_us: of the run, which is shown for SHOWN_MIN_S at least. read_s, sleep: of the real
    clock.
    """

    def __init__(
        self,
        live: Live,
        horizon_us: int,
        read_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._live, self._horizon_us = live, horizon_us
        self._read_s, self._sleep = read_s, sleep
        self._began_s = read_s()
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        self._latest = LatestEvents()

    def event(self, now_us: int, note: Note) -> None:
        self._latest.add(now_us, note)

    def frame(self, frame: LiveFrame) -> None:
        self._events.extend(self._latest.pop_lines())
        self._live.update(picture(frame, self._horizon_us, list(self._events)), refresh=True)
        due_s = self._began_s + SHOWN_MIN_S * frame.now_us / self._horizon_us
        self._sleep(max(0.0, due_s - self._read_s()))


def picture(frame: LiveFrame, horizon_us: int, events: list[str]) -> RenderableType:
    """Return a frame as rich shows it: counts, a row for each zone, the latest events."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from roadstead.report.text_table import bar

    head = Text.assemble(
        (f"{clock(frame.now_us)} of {time_text(horizon_us)}", "bold"),
        f"   running {frame.running:,}   pending ",
        (f"{frame.pending:,}", "yellow" if frame.pending else ""),
        f"   ended {frame.ended:,}",
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("zone", "nodes available", "pods", "CPU requested", ""):
        table.add_column(heading, justify="right" if heading in ("pods", "") else "left")
    for zone in frame.zones:
        is_whole = zone.available == zone.nodes
        dots = Text("■" * zone.available, style="green")
        dots.append("□" * (zone.nodes - zone.available), style="red")
        dots.append(f" {zone.available}/{zone.nodes}", style="" if is_whole else "red")
        share = f"{zone.cpu_share:.0%}"
        table.add_row(Text(zone.name), dots, f"{zone.running:,}", bar(zone.cpu_share), share)
    lines = [Text(each, no_wrap=True, overflow="ellipsis") for each in events]
    return Group(head, Text(), table, Text(), *lines)


@contextmanager
def shown_fleet(console: Console, horizon_us: int) -> Iterator[LiveView]:
    """Yield a view on the console if it is a terminal, otherwise one that writes lines."""
    if not console.is_terminal:
        yield LineView()
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=False) as live:
        yield TerminalView(live, horizon_us)

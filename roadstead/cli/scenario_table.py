"""The figures of a scenario as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.config.scenario.values import time_text
from roadstead.report.units import counted, human_amount
from roadstead.scenario.summary import EventSummary, ScenarioSummary

ZONES_SHOWN = 6
ROWS_SHOWN = 20
"""Maximum number of lines of a section."""


def summary_lines(summary: ScenarioSummary) -> Iterator[str]:
    """Yield the lines: figures, then one for each source of arrivals, controller and event."""
    rows = [*_figures(summary)]
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {text}" for name, text in rows)
    yield from _section("workload", [*_workload(summary)])
    yield from _section("events", [_event(each) for each in summary.events])
    yield from _section("notes", list(summary.notes))


def _figures(summary: ScenarioSummary) -> Iterator[tuple[str, str]]:
    yield "scenario", summary.name
    yield "nodes", f"{summary.nodes:,}{_zones(summary.zones)}"
    amounts = [human_amount(name, each) for name, each in summary.allocatable.items()]
    for name, amount in zip(summary.allocatable, amounts, strict=True):
        yield f"  {name}", amount
    if summary.running_pods or summary.pending_pods:
        yield "pods", f"{summary.running_pods:,} running, {summary.pending_pods:,} pending"
    arrivals = sum(each.arrivals for each in summary.sources)
    per_hour = sum(each.per_hour for each in summary.sources)
    yield "arrivals", f"{_about(arrivals)} expected, {_about(per_hour)} per hour"
    replicas = sum(each.replicas for each in summary.controllers)
    yield "controllers", f"{len(summary.controllers):,} with {replicas:,} pods at first"
    yield "events", _counted_events(summary.events)
    # Rounded up.
    samples = -(-summary.horizon_us // summary.sample_us)
    yield "horizon", f"{time_text(summary.horizon_us)}, {samples:,} samples"
    runs = len(summary.seeds) * len(summary.configs)
    seeds = f"{len(summary.seeds):,} seed{'s' if len(summary.seeds) > 1 else ''}"
    yield "runs", f"{runs:,}: {seeds}, configuration {', '.join(summary.configs)}"


def _zones(zones: dict[str, int]) -> str:
    named = {name: count for name, count in zones.items() if name}
    if not named:
        return ", in no zone"
    shown = ", ".join(f"{name} {count:,}" for name, count in list(named.items())[:ZONES_SHOWN])
    more = f" and {len(named) - ZONES_SHOWN:,} more" if len(named) > ZONES_SHOWN else ""
    return f" in {len(named):,} zones: {shown}{more}"


def _counted_events(events: tuple[EventSummary, ...]) -> str:
    if not events:
        return "none"
    return f"{len(events):,}, which occur {_about(sum(each.occurrences for each in events))} times"


def _workload(summary: ScenarioSummary) -> Iterator[str]:
    for source in summary.sources:
        pods = f", {_about(source.pods)} pods" if source.pods != source.arrivals else ""
        figures = f"{_about(source.per_hour)} per hour, {_about(source.arrivals)} in all{pods}"
        yield f"{source.name}: {figures}"
    for each in summary.controllers:
        changes = f", {counted(each.changes, 'change')}" if each.changes else ""
        pods = "pod" if each.replicas == 1 else "pods"
        yield f"{each.kind} {each.namespace}/{each.name}: {each.replicas:,} {pods}{changes}"


def _event(event: EventSummary) -> str:
    nodes = f"{event.nodes:,} node{'s' if event.nodes != 1 else ''}"
    if event.action == "fail":
        repair = time_text(event.for_us)
        return f"{nodes} fail at random, {_about(event.occurrences)} times; repair {repair}"
    times = f"at {time_text(event.at_us)}"
    if event.every_us:
        times += f" and every {time_text(event.every_us)} ({event.occurrences:,.0f} times)"
    # Negative: until the end.
    lasting = f" for {time_text(event.for_us)}" if event.for_us >= 0 else ""
    return f"{times}: {event.action} {nodes}{lasting}"


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{title}:"
    yield from (f"  {line}" for line in lines[:ROWS_SHOWN])
    if len(lines) > ROWS_SHOWN:
        yield f"  … and {len(lines) - ROWS_SHOWN:,} more (--format json has all)"


def _about(number: float) -> str:
    """Format a number with one decimal only if it is below 100 and not whole."""
    decimals = 0 if number >= 100 or number == int(number) else 1
    return f"{number:,.{decimals}f}"

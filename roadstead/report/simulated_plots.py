"""Plots of the samples of simulated runs over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.lab.statistics import Band
from roadstead.report.plot import Plot, PlotLine
from roadstead.report.units import is_bytes, resource_title

HOUR_US: Final = 3_600_000_000
GIB: Final = 1 << 30
POINTS_MAX: Final = 400
RUNS_MAX: Final = 6
EVENTS_MAX: Final = 40
"""Maxima of points per line, runs per plot, and events per plot, so that plots stay readable."""

Series = Mapping[tuple[str, str], Sequence[tuple[int, float]]]
"""(metric, resource) → samples: (time in microseconds, value)."""


@dataclass(frozen=True, slots=True)
class SampledRun:
    """A run: its name, the samples of its whole fleet, its events as (time, text).

    marks: those of the events that plots show as vertical lines.
    """

    name: str
    samples: Series
    events: tuple[tuple[int, str], ...] = ()
    marks: tuple[tuple[int, str], ...] = ()


def sample_plots(runs: Sequence[SampledRun]) -> Iterator[Plot]:
    """Yield plots of pods, then of each resource that the fleet has."""
    drawn = runs[:RUNS_MAX]
    if not drawn:
        return
    yield from _plots("Pods on nodes", "Pods", drawn, {"running": ""}, 1.0)
    yield from _plots("Pods that wait for a node", "Pods", drawn, {"pending": ""}, 1.0)
    resources = dict.fromkeys(
        resource
        for run in drawn
        for (metric, resource), points in run.samples.items()
        if metric == "allocatable" and any(value for _, value in points)
    )
    for resource in resources:
        unit, divisor = _unit(resource)
        title, y_title = resource_title(resource), unit
        # First what is requested, so that a run has the colour that it has in the other plots.
        amounts = {"requested": resource, "allocatable": resource}
        yield from _plots(f"{title}: requested and allocatable", y_title, drawn, amounts, divisor)
        fragments = {"fragmentation": resource}
        named = f"{title}: free amount that a typical pod cannot use"
        yield from _plots(named, y_title, drawn, fragments, divisor)


def _plots(
    title: str, y_title: str, runs: Sequence[SampledRun], metrics: Mapping[str, str], divisor: float
) -> Iterator[Plot]:
    """Yield the plot of some metrics, or nothing without samples. metrics: name → resource."""
    lines, step = _lines(runs, metrics, divisor)
    if not lines:
        return
    first = runs[0]
    last = max(x for line in lines for x, _ in line.points)
    events = [(at_us / HOUR_US, text) for at_us, text in first.marks if at_us / HOUR_US <= last]
    notes = [f"One of {step} samples is drawn."] if step > 1 else []
    if events:
        of_run = f" of {first.name}" if len(runs) > 1 else ""
        count = f"the first {EVENTS_MAX} events" if len(events) > EVENTS_MAX else "events"
        notes.append(f"Dashed vertical lines: {count}{of_run}, without evictions.")
    yield Plot(
        title,
        "Hours",
        y_title,
        tuple(lines),
        notes=tuple(notes),
        events=tuple(events[:EVENTS_MAX]),
        has_markers=False,
    )


def _lines(
    runs: Sequence[SampledRun], metrics: Mapping[str, str], divisor: float
) -> tuple[list[PlotLine], int]:
    """Return a line for each metric and run, and of how many samples one is drawn.

    A metric that is the same in all runs, as the size of a fleet often is, has one line.
    """
    named: list[tuple[str, Sequence[tuple[int, float]]]] = []
    for metric, resource in metrics.items():
        found = [(run.name, run.samples.get((metric, resource), ())) for run in runs]
        label = metric if len(metrics) > 1 else ""
        if label and all(points == found[0][1] for _, points in found):
            named.append((label, found[0][1]))
        else:
            named += [
                (f"{name} {label}".strip() if len(runs) > 1 else label, points)
                for name, points in found
            ]
    step = max(1, *(-(-len(points) // POINTS_MAX) for _, points in named))
    drawn = ((name, points[::step]) for name, points in named if points)
    lines = [
        PlotLine(name, tuple((us / HOUR_US, _point(value / divisor)) for us, value in points))
        for name, points in drawn
    ]
    return lines, step


def _point(value: float) -> Band:
    return Band(value, value, value)


def _unit(resource: str) -> tuple[str, float]:
    """Return the unit of a resource's amounts in plots, and its size."""
    if resource == "cpu":
        return "Cores", 1000.0
    if is_bytes(resource):
        return "GiB", float(GIB)
    return ("Devices", 1000.0) if resource.endswith("-milli") else ("Amount", 1.0)

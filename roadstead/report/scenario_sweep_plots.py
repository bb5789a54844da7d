"""Plots of a sweep of a scenario: each metric over the first varied key of the scenario.

A line of a plot is a combination of values of the other varied keys. The name of a metric may end
with a space and the resource or the pods' owner (a controller or group of the scenario) that it
counts: `wait_p99_s web`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from roadstead.lab.scenario_sweep import MetricSpread, ScenarioSweep, Values, name_of, value_text
from roadstead.lab.statistics import Band
from roadstead.report.plot import Plot, PlotLine, axis_values

LINES_MAX: Final = 12
PLOTS_MAX: Final = 40
"""Maxima of lines in a plot and of plots, so that the page stays readable."""

TITLES: Final = {
    "placed_share": ("Bound pods", "Share of all pods (0 to 1)"),
    "pending": ("Pods that wait at the horizon", "Pods"),
    "pending_pod_hours": ("Time that all pods waited", "Pod-hours"),
    "wait_mean_s": ("Mean wait", "Seconds from creation to bind"),
    "wait_p50_s": ("Median wait", "Seconds from creation to bind"),
    "wait_p99_s": ("99% quantile of waits", "Seconds from creation to bind"),
    "preempted": ("Preempted pods", "Pods"),
    "evicted": ("Evicted pods", "Pods"),
    "lost": ("Lost pods", "Pods"),
    "plugin_errors": ("Errors of plugins", "Attempts that ended with an error"),
    "utilization": ("Utilization", "Share of the allocatable amount (0 to 1)"),
    "fragmentation": ("Fragmentation", "Free share that a typical pod cannot use (0 to 1)"),
}
"""Metric (the part of its name before the space) → title, and label of the y axis.

Evicted: by a taint or a drain. Lost: with their node.
"""

Points = Sequence[tuple[Values, int, Mapping[str, MetricSpread]]]
"""For each combination: the values of the varied keys, number of runs, and metrics."""


def varying_metrics(points: Points) -> tuple[list[str], list[str]]:
    """Return the metrics that differ between some runs, and those that are the same in all."""
    names = list(dict.fromkeys(name for _, _, metrics in points for name in metrics))
    same = []
    for name in names:
        spreads = [metrics[name] for _, _, metrics in points if name in metrics]
        if len({value for each in spreads for value in (each.low, each.high)}) == 1:
            same.append(name)
    return [name for name in names if name not in same], same


def sweep_plots(sweep: ScenarioSweep, points: Points, metrics: Sequence[str]) -> list[Plot]:
    """Return a plot for each of the first PLOTS_MAX metrics; none if nothing was varied."""
    if not sweep.axes:
        return []
    return [_plot(sweep, points, metric) for metric in metrics[:PLOTS_MAX]]


def _plot(sweep: ScenarioSweep, points: Points, metric: str) -> Plot:
    (key, values), *others = sweep.axes
    xs, categories = axis_values([_axis_value(each) for each in values])
    x_of = dict(zip(map(value_text, values), xs, strict=True))
    lines: dict[str, dict[float, Band]] = {}
    for point, _, metrics in points:
        if (spread := metrics.get(metric)) is not None:
            name = name_of({other: point[other] for other, _ in others})
            band = Band(spread.median, spread.low, spread.high)
            lines.setdefault(name, {})[x_of[value_text(point[key])]] = band
    title, y_label = titles(metric)
    more = len(lines) - LINES_MAX
    notes = [f"The first {LINES_MAX} of {len(lines)} lines; the table has all."] if more > 0 else []
    return Plot(
        f"{title} by {key}",
        key,
        y_label,
        tuple(
            PlotLine(name, tuple(sorted(line.items())))
            for name, line in list(lines.items())[:LINES_MAX]
        ),
        categories,
        interval=f"Lowest to highest of {len(sweep.seeds)} seeds; marker: median",
        notes=tuple(notes),
    )


def _axis_value(value: object) -> object:
    """Return a number as it is, anything else in words."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else value_text(value)


def titles(metric: str) -> tuple[str, str]:
    """Return the title of a metric, and the label of its y axis."""
    name, _, counted = metric.partition(" ")
    title, y_label = TITLES.get(name, (name, ""))
    return f"{title} of {counted}" if counted else title, y_label

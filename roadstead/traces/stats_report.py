"""Statistics of a trace as tables, as plots of text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from roadstead.report.text_table import Column, bar, print_table, text_column
from roadstead.report.units import human_amount, human_seconds, resource_title
from roadstead.traces.stats import PodClassCount, Requests, TraceStats

DAY_S = 86_400
HOUR_S = 3_600
PLOT_CHARS = 48
CLASSES_SHOWN = 10
_BARS = " ▁▂▃▄▅▆▇█"
_LABELS_SHOWN = 3


def print_stats(console: Console, stats: TraceStats, classes_shown: int = CLASSES_SHOWN) -> None:
    """Print counts, the largest classes, lifetimes, and plots of arrivals and use."""
    _line(console, f"{stats.source}")
    _line(console, f"{stats.nodes:,} nodes, {stats.pods:,} pods of {stats.classes:,} classes")
    _print_shapes(console, stats, classes_shown)
    _print_classes(console, stats, classes_shown)
    if not stats.pods:
        return
    _print_lifetimes(console, stats)
    _print_arrivals(console, stats)
    _print_use(console, stats)


def _line(console: Console, content: str) -> None:
    console.print(Text(content), soft_wrap=True)


def _print_shapes(console: Console, stats: TraceStats, shown: int) -> None:
    rows = [(_amounts(each.allocatable), f"{each.nodes:,}") for each in stats.shapes[:shown]]
    hidden = _hidden(len(stats.shapes) - len(rows), "shapes")
    if rows:
        columns = (text_column("shape"), Column("nodes"))
        print_table(console, "Nodes by shape", columns, rows, left_out=hidden)


def _print_classes(console: Console, stats: TraceStats, shown: int) -> None:
    rows = [
        (
            _class_text(each),
            f"{each.pods:,}",
            "–" if each.mean_s is None else _span(each.mean_s),
            bar(each.pods / stats.pods),
        )
        for each in stats.pod_classes[:shown]
    ]
    columns = (text_column("class"), Column("pods"), Column("mean lifetime"), Column("", "bar"))
    hidden = _hidden(len(stats.pod_classes) - len(rows), "classes")
    if rows:
        print_table(console, "Pods by class", columns, rows, left_out=hidden)


def _print_lifetimes(console: Console, stats: TraceStats) -> None:
    rows = [(name, _span(value)) for name, value in stats.lifetimes_s.items()]
    rows.append(("do not end", f"{stats.endless:,} pods"))
    print_table(console, "Lifetimes", (text_column("quantile"), Column("lifetime")), rows)


def _print_arrivals(console: Console, stats: TraceStats) -> None:
    values = [sum(group) / len(group) for group in _groups(stats.arrivals_per_hour)]
    _title(console, f"Arrivals per hour, from 0 to {_span(stats.last_s)}")
    _line(console, f"{_sparkline(values, max(values))}  up to {max(values):,.0f}")


def _print_use(console: Console, stats: TraceStats) -> None:
    _title(console, "Requested over time, if every pod starts when it arrives")
    width = max((len(resource_title(each.resource)) for each in stats.use), default=0)
    for each in stats.use:
        peak = max(each.requested)
        # A full bar is the capacity, or the peak where requests exceed it.
        top = max(peak, each.capacity)
        share = f"{peak / each.capacity:.0%} of " if each.capacity else "no capacity; "
        offered = human_amount(each.resource, each.capacity) if each.capacity else ""
        most = f"up to {human_amount(each.resource, peak)}"
        peaks = [max(group) for group in _groups(each.requested)]
        _line(console, f"{resource_title(each.resource):<{width}}  {_sparkline(peaks, top)}")
        _line(console, f"{'':<{width}}  {most}, {share}{offered}".rstrip("; "))


def _title(console: Console, content: str) -> None:
    console.print(Text(f"\n{content}", style="bold"), soft_wrap=True)


def _hidden(count: int, plural: str) -> str:
    return f"… and {count:,} more {plural}" if count > 0 else ""


def _amounts(amounts: Requests) -> str:
    shown = (
        human_amount(name, amount)
        if name in ("cpu", "memory")
        else f"{human_amount(name, amount)} {resource_title(name)}"
        for name, amount in amounts
    )
    return ", ".join(shown) or "nothing"


def _class_text(each: PodClassCount) -> str:
    labels = [f"{key}={value}" for key, value in each.labels[:_LABELS_SHOWN]]
    priority = [f"priority {each.priority}"] if each.priority else []
    return ", ".join([_amounts(each.requests), *priority, *labels])


def _span(seconds: float) -> str:
    """Return a duration in days or hours if it is at least two of them, else in smaller units."""
    if seconds >= 2 * DAY_S:
        return f"{seconds / DAY_S:,.1f} d"
    return f"{seconds / HOUR_S:.1f} h" if seconds >= 2 * HOUR_S else human_seconds(seconds)


def _groups(values: Sequence[float]) -> list[Sequence[float]]:
    """Return the values in at most `PLOT_CHARS` groups of equal size; the last may be smaller."""
    size = -(-len(values) // PLOT_CHARS)
    return [values[at : at + size] for at in range(0, len(values), size)]


def _sparkline(values: Sequence[float], top: float) -> str:
    steps = len(_BARS) - 1
    places = (0 if not value or not top else max(1, round(steps * value / top)) for value in values)
    return "".join(_BARS[place] for place in places)


def stats_json(stats: TraceStats) -> str:
    """Return the statistics as JSON, with all classes."""
    document = {
        "source": stats.source,
        "nodes": stats.nodes,
        "pods": stats.pods,
        "classes": stats.classes,
        "nodesByShape": [
            {"allocatable": dict(each.allocatable), "nodes": each.nodes} for each in stats.shapes
        ],
        "podsByClass": [
            {
                "namespace": each.namespace,
                "labels": dict(each.labels),
                "priority": each.priority,
                "requests": dict(each.requests),
                "pods": each.pods,
                "meanLifetimeS": each.mean_s,
            }
            for each in stats.pod_classes
        ],
        "firstArrivalS": stats.first_s,
        "lastArrivalS": stats.last_s,
        "arrivalsPerHour": list(stats.arrivals_per_hour),
        "lifetimesS": stats.lifetimes_s,
        "endless": stats.endless,
        "pointS": list(stats.point_s),
        "use": [
            {
                "resource": each.resource,
                "capacity": each.capacity,
                "requested": list(each.requested),
            }
            for each in stats.use
        ],
    }
    return json.dumps(document, indent=2)

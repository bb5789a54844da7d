"""Plots of a sweep over a study (`roadstead.lab.studies`): one for each of the study's figures.

A point is one combination of the swept parameters; it has a band for each figure: mean and interval
over the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from roadstead.lab.statistics import Band
from roadstead.lab.studies import Study, Value
from roadstead.lab.sweep import Point, Sweep
from roadstead.report.plot import Plot, PlotLine, axis_values
from roadstead.report.plot_text import number_text


@dataclass(frozen=True, slots=True)
class MetricText:
    """Texts of a figure: title, and amount with unit for the axis. high: the maximum value."""

    title: str
    amount: str
    high: float = inf


_BUSY: Final = "Share of time spent on decisions (0 to 1)"
_REGRET: Final = "Points of 100 below the best score"
_CONFLICTED: Final = "Transactions with a conflict for each one without"

# By name of the figure. In the studies `extra-slots` and `policies`, a slot is the room for one
# task, and a sync gap the time in which a scheduler reads the state of all slots once. A run of
# `policies` has several phases with different loads. Regret: the best possible score minus that of
# the chosen node.
METRIC_TEXTS: Final = {
    "conflict_fraction": MetricText("Conflicts", "Conflicts for each pod or task placed"),
    "transaction_conflict_fraction": MetricText(
        "Conflict fraction of jobs", "Jobs with a conflict for each one without"
    ),
    "service_conflict_fraction": MetricText("Conflict fraction of service jobs", _CONFLICTED),
    "batch_conflict_fraction": MetricText("Conflict fraction of batch jobs", _CONFLICTED),
    "busyness": MetricText("Busyness of the schedulers", _BUSY, 1.0),
    "service_busyness": MetricText("Busyness of the service schedulers", _BUSY, 1.0),
    "batch_busyness": MetricText("Busyness of the batch schedulers", _BUSY, 1.0),
    "wait_s": MetricText("Mean wait", "Seconds until the placement"),
    "service_wait_s": MetricText("Mean wait of service jobs", "Seconds until the first decision"),
    "batch_wait_s": MetricText("Mean wait of batch jobs", "Seconds until the first decision"),
    "phase3_wait_s": MetricText("Mean wait in the third phase", "Seconds until the placement"),
    "retries": MetricText("Retries", "Further bind requests for each pod bound"),
    "service_retries": MetricText("Retries of service jobs", "Retries for each job"),
    "score_regret": MetricText("Score regret", _REGRET),
    "batch_score_regret": MetricText("Score regret of batch jobs", _REGRET),
    "utilization": MetricText("Utilization", "Share of the capacity in use (0 to 1)", 1.0),
    "extra_slots": MetricText("Extra slots", "Slots beyond the tasks of a sync gap"),
    "extra_share": MetricText("Extra slots per task", "Extra slots for each task of a sync gap"),
    "feasible": MetricText("Runs with enough slots", "Share of runs (0 to 1)", 1.0),
    "quality": MetricText("Quality of the slots used", "Rank by score (0: worst, 1: best)", 1.0),
    "tasks_per_s": MetricText("Throughput", "Tasks placed per second"),
    "batch_tasks_per_s": MetricText(
        "Throughput of the batch schedulers", "Tasks placed per second"
    ),
    "pods_per_s": MetricText("Throughput", "Pods bound per second"),
    "violation_share": MetricText(
        "Constraint violations", "Share of commits that violate a constraint (0 to 1)", 1.0
    ),
}


def metric_text(metric: str) -> MetricText:
    """Texts of a figure; derived from its name if none are defined."""
    words = first_upper(readable_name(metric))
    return METRIC_TEXTS.get(metric, MetricText(words, words))


def plots(sweep: Sweep, points: Sequence[Point]) -> list[Plot]:
    """One plot for each figure that the study lists."""
    if not sweep.axes:
        return []
    return [_plot(sweep, points, metric) for metric in sweep.study.metrics]


def _plot(sweep: Sweep, points: Sequence[Point], metric: str) -> Plot:
    (x_name, values), *others = sweep.axes
    xs, categories = axis_values(values)
    x_of = dict(zip(values, xs, strict=True))
    texts = metric_text(metric)
    bands = [point.bands[metric] for point in points]
    lines: dict[str, list[tuple[float, Band]]] = {}
    for point, band in zip(points, bands, strict=True):
        name = ", ".join(_short(other, point.values[other]) for other, _ in others)
        x = x_of[point.values[x_name]]
        lines.setdefault(name, []).append((x, _cut_to_possible(band, texts.high)))
    return Plot(
        _title(texts, sweep),
        axis_title(sweep.study, x_name),
        texts.amount,
        tuple(PlotLine(name, tuple(sorted(at, key=_x))) for name, at in lines.items()),
        categories,
        interval=_interval(len(sweep.seeds), bands, texts.high),
        notes=_notes(len(sweep.seeds), bands),
    )


def _title(texts: MetricText, sweep: Sweep) -> str:
    """The figure, followed by the parameters that were varied."""
    *varied, last = (parameter_words(sweep.study, name)[0] for name, _ in sweep.axes)
    before = f"{', '.join(varied)} and " if varied else ""
    return f"{texts.title} by {before}{last}"


def _interval(seeds: int, bands: Sequence[Band], high: float) -> str:
    """Description of the intervals, and the values at which they are cut."""
    cuts = ["0"] if any(_cut_to_possible(band, high).low > band.low for band in bands) else []
    if any(_cut_to_possible(band, high).high < band.high for band in bands):
        cuts.append(number_text(high))
    cut = f", cut at {' and '.join(cuts)}" if cuts else ""
    return f"95% interval of the mean over {seeds} seeds{cut}"


def _notes(seeds: int, bands: Sequence[Band]) -> tuple[str, ...]:
    """A note on why no interval is drawn, if none is."""
    if seeds == 1:
        return ("One seed: no intervals.",)
    if all(band.low == band.high for band in bands):
        return (f"The {seeds} seeds have the same values: no intervals.",)
    return ()


def parameter_words(study: Study, name: str) -> tuple[str, str]:
    """(noun, unit or remark) of a parameter."""
    head, _, remark = study.parameter(name, "plot").text.partition(" (")
    return head or split_unit(name)[0], split_unit(name)[1] or remark.removesuffix(")")


def axis_title(study: Study, name: str) -> str:
    """The title of an axis over a parameter."""
    words, remark = parameter_words(study, name)
    return first_upper(words) + (f" ({remark})" if remark else "")


def split_unit(name: str) -> tuple[str, str]:
    """(readable name, unit) of a parameter or figure: ("service job", "seconds")."""
    for end, unit in (("_per_s", "per second"), ("_s", "seconds")):
        if name.endswith(end):
            return name.removesuffix(end).replace("_", " "), unit
    return name.replace("_", " "), ""


def readable_name(name: str) -> str:
    """The name of a parameter or figure in a table, with its unit in brackets."""
    stem, _, unit = name.rpartition("_")
    if unit == "s" and stem and not stem.endswith("_per"):
        return f"{stem.replace('_', ' ')} (s)"
    return name.replace("_", " ").replace(" per ", "/")


def first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(name: str, value: Value) -> str:
    """A parameter with its value, for the legend: "service job 0.1 s", "conflicts fit"."""
    words, unit = split_unit(name)
    suffix = {"seconds": " s", "per second": "/s"}.get(unit, "")
    shown = str(value) if isinstance(value, (str, bool)) else number_text(value)
    return f"{words} {shown}{suffix}"


def _cut_to_possible(band: Band, high: float) -> Band:
    """Cut a band to possible values: only figures with a negative mean can be negative."""
    low = max(band.low, 0.0) if band.mean >= 0.0 else band.low
    return replace(band, low=low, high=max(band.mean, min(band.high, high)))


def _x(point: tuple[float, Band]) -> float:
    return point[0]

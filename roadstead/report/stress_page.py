"""The report of a sweep: one HTML page that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Final

from roadstead.lab.recommend import Recommendation
from roadstead.lab.statistics import Band
from roadstead.lab.studies import Study, Value
from roadstead.lab.sweep import Point, Swept
from roadstead.report.html_page import html_page
from roadstead.report.plot import Line, Plot, numbers, svg

_STYLE: Final = """
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
.plots svg { max-width: 100%; height: auto; background: #fff }
.advice { background: var(--note); border-left: 4px solid #2c8a57; padding: .6rem 1rem }
"""

NAMES: Final = {
    "transaction_conflict_fraction": "jobs with a conflict / jobs without",
    "service_conflict_fraction": "transactions with a conflict / without",
    "batch_conflict_fraction": "transactions with a conflict / without",
    "conflict_fraction": "conflicts per pod or task placed",
    "busyness": "busyness",
    "wait_s": "wait (s)",
    "score_regret": "score regret (points of 100)",
    "utilization": "utilization",
    "extra_share": "extra slots / tasks of a gap",
    "quality": "quality of slots (0 to 1)",
    "tasks_per_s": "tasks/s",
    "pods_per_s": "pods/s",
    "retries": "retries per job",
    "violation_share": "share of commits that violate",
}
"""Figures in words, by the end of their names."""


def page(
    swept: Swept, command: str, versions: dict[str, str], advice: Recommendation | None = None
) -> str:
    """The whole report. command: how to get it again."""
    sweep = swept.sweep
    fixed = sweep.study.complete(sweep.fixed)
    swept_names = {name for name, _ in sweep.axes}
    constants = ", ".join(f"{k} {v}" for k, v in fixed.items() if k not in swept_names)
    seeds = ", ".join(map(str, sweep.seeds))
    points = swept.points()
    parts = [
        f"<h1>{escape(sweep.title)}</h1>",
        f"<p>{len(swept.rows)} runs of {escape(sweep.study.name)}: {escape(sweep.study.text)}.</p>",
        f"<p><code>{escape(command)}</code></p>",
        *(_advice(advice) if advice is not None else ()),
        '<div class="plots">',
        *(svg(each) for each in plots(swept, points)),
        "</div>",
        f"<p><small>Bands: 95% confidence over seeds {escape(seeds)}. Kept the same: "
        f"{escape(constants)}.</small></p>",
        "<h2>Figures</h2>",
        _table(swept, points),
        f"<p><small>{escape(', '.join(f'{k} {v}' for k, v in versions.items()))}</small></p>",
    ]
    return html_page(sweep.title, parts, _STYLE)


def plots(swept: Swept, points: Sequence[Point]) -> list[Plot]:
    """A plot for each figure of the study that is worth one."""
    if not swept.sweep.axes:
        return []
    (x_name, values), *others = swept.sweep.axes
    places, words = numbers(values)
    place_of = dict(zip(values, places, strict=True))
    x_words = _parameter(swept.sweep.study, x_name)
    made = []
    for figure in swept.sweep.study.figures:
        lines: dict[str, list[tuple[float, Band]]] = {}
        for point in points:
            name = ", ".join(f"{plain(other)} {_value(point.values[other])}" for other, _ in others)
            place = place_of[point.values[x_name]]
            lines.setdefault(name, []).append((place, _above_zero(point.bands[figure])))
        drawn = tuple(Line(name, tuple(sorted(at, key=_place))) for name, at in lines.items())
        made.append(Plot(plain(figure), x_words, in_words(figure), drawn, words))
    return made


def _parameter(study: Study, name: str) -> str:
    """What a parameter is, for the axis of a plot; by its name where nothing is said of it."""
    text = study.parameter(name, "plot").text
    unit = " (s)" if name.endswith("_s") else ""
    return f"{text}{unit}" if text else plain(name)


def plain(name: str) -> str:
    """The name of a parameter or figure for people: its unit in brackets, spaces."""
    stem, _, unit = name.rpartition("_")
    if unit == "s" and stem and not stem.endswith("_per"):
        return f"{stem.replace('_', ' ')} (s)"
    return name.replace("_", " ").replace(" per ", "/")


def _value(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _above_zero(band: Band) -> Band:
    """A figure that is nowhere below zero is not said to be: all but score regret are so."""
    return replace(band, low=max(band.low, 0.0)) if band.mean >= 0.0 else band


def _place(point: tuple[float, Band]) -> float:
    return point[0]


def in_words(figure: str) -> str:
    """What a figure is, for the axis of a plot."""
    for end, words in NAMES.items():
        if figure.endswith(end):
            return words
    return plain(figure)


def _table(swept: Swept, points: Sequence[Point]) -> str:
    names = [name for name, _ in swept.sweep.axes]
    figures = list(points[0].bands)
    head = "".join(f"<th>{escape(each)}</th>" for each in (*names, *figures))
    rows = []
    for point in points:
        given = "".join(
            f'<td class="word">{escape(str(point.values[name]))}</td>' for name in names
        )
        cells = "".join(f"<td>{_cell(point.bands[name])}</td>" for name in figures)
        rows.append(f"<tr>{given}{cells}</tr>")
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _cell(band: Band) -> str:
    half = (band.high - band.low) / 2
    return f"{band.mean:.4g}" + (f" <small>±{half:.2g}</small>" if half else "")


def _advice(advice: Recommendation) -> list[str]:
    reasons = "".join(f"<li>{escape(each)}</li>" for each in advice.reasons)
    return [
        f'<div class="advice"><p><b>{escape(advice.headline)}</b></p><ul>{reasons}</ul>',
        "</div>",
    ]

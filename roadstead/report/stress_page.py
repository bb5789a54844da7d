"""The report of a sweep over a study (`roadstead.lab.studies`): one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from roadstead.lab.recommend import Recommendation
from roadstead.lab.statistics import Band
from roadstead.lab.sweep import LabSweepResult, Point
from roadstead.report.html_page import html_page, text
from roadstead.report.plot import svg
from roadstead.report.stress_plots import plots

_STYLE: Final = """
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
.plots svg { max-width: 100%; height: auto }
.advice { background: var(--note); border-left: 4px solid #2c8a57; padding: .6rem 1rem }
"""


def page(
    swept: LabSweepResult,
    command: str,
    versions: dict[str, str],
    advice: Recommendation | None = None,
) -> str:
    """The complete report. command: reproduces it."""
    sweep = swept.sweep
    fixed = sweep.study.complete(sweep.fixed)
    swept_names = {name for name, _ in sweep.axes}
    constants = ", ".join(f"{k} {v}" for k, v in fixed.items() if k not in swept_names)
    seeds = ", ".join(map(str, sweep.seeds))
    intervals = (
        f"Markers: means; intervals: 95% confidence of the mean, over seeds {text(seeds)}"
        if len(sweep.seeds) > 1
        else f"One seed ({text(seeds)}), so no intervals"
    )
    points = swept.points()
    parts = [
        f"<h1>{text(sweep.title)}</h1>",
        f"<p>{len(swept.rows)} runs of {text(sweep.study.name)}: {text(sweep.study.text)}.</p>",
        f"<p><code>{text(command)}</code></p>",
        *(_advice(advice) if advice is not None else ()),
        '<div class="plots">',
        *(svg(each) for each in plots(sweep, points)),
        "</div>",
        f"<p><small>{intervals}. Constant: {text(constants)}.</small></p>",
        "<h2>Figures</h2>",
        _table(swept, points),
        f"<p><small>{text(', '.join(f'{k} {v}' for k, v in versions.items()))}</small></p>",
    ]
    return html_page(sweep.title, parts, _STYLE)


def _table(swept: LabSweepResult, points: Sequence[Point]) -> str:
    names = [name for name, _ in swept.sweep.axes]
    metrics = list(points[0].bands)
    head = "".join(f"<th>{text(each)}</th>" for each in (*names, *metrics))
    rows = []
    for point in points:
        value_cells = "".join(
            f'<td class="word">{text(str(point.values[name]))}</td>' for name in names
        )
        cells = "".join(f"<td>{_cell(point.bands[name])}</td>" for name in metrics)
        rows.append(f"<tr>{value_cells}{cells}</tr>")
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _cell(band: Band) -> str:
    half = (band.high - band.low) / 2
    return f"{band.mean:.4g}" + (f" <small>±{half:.2g}</small>" if half else "")


def _advice(advice: Recommendation) -> list[str]:
    reasons = "".join(f"<li>{text(each)}</li>" for each in advice.reasons)
    return [
        f'<div class="advice"><p><b>{text(advice.headline)}</b></p><ul>{reasons}</ul>',
        "</div>",
    ]

"""The report of a sweep of a scenario: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from roadstead.lab.scenario_sweep import MetricSpread, ScenarioSweep, SweepRow, spreads, value_text
from roadstead.report.html_page import html_page, text
from roadstead.report.plot import svg
from roadstead.report.scenario_sweep_plots import PLOTS_MAX, Points, sweep_plots, varying_metrics
from roadstead.report.units import counted, significant

ROWS_MAX: Final = 1_000
"""Maximum number of combinations in the table."""

_STYLE: Final = """
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
.plots svg { max-width: 100%; height: auto }
"""


def scenario_sweep_page(
    planned: ScenarioSweep, rows: Sequence[SweepRow], versions: Mapping[str, str]
) -> str:
    """Return the page. rows: the runs that ended; at least one."""
    points = spreads(rows)
    varying, same = varying_metrics(points)
    keys = ", ".join(key for key, _ in planned.axes)
    seeds = len(planned.seeds)
    over = f"median, and lowest to highest of {seeds} seeds" if seeds > 1 else "one seed"
    runs = counted(len(rows), "run")
    ended = runs if len(rows) == planned.size else f"{len(rows):,} of {planned.size:,} runs"
    parts = [
        f"<h1>{text(planned.scenario)}{f' by {text(keys)}' if keys else ''}</h1>",
        f"<p>{ended}, {counted(len(points), 'combination')}: {over}.</p>",
        '<div class="plots">',
        *(svg(each) for each in sweep_plots(planned, points, varying)),
        "</div>",
        *_left_out(varying, same),
        "<h2>Figures</h2>",
        *_table(planned, points, varying),
        f"<p><small>{text(', '.join(f'{k} {v}' for k, v in versions.items()))}</small></p>",
    ]
    return html_page(planned.scenario, parts, _STYLE)


def _left_out(varying: Sequence[str], same: Sequence[str]) -> Iterator[str]:
    if len(varying) > PLOTS_MAX:
        yield f"<p>The first {PLOTS_MAX} of {len(varying)} metrics are drawn.</p>"
    if same:
        yield f"<p>The same in every run: {text(', '.join(same))}.</p>"


def _table(planned: ScenarioSweep, points: Points, metrics: Sequence[str]) -> Iterator[str]:
    keys = [key for key, _ in planned.axes]
    heads = "".join(f"<th>{text(each)}</th>" for each in (*keys, "runs", *metrics))
    yield f'<div class="wide"><table><tr>{heads}</tr>'
    for values, count, found in points[:ROWS_MAX]:
        value_cells = "".join(
            f'<td class="word">{text(value_text(values[key]))}</td>' for key in keys
        )
        cells = "".join(f"<td>{_cell(found.get(name))}</td>" for name in metrics)
        yield f"<tr>{value_cells}<td>{count}</td>{cells}</tr>"
    yield "</table></div>"
    if len(points) > ROWS_MAX:
        yield f"<p>The first {ROWS_MAX:,} of {len(points):,}; sweep.json has all.</p>"


def _cell(spread: MetricSpread | None) -> str:
    if spread is None:
        return "–"
    median = significant(spread.median, 4)
    if spread.low == spread.high:
        return median
    ends = f"{significant(spread.low, 3)} to {significant(spread.high, 3)}"
    return f"{median} <small>({ends})</small>"

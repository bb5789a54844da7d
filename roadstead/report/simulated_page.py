"""The report of simulated runs: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from roadstead.lab.paired import Difference
from roadstead.report.html_page import html_page, text
from roadstead.report.paired_page import STYLE, paired_parts
from roadstead.report.plot import svg
from roadstead.report.simulated_plots import SampledRun, sample_plots

EVENTS_LISTED: Final = 200


def simulated_page(
    scenario: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    runs: Sequence[SampledRun],
    versions: Mapping[str, str],
    compared: Sequence[tuple[str, str, Sequence[Difference]]] = (),
) -> str:
    """Return the page. heads, rows: the table of the runs. runs: those that the plots show.

    compared: pairs of configurations, and their differences.
    """
    more = f" of {len(runs)} of {len(rows)} runs" if len(rows) > len(runs) else ""
    parts = [
        f"<h1>{text(scenario)}</h1>",
        *_table(heads, rows),
        *(part for each in compared for part in _compared(*each)),
        f"<h2>Over time{more}</h2>",
        '<div class="plots">',
        *(svg(each) for each in sample_plots(runs)),
        "</div>",
        *_events(runs),
        f"<p><small>{text(', '.join(f'{k} {v}' for k, v in versions.items()))}</small></p>",
    ]
    return html_page(scenario, parts, STYLE)


def _compared(a: str, b: str, differences: Sequence[Difference]) -> Iterator[str]:
    yield f"<h2>{text(a)} and {text(b)}</h2>"
    yield from paired_parts(a, b, differences)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield '<div class="wide"><table><tr>'
    yield from (f"<th>{text(each)}</th>" for each in heads)
    yield "</tr>"
    for first, *others in rows:
        cells = "".join(f"<td>{text(each)}</td>" for each in others)
        yield f'<tr><td class="word">{text(first)}</td>{cells}</tr>'
    yield "</table></div>"


def _events(runs: Sequence[SampledRun]) -> Iterator[str]:
    if not runs or not runs[0].events:
        return
    first = runs[0]
    yield f"<h2>Events of {text(first.name)}</h2><ul>"
    yield from (f"<li>{text(each)}</li>" for _, each in first.events[:EVENTS_LISTED])
    yield "</ul>"
    if len(first.events) > EVENTS_LISTED:
        yield "<p>… and more; roadstead query has all</p>"

"""The report that compares two variants of a scenario, A and B: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from roadstead.lab.paired import Difference
from roadstead.report.html_page import html_page, text
from roadstead.report.paired_plot import difference_svg
from roadstead.report.paired_table import html_table
from roadstead.report.plot import svg
from roadstead.report.simulated_plots import SampledRun, sample_plots
from roadstead.report.units import counted

STYLE: Final = """
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
.plots svg, svg.plot { max-width: 100%; height: auto }
"""

JUDGED: Final = (
    "Each metric is judged by itself: of twenty without any difference, about one is expected to "
    "be shown as different. “No difference shown” is not a proof of equality."
)


def paired_page(
    a: str,
    b: str,
    differences: Sequence[Difference],
    sampled: Sequence[SampledRun],
    notes: Sequence[str],
    versions: Mapping[str, str],
) -> str:
    """Return the page. sampled: A and B over time, empty without samples. notes: on the runs."""
    parts = [
        f"<h1>{text(a)} and {text(b)}</h1>",
        *paired_parts(a, b, differences),
        *_over_time(sampled),
        *(f"<p>{text(each)}</p>" for each in notes),
        f"<p><small>{text(', '.join(f'{k} {v}' for k, v in versions.items()))}</small></p>",
    ]
    return html_page(f"{a} and {b}", parts, STYLE)


def paired_parts(a: str, b: str, differences: Sequence[Difference]) -> Iterator[str]:
    """Yield HTML: what is compared, a plot of what differs, and the table of all metrics."""
    pairs = max((each.pairs for each in differences), default=0)
    yield f"<p>A: {text(a)}<br>B: {text(b)}</p>"
    paired = f"{counted(pairs, 'pair')} of runs with the same seed."
    yield f"<p>{paired} {text(JUDGED) if pairs > 1 else 'One pair has no interval.'}</p>"
    changed = [each for each in differences if each.is_different]
    if changed:
        yield difference_svg("A", "B", changed)
    else:
        yield "<p>All metrics are the same in every pair.</p>"
    yield from html_table(differences)


def _over_time(sampled: Sequence[SampledRun]) -> Iterator[str]:
    if not sampled:
        return
    yield '<h2>Over time</h2><div class="plots">'
    yield from (svg(each) for each in sample_plots(sampled))
    yield "</div>"

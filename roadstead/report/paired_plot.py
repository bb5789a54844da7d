"""A plot of paired differences: a row for each metric, each with a scale of its own around 0.

Dots are pairs of runs. Below them are the mean and its two intervals, in colour if they show a
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.lab.paired import Difference
from roadstead.report.html_page import text as escaped
from roadstead.report.plot_legend import LegendEntry, legend_rows
from roadstead.report.plot_marks import (
    ROW,
    SAMPLE_WIDTH,
    STYLE,
    TITLE_SIZE,
    horizontal_interval,
    rule,
    text_at,
)
from roadstead.report.plot_text import number_text, wrap
from roadstead.report.units import signed

WIDTH: Final = 760
"""Pixels, as all lengths here."""

PADDING: Final = 14.0
NAME_WIDTH: Final = 200.0
TEXT_WIDTH: Final = 170.0
LEFT: Final = PADDING + NAME_WIDTH + 24
RIGHT: Final = WIDTH - PADDING - TEXT_WIDTH - 24
MIDDLE: Final = (LEFT + RIGHT) / 2
ROW_HEIGHT: Final = 56.0
DOTS, MEAN, RESAMPLED, ENDS = 10.0, 21.0, 30.0, 45.0
"""Distances from the top of a row: pairs, mean with the t interval, bootstrap, ends of the axis."""

ROWS_MAX: Final = 40
DOTS_MAX: Final = 200
"""Maxima of rows, and of dots in a row, which bound the size of the picture."""

DOT_RADIUS: Final = 3.2
DIAMOND: Final = "M0 -5L4.2 0L0 5L-4.2 0Z"
BOOTSTRAP_DASHES: Final = "4 2"
DOT_CLASS, SHOWN_CLASS, HIDDEN_CLASS = "s0", "s1", "s7"
"""Classes of colours: of pairs; of means whose difference is shown, and of others."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The scale of a row: `end` is the value at its right end, and -end that at its left end."""

    top: float
    end: float

    def at(self, value: float) -> float:
        return MIDDLE + value / self.end * (RIGHT - LEFT) / 2


def difference_svg(a: str, b: str, differences: Sequence[Difference]) -> str:
    """Draw the differences as one <svg> element. a, b: names of what is compared."""
    drawn = differences[:ROWS_MAX]
    title = f"Differences: {b} minus {a}"
    head, top = _head(title)
    rows, bottom = list[str](), top
    for each in drawn:
        name = wrap(each.metric, NAME_WIDTH)
        rows += _row(each, name, bottom)
        bottom += max(ROW_HEIGHT, ROW * len(name) + 8)
    legend, bottom = _legend(bottom, has_intervals=any(each.student for each in drawn))
    notes = ["Each row has a scale of its own, with 0 in the middle."]
    if len(differences) > ROWS_MAX:
        notes.append(f"The first {ROWS_MAX} of {len(differences)} metrics.")
    if any(each.pairs > DOTS_MAX for each in drawn):
        notes.append(f"The first {DOTS_MAX} pairs of each metric.")
    for note in notes:
        bottom += ROW
        legend.append(text_at(PADDING, bottom, note, "note"))
    height = round(bottom + PADDING)
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escaped(title)}" xmlns="http://www.w3.org/2000/svg">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="page"/>',
        *head,
        *rows,
        *legend,
        "</svg>",
    ]
    return "\n".join(parts)


def _head(title: str) -> tuple[list[str], float]:
    """Return the title and the meanings of left and right of 0, as elements; the y of their end."""
    parts, y = list[str](), PADDING
    for line in wrap(title, WIDTH - 2 * PADDING, TITLE_SIZE, is_bold=True):
        y += ROW
        parts.append(text_at(PADDING, y, line, "title"))
    y += ROW + 8
    parts += [
        text_at(LEFT, y, "← B lower"),
        text_at(MIDDLE, y, "0", "middle"),
        text_at(RIGHT, y, "B higher →", "end"),
        text_at(RIGHT + 24, y, "Mean of B − A"),
    ]
    return parts, y + 6


def _row(each: Difference, name: Sequence[str], top: float) -> Iterator[str]:
    """Yield the elements of a row. name: the metric, as lines."""
    pairs = [pair.difference for pair in each.values[:DOTS_MAX]]
    interval = each.interval or (each.difference, each.difference)
    row = _Row(top, max(abs(value) for value in (*pairs, *interval, each.difference)) or 1.0)
    yield rule(PADDING, top, WIDTH - PADDING, top, "grid")
    for number, line in enumerate(name, 1):
        yield text_at(PADDING, top + ROW * number, line)
    yield rule(MIDDLE, top + 3, MIDDLE, top + RESAMPLED + 4, "axis")
    yield text_at(LEFT, top + ENDS, number_text(-row.end, 3), "note")
    yield text_at(RIGHT, top + ENDS, number_text(row.end, 3), "note end")
    yield f'<g class="{DOT_CLASS}" fill-opacity="0.55" stroke="none">'
    for pair in each.values[:DOTS_MAX]:
        yield _dot(row.at(pair.difference), top + DOTS, _pair_title(pair.run, pair.a, pair.b))
    yield "</g>"
    is_shown = each.interval is not None and (interval[0] > 0 or interval[1] < 0)
    yield f'<g class="{SHOWN_CLASS if is_shown else HIDDEN_CLASS}">'
    # `student`: the 95% t interval.
    if each.student is not None and each.bootstrap is not None:
        low, high = row.at(each.student.low), row.at(each.student.high)
        yield horizontal_interval(low, high, top + MEAN)
        low, high = row.at(each.bootstrap.low), row.at(each.bootstrap.high)
        yield horizontal_interval(low, high, top + RESAMPLED, BOOTSTRAP_DASHES)
    yield _diamond(row.at(each.difference), top + MEAN)
    yield "</g>"
    yield text_at(RIGHT + 24, top + ROW, signed(each.difference))
    yield text_at(RIGHT + 24, top + 2 * ROW, each.verdict, "" if is_shown else "note")


def _pair_title(run: str, a: float, b: float) -> str:
    return f"{run}: {signed(b - a)} (A {number_text(a)}, B {number_text(b)})"


def _dot(x: float, y: float, title: str = "") -> str:
    inner = f"<title>{escaped(title)}</title>" if title else ""
    return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{DOT_RADIUS}">{inner}</circle>'


def _diamond(x: float, y: float) -> str:
    return f'<path stroke="none" transform="translate({x:.1f} {y:.1f})" d="{DIAMOND}"/>'


def _legend(y: float, *, has_intervals: bool) -> tuple[list[str], float]:
    """Return the elements of the legend, and the y of their end."""

    def pair_sample(x: float, at: float) -> str:
        return f'<g class="{DOT_CLASS}" stroke="none">{_dot(x + SAMPLE_WIDTH / 2, at)}</g>'

    def mean_sample(x: float, at: float) -> str:
        line = horizontal_interval(x, x + SAMPLE_WIDTH, at) if has_intervals else ""
        diamond = _diamond(x + SAMPLE_WIDTH / 2, at)
        return f'<g class="{SHOWN_CLASS}">{line}{diamond}</g>'

    def resampled_sample(x: float, at: float) -> str:
        line = horizontal_interval(x, x + SAMPLE_WIDTH, at, BOOTSTRAP_DASHES)
        return f'<g class="{SHOWN_CLASS}">{line}</g>'

    entries = [LegendEntry("One pair of runs with the same seed", pair_sample)]
    if has_intervals:
        entries += [
            LegendEntry("Mean, 95% t interval; grey: no difference shown", mean_sample),
            LegendEntry("95% bootstrap interval", resampled_sample),
        ]
    else:
        entries.append(LegendEntry("Mean; one pair has no interval", mean_sample))
    return legend_rows(entries, y + 4, PADDING, WIDTH - PADDING)

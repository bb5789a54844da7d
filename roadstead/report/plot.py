"""Plots as SVG text: lines over an axis, with an interval at each point. No library, no network.

Over an axis of categories, only markers and intervals are drawn, because no values are between
them. The height follows from the texts: title, axes, legend and notes are wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from roadstead.lab.statistics import Band
from roadstead.report.html_page import text as escaped
from roadstead.report.plot_axis import Scale, Tick, x_scale, x_ticks, y_axis
from roadstead.report.plot_legend import LegendEntry, legend_rows
from roadstead.report.plot_marks import (
    ROW,
    STYLE,
    TITLE_SIZE,
    LineStyle,
    interval_mark,
    interval_sample,
    rule,
    text_at,
)
from roadstead.report.plot_text import number_text, text_width, wrap

WIDTH: Final = 600
"""Pixels, as all lengths here."""

# `ROW` (`plot_marks`) is the height of a line of text.
PADDING: Final = 14.0
AREA_HEIGHT: Final = 250.0
TITLE_ROW: Final = 19.0
INSET: Final = 30.0
"""Pixels between the ends of the x axis and the outermost points."""

BORDER: Final = 4.0
"""Minimum number of pixels between the text of a tick and the border of the picture."""

SPREAD_SHARE: Final = 0.8
"""The part of a category's width on the x axis over which its points are spread."""

SHIFT: Final = 3.0
"""Maximum number of pixels by which points of several lines are moved left or right of their x.

Less than the width of a marker, and enough that their intervals do not cover each other.
"""

TEXT_WIDTH: Final = WIDTH - 2 * PADDING


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A named line: (x, mean and interval of y), sorted by x. x: number, or index of a category."""

    name: str
    points: tuple[tuple[float, Band], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Titles, axes and lines of a plot.

    categories: names of the x values 0, 1, …, if the x axis is categorical. interval: description
    of the intervals for the legend, used if one is drawn. notes: sentences below the legend.
    events: (x of a vertical line, its text). has_markers: whether each point has a marker.
    """

    title: str
    x_title: str
    y_title: str
    lines: tuple[PlotLine, ...]
    categories: tuple[str, ...] = ()
    interval: str = ""
    notes: tuple[str, ...] = ()
    events: tuple[tuple[float, str], ...] = ()
    has_markers: bool = True


@dataclass(frozen=True, slots=True)
class _Area:
    """The rectangle of the data, in pixels, and its scales. base: y of the x axis."""

    top: float
    left: float
    right: float
    base: float
    x: Scale
    y: Scale


def svg(plot: Plot) -> str:
    """The plot as one <svg> element, which is also a valid file."""
    head, top = _head(plot)
    area, y_ticks = _area(plot, top)
    x_axis, bottom = _x_axis(plot, area)
    legend, bottom = _legend(plot, bottom)
    notes, bottom = _paragraph(plot.notes, bottom + 6, "note")
    height = round(bottom + PADDING)
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escaped(plot.title)}" xmlns="http://www.w3.org/2000/svg">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="page"/>',
        *head,
        *_y_axis(area, y_ticks),
        *x_axis,
        *_events(plot, area),
        *_data(plot, area),
        *legend,
        *notes,
        "</svg>",
    ]
    return "\n".join(parts)


def _head(plot: Plot) -> tuple[list[str], float]:
    """Return the elements of the titles of plot and y axis, and the y of their end."""
    y = PADDING - 4
    parts = []
    for line in wrap(plot.title, TEXT_WIDTH, TITLE_SIZE, is_bold=True):
        y += TITLE_ROW
        parts.append(text_at(PADDING, y, line, "title"))
    # The y-axis title is horizontal, above the axis: it is easier to read and may be long.
    name, y = _paragraph([plot.y_title], y + 6)
    return parts + name, y + ROW


def _paragraph(texts: Iterable[str], y: float, style: str = "") -> tuple[list[str], float]:
    """Return the elements of wrapped lines of text below y, and the y of their end."""
    parts = []
    for text in texts:
        for line in wrap(text, TEXT_WIDTH):
            y += ROW
            parts.append(text_at(PADDING, y, line, style))
    return parts, y


def _area(plot: Plot, top: float) -> tuple[_Area, list[Tick]]:
    bands = [band for line in plot.lines for _, band in line.points]
    low = min(min(band.low, band.mean) for band in bands)
    high = max(max(band.high, band.mean) for band in bands)
    base = top + AREA_HEIGHT
    y, ticks = y_axis(low, high, base, -AREA_HEIGHT)
    left = PADDING + max(text_width(tick.text) for tick in ticks) + 8
    right = WIDTH - PADDING
    if plot.categories:
        x = Scale(-0.5, len(plot.categories) - 0.5, left, right - left)
    else:
        x = x_scale(_x_values(plot), left + INSET, right - left - 2 * INSET)
    return _Area(top, left, right, base, x, y), ticks


def _x_values(plot: Plot) -> list[float]:
    return sorted({value for line in plot.lines for value, _ in line.points})


def _y_axis(area: _Area, ticks: Sequence[Tick]) -> list[str]:
    parts = []
    for tick in ticks:
        style = "grid" if tick.value else "axis"
        parts.append(rule(area.left, tick.at, area.right, tick.at, style))
        parts.append(text_at(area.left - 8, tick.at + 4, tick.text, "end"))
    return parts


def _x_axis(plot: Plot, area: _Area) -> tuple[list[str], float]:
    """Return the elements of the x axis (line, ticks, texts, title), and the y of their end."""
    marks = _x_marks(plot, area)
    parts = [rule(area.left, area.base, area.right, area.base, "axis"), *_axis_break(area)]
    for at, lines in marks:
        parts.append(rule(at, area.base, at, area.base + 5, "axis"))
        parts += [
            text_at(at, area.base + 4 + ROW * row, line, "middle")
            for row, line in enumerate(lines, 1)
        ]
    y = area.base + 8 + ROW * max((len(lines) for _, lines in marks), default=1)
    title = plot.x_title + (", logarithmic scale" if area.x.is_log else "")
    for line in wrap(title, TEXT_WIDTH):
        y += ROW
        parts.append(text_at(_middle_of(area, line), y, line, "middle"))
    return parts, y


def _x_marks(plot: Plot, area: _Area) -> list[tuple[float, list[str]]]:
    """(pixel, lines of text) of each tick."""
    if plot.categories:
        width = (area.right - area.left) / len(plot.categories) - 2 * BORDER
        return [(area.x.at(value), wrap(name, width)) for value, name in enumerate(plot.categories)]
    ticks = x_ticks(_x_values(plot), area.x, BORDER, WIDTH - BORDER)
    return [(tick.at, [tick.text]) for tick in ticks]


def _middle_of(area: _Area, line: str) -> float:
    """The centre of a text: the middle of the axis, or farther left for a long text."""
    return min((area.left + area.right) / 2, WIDTH - PADDING - text_width(line) / 2)


def _axis_break(area: _Area) -> list[str]:
    """Two strokes through the x axis between zero and the logarithmic part."""
    if not area.x.zero_gap:
        return []
    at = area.x.start + area.x.zero_gap / 2
    return [
        f'<rect x="{at - 3:.1f}" y="{area.base - 2:.1f}" width="6" height="4" class="page"/>',
        rule(at - 5, area.base + 5, at - 1, area.base - 5, "axis"),
        rule(at + 1, area.base + 5, at + 5, area.base - 5, "axis"),
    ]


def _events(plot: Plot, area: _Area) -> Iterator[str]:
    for value, text in plot.events:
        at = area.x.at(value)
        line = rule(at, area.top, at, area.base, "event")
        yield f"<g><title>{escaped(text)}</title>{line}</g>"


def _data(plot: Plot, area: _Area) -> Iterator[str]:
    for index, line in enumerate(plot.lines):
        style = LineStyle(index)
        pixels = _pixels(plot, area, index)
        yield f'<g class="{style.colour_class}">'
        for (x, _), (_, band) in zip(pixels, line.points, strict=True):
            if band.low < band.high:
                low, high = area.y.at(band.low), area.y.at(band.high)
                yield interval_mark(x, low, high)
        if not plot.categories:
            # No line to zero: the distance to it means nothing on a logarithmic axis.
            joined = [
                pixel
                for pixel, (value, _) in zip(pixels, line.points, strict=True)
                if value or not area.x.zero_gap
            ]
            yield from [style.line(joined)] if len(joined) > 1 else []
        for (x, y), (value, band) in zip(pixels, line.points, strict=True):
            if plot.has_markers:
                yield style.marker(x, y, _point_title(plot, line, value, band))
        yield "</g>"


def _pixels(plot: Plot, area: _Area, index: int) -> list[tuple[float, float]]:
    """Pixels of a line's points; the points of several lines are moved apart."""
    count = len(plot.lines)
    if plot.categories:
        category_width = (area.right - area.left) / len(plot.categories)
        shift = SPREAD_SHARE * category_width * ((index + 1) / (count + 1) - 0.5)
    elif _has_intervals(plot) and count > 1:
        shift = SHIFT * (2 * index / (count - 1) - 1)
    else:
        shift = 0.0
    return [
        (area.x.at(value) + shift, area.y.at(band.mean)) for value, band in plot.lines[index].points
    ]


def _has_intervals(plot: Plot) -> bool:
    return any(band.low < band.high for line in plot.lines for _, band in line.points)


def _point_title(plot: Plot, line: PlotLine, value: float, band: Band) -> str:
    x = plot.categories[round(value)] if plot.categories else number_text(value)
    interval = f" ({number_text(band.low)} to {number_text(band.high)})"
    return (
        f"{line.name}{', ' if line.name else ''}{x}: {number_text(band.mean)}"
        f"{interval if band.low < band.high else ''}"
    )


def _legend(plot: Plot, y: float) -> tuple[list[str], float]:
    """Return the elements of the legend, and the y of their end.

    It has the names of several lines, and the description of intervals.
    """
    parts, y = list[str](), y + 8
    if len(plot.lines) > 1:
        names = [
            LegendEntry(line.name, partial(LineStyle(index).sample, has_line=not plot.categories))
            for index, line in enumerate(plot.lines)
        ]
        parts, y = legend_rows(names, y, PADDING, WIDTH - PADDING)
    if plot.interval and _has_intervals(plot):
        entry = LegendEntry(plot.interval, interval_sample)
        more, y = legend_rows([entry], y, PADDING, WIDTH - PADDING)
        parts += more
    return parts, y


def axis_values(values: Sequence[object]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """(x values, categories) of an axis: numbers are kept, others become indices."""
    if all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values):
        return tuple(float(str(each)) for each in values), ()
    return tuple(float(index) for index in range(len(values))), tuple(map(str, values))

"""Plots as SVG text: lines over an axis, each with its confidence band. No library, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isclose, log10
from typing import Final

from roadstead.lab.statistics import Band

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 30, 44
COLOURS: Final = (
    *("#1f6fb4", "#d1602a", "#2c8a57", "#8a4fa3", "#b3212d", "#6d5a43", "#c2559d", "#5b6670"),
)
LEGEND_ROW = 16
LOG_FROM: Final = 50.0
"""An axis of positive numbers is logarithmic from this ratio of its ends on."""

TICKS = 5

_STYLE: Final = (
    "text { font: 11px system-ui, sans-serif; fill: #333 } .title { font-weight: 600 }"
    ".x { text-anchor: middle } .y { text-anchor: end }"
    ".grid { stroke: #e3e6e9 } .mark { stroke: #555 }"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line by name: (x, band of y) in the order of x. x: a number, or the place of a word."""

    name: str
    points: tuple[tuple[float, Band], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """title, names of the axes, lines; words: what the x places 0, 1, … mean, if they are words."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps low to high onto pixels from `start` on, `length` of them."""

    low: float
    high: float
    start: float
    length: float
    is_log: bool = False

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = log10(low), log10(high), log10(max(value, self.low))
        return self.start + self.length * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        if self.is_log:
            first, last = floor(log10(self.low)), floor(log10(self.high) + 1e-9)
            found = [10.0**power for power in range(first, last + 1)]
            return [each for each in found if self.low * 0.999 <= each <= self.high * 1.001]
        step = _round_step((self.high - self.low) / TICKS)
        first = floor(self.low / step)
        found = [(first + index) * step for index in range(TICKS * 3)]
        return [each for each in found if self.low - step / 1e6 <= each <= self.high + step / 1e6]


def _round_step(about: float) -> float:
    power = 10.0 ** floor(log10(about))
    return next(power * nice for nice in (1.0, 2.0, 5.0, 10.0) if power * nice >= about * 0.999)


def svg(plot: Plot) -> str:
    """The plot as one <svg> element, which is a file of its own, too."""
    x, y = _scales(plot)
    legend = LEGEND_ROW * (len(plot.lines) if len(plot.lines) > 1 else 0)
    height = HEIGHT + legend
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(plot.title)}" xmlns="http://www.w3.org/2000/svg">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="18" class="title">{escape(plot.title)}</text>',
        *_frame(plot, x, y),
    ]
    for index, line in enumerate(plot.lines):
        parts += _drawn(line, COLOURS[index % len(COLOURS)], x, y)
        if legend:
            parts += _legend(line.name, COLOURS[index % len(COLOURS)], index)
    return "\n".join([*parts, "</svg>"])


def _scales(plot: Plot) -> tuple[_Scale, _Scale]:
    xs = [at for line in plot.lines for at, _ in line.points]
    ys = [end for line in plot.lines for _, band in line.points for end in (band.low, band.high)]
    is_log = not plot.words and min(xs) > 0 and max(xs) / min(xs) >= LOG_FROM
    x_low, x_high = _apart(min(xs), max(xs), is_log=is_log)
    low = min(0.0, *ys)
    _, high = _apart(low, max(low, *ys), is_log=False)
    x = _Scale(x_low, x_high, LEFT, WIDTH - LEFT - RIGHT, is_log)
    return x, _Scale(low, high, HEIGHT - BOTTOM, -(HEIGHT - TOP - BOTTOM))


def _apart(low: float, high: float, *, is_log: bool) -> tuple[float, float]:
    if not isclose(low, high):
        return low, high
    return (low / 2, high * 2) if is_log else (low, low + 1.0)


def _frame(plot: Plot, x: _Scale, y: _Scale) -> list[str]:
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in y.ticks():
        at = y.at(value)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" class="y">{_number(value)}</text>')
    marks: list[tuple[float, str]] = [(tick, _number(tick)) for tick in x.ticks()]
    if plot.words:
        marks = [(float(place), word) for place, word in enumerate(plot.words)]
    for tick, text in marks:
        at = x.at(tick)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{base}" y2="{base + 4}" class="mark"/>'
        )
        parts.append(f'<text x="{at:.1f}" y="{base + 17}" class="x">{escape(text)}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}" class="mark"/>')
    parts.append(f'<text x="{middle}" y="{base + 35}" class="x">{escape(plot.x_name)}</text>')
    turned = f"rotate(-90 14 {HEIGHT / 2})"
    name = escape(plot.y_name)
    return [*parts, f'<text x="14" y="{HEIGHT / 2}" transform="{turned}" class="x">{name}</text>']


def _drawn(line: Line, colour: str, x: _Scale, y: _Scale) -> list[str]:
    at = [(x.at(place), band) for place, band in line.points]
    upper = [f"{px:.1f},{y.at(band.high):.1f}" for px, band in at]
    lower = [f"{px:.1f},{y.at(band.low):.1f}" for px, band in reversed(at)]
    middle = " ".join(f"{px:.1f},{y.at(band.mean):.1f}" for px, band in at)
    dots = [
        f'<circle cx="{px:.1f}" cy="{y.at(band.mean):.1f}" r="2.6" fill="{colour}">'
        f"<title>{escape(line.name)} {_number(place)}: {_told(band)}</title></circle>"
        for (px, band), (place, _) in zip(at, line.points, strict=True)
    ]
    return [
        f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.16"/>',
        f'<polyline points="{middle}" fill="none" stroke="{colour}" stroke-width="1.8"/>',
        *dots,
    ]


def _legend(name: str, colour: str, index: int) -> list[str]:
    y = HEIGHT + 2 + LEGEND_ROW * index
    return [
        f'<rect x="{LEFT}" y="{y}" width="16" height="4" fill="{colour}"/>',
        f'<text x="{LEFT + 22}" y="{y + 6}" class="name">{escape(name)}</text>',
    ]


def _told(band: Band) -> str:
    return f"{_number(band.mean)} ({_number(band.low)} to {_number(band.high)})"


def _number(value: float) -> str:
    return f"{value:.4g}"


def numbers(values: Sequence[object]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """(x places, words) of the values of an axis: numbers as they are, words by their place."""
    if all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values):
        return tuple(float(str(each)) for each in values), ()
    return tuple(float(place) for place in range(len(values))), tuple(map(str, values))

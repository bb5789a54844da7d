"""Plots as SVG text: lines over an axis, each with its confidence band. No library, no network.

Over words there are no lines, since nothing lies between them: dots with their bands as bars.
"""

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
LOG_FROM: Final = 20.0
"""An axis of positive numbers is logarithmic from this ratio of its ends on."""

TICKS = 5
MANY_TICKS: Final = 10
"""Up to so many different x stand on the axis themselves."""

INSET: Final = 12
"""Pixels between the ends of the x axis and the outermost points."""

LETTER: Final = 7
"""Pixels that a letter of a tick takes, about."""

DASHES: Final = ("", "6 3", "2 3")
"""Lines of the same colour differ in these."""

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
        look = _Look.of(index)
        parts += _bars(line, look, index, plot, x, y) if plot.words else _band(line, look, x, y)
        if legend:
            parts += _legend(line.name, look, index)
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Look:
    """Colour and dashes of a line."""

    colour: str
    dashes: str

    @classmethod
    def of(cls, index: int) -> _Look:
        turn = index // len(COLOURS) % len(DASHES)
        return cls(COLOURS[index % len(COLOURS)], DASHES[turn])

    def stroke(self, width: float) -> str:
        dashes = f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
        return f'stroke="{self.colour}" stroke-width="{width}"{dashes}'


def _scales(plot: Plot) -> tuple[_Scale, _Scale]:
    xs = [at for line in plot.lines for at, _ in line.points]
    ys = [end for line in plot.lines for _, band in line.points for end in (band.low, band.high)]
    is_log = not plot.words and min(xs) > 0 and max(xs) / min(xs) >= LOG_FROM
    x_low, x_high = _apart(min(xs), max(xs), is_log=is_log)
    if plot.words:
        x_low, x_high = -0.5, len(plot.words) - 0.5
    low = min(0.0, *ys)
    _, high = _apart(low, max(low, *ys), is_log=False)
    x = _Scale(x_low, x_high, LEFT + INSET, WIDTH - LEFT - RIGHT - 2 * INSET, is_log)
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
    for at, text in _x_marks(plot, x):
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


def _x_marks(plot: Plot, x: _Scale) -> list[tuple[float, str]]:
    """(pixel, text) of the ticks: words, the values themselves where they are few, or round ones.

    A tick that would touch the one before it has no text.
    """
    if plot.words:
        return [(x.at(place), word) for place, word in enumerate(plot.words)]
    values = sorted({place for line in plot.lines for place, _ in line.points})
    marks, free_from = list[tuple[float, str]](), 0.0
    for value in values if len(values) <= MANY_TICKS else x.ticks():
        at, text = x.at(value), _number(value)
        half = LETTER * len(text) / 2
        marks.append((at, text if at - half >= free_from else ""))
        free_from = at + half + LETTER if marks[-1][1] else free_from
    return marks


def _band(line: Line, look: _Look, x: _Scale, y: _Scale) -> list[str]:
    at = [(x.at(place), band) for place, band in line.points]
    upper = [f"{px:.1f},{y.at(band.high):.1f}" for px, band in at]
    lower = [f"{px:.1f},{y.at(band.low):.1f}" for px, band in reversed(at)]
    middle = " ".join(f"{px:.1f},{y.at(band.mean):.1f}" for px, band in at)
    dots = [
        _dot(px, y.at(band.mean), look, f"{line.name} {_number(place)}: {_told(band)}")
        for (px, band), (place, _) in zip(at, line.points, strict=True)
    ]
    return [
        f'<polygon points="{" ".join(upper + lower)}" fill="{look.colour}" opacity="0.16"/>',
        f'<polyline points="{middle}" fill="none" {look.stroke(1.8)}/>',
        *dots,
    ]


def _bars(line: Line, look: _Look, index: int, plot: Plot, x: _Scale, y: _Scale) -> list[str]:
    """Dots with bars, those of several lines side by side within the place of their word."""
    aside = ((index + 1) / (len(plot.lines) + 1) - 0.5) * 0.8
    parts = []
    for place, band in line.points:
        px = x.at(place + aside)
        low, high = y.at(band.low), y.at(band.high)
        parts.append(
            f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{low:.1f}" y2="{high:.1f}" '
            f'{look.stroke(6)} opacity="0.3"/>'
        )
        word = plot.words[round(place)]
        parts.append(_dot(px, y.at(band.mean), look, f"{line.name} {word}: {_told(band)}"))
    return parts


def _dot(x: float, y: float, look: _Look, text: str) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{look.colour}">'
        f"<title>{escape(text.strip())}</title></circle>"
    )


def _legend(name: str, look: _Look, index: int) -> list[str]:
    y = HEIGHT + 4 + LEGEND_ROW * index
    return [
        f'<line x1="{LEFT}" x2="{LEFT + 20}" y1="{y}" y2="{y}" {look.stroke(3)}/>',
        f'<text x="{LEFT + 26}" y="{y + 4}" class="name">{escape(name)}</text>',
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

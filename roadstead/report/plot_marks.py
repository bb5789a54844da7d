"""Marks of plots: colours, dashes and markers of lines, intervals, texts, and the style sheet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roadstead.report.html_page import text as escaped
from roadstead.report.plot_text import TEXT_SIZE

TITLE_SIZE: Final = 14

# Colours of lines on a light and on a dark page.
LIGHT: Final = (
    *("#1f6fb4", "#c4521d", "#2c8a57", "#8a4fa3", "#b3212d", "#6d5a43", "#b23a88", "#4f5b66"),
)
DARK: Final = (
    *("#6cb2f0", "#f0925e", "#63c28d", "#c59ae0", "#ff8a8f", "#c9b08e", "#f08bc8", "#aab4be"),
)
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
MARKERS: Final = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "M-3.5 -3.5H3.5V3.5H-3.5Z",
    "M0 -4.8L4.6 3.4H-4.6Z",
    "M0 -5L4.2 0L0 5L-4.2 0Z",
    "M0 4.8L4.6 -3.4H-4.6Z",
    "M-1.4 -4.6H1.4V-1.4H4.6V1.4H1.4V4.6H-1.4V1.4H-4.6V-1.4H-1.4Z",
    "M-5 -2H5V2H-5Z",
)
"""Circle, square, triangle, diamond, triangle down, cross, bar.

7 markers and 4 dashes make 28 lines distinct without colour, and 56 with it.
"""

ROW: Final = 16.0
"""Pixels between lines of text."""

SAMPLE_WIDTH: Final = 28.0
"""Width of a line or an interval in the legend, in pixels."""

CAP: Final = 4.0
"""Half the width of an interval's ends, in pixels."""


def _colours(colours: tuple[str, ...]) -> str:
    return " ".join(
        f".plot .s{index} {{ stroke: {colour}; fill: {colour} }}"
        for index, colour in enumerate(colours)
    )


STYLE: Final = f"""\
.plot text {{ font: {TEXT_SIZE}px system-ui, sans-serif; fill: #1c2126 }}
.plot .title {{ font-size: {TITLE_SIZE}px; font-weight: 600 }}
.plot .middle {{ text-anchor: middle }} .plot .end {{ text-anchor: end }}
.plot .page {{ fill: #fff }} .plot .note {{ fill: #556 }}
.plot .grid {{ stroke: #e3e6e9 }} .plot .axis {{ stroke: #556 }}
.plot .event {{ stroke: #c4521d; stroke-dasharray: 2 3 }}
{_colours(LIGHT)}
@media (prefers-color-scheme: dark) {{
.plot text {{ fill: #dfe3e7 }} .plot .page {{ fill: #15181b }} .plot .note {{ fill: #99a2ab }}
.plot .grid {{ stroke: #343a40 }} .plot .axis {{ stroke: #99a2ab }}
{_colours(DARK)}
}}"""
"""Each selector begins with .plot, because a style sheet in an SVG applies to the whole page."""


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The colour, dashes and marker that distinguish a line."""

    index: int

    @property
    def colour_class(self) -> str:
        return f"s{self.index % len(LIGHT)}"

    @property
    def dashes(self) -> str:
        return DASHES[self.index % len(DASHES)]

    def marker(self, x: float, y: float, title: str = "") -> str:
        """The marker at a pixel. title: shown on hover; "" for the sample in the legend."""
        shape = MARKERS[self.index % len(MARKERS)]
        name = "point" if title else "sample"
        inner = f"<title>{escaped(title)}</title>" if title else ""
        return (
            f'<path class="{name}" stroke="none" transform="translate({x:.1f} {y:.1f})" '
            f'd="{shape}">{inner}</path>'
        )

    def line(self, points: list[tuple[float, float]]) -> str:
        """The line through pixels."""
        dashes = f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
        coordinates = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return f'<polyline points="{coordinates}" fill="none" stroke-width="1.8"{dashes}/>'

    def sample(self, x: float, y: float, *, has_line: bool) -> str:
        """The line's sample in the legend, from x on, centred at y."""
        line = self.line([(x, y), (x + SAMPLE_WIDTH, y)]) if has_line else ""
        marker = self.marker(x + SAMPLE_WIDTH / 2, y)
        return f'<g class="{self.colour_class}">{line}{marker}</g>'


def interval_sample(x: float, y: float) -> str:
    """The sample of an interval in the legend."""
    mark = interval_mark(x + SAMPLE_WIDTH / 2, y - 6, y + 6)
    return f'<g class="axis">{mark}</g>'


def interval_mark(x: float, low: float, high: float) -> str:
    """An interval: a vertical line from low to high with caps."""
    ends = "".join(f"M{x - CAP:.1f} {y:.1f}H{x + CAP:.1f}" for y in (low, high))
    return (
        f'<path class="interval" fill="none" stroke-width="1.3" '
        f'd="M{x:.1f} {low:.1f}V{high:.1f}{ends}"/>'
    )


def horizontal_interval(low: float, high: float, y: float, dashes: str = "") -> str:
    """An interval: a horizontal line from low to high with caps."""
    ends = "".join(f"M{x:.1f} {y - CAP:.1f}V{y + CAP:.1f}" for x in (low, high))
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = f'<path fill="none" stroke-width="1.6"{dashed} d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
    return f'{line}<path class="interval" fill="none" stroke-width="1.3" d="{ends}"/>'


def text_at(x: float, y: float, text: str, style: str = "") -> str:
    """A line of text with its base line at y."""
    name = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{name}>{escaped(text)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'

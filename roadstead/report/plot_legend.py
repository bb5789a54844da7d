"""The legend of a plot: samples with names, in rows below the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.report.plot_marks import ROW, SAMPLE_WIDTH, text_at
from roadstead.report.plot_text import text_width, wrap

GAP: Final = 18.0
"""Pixels between two entries of a row."""

NAME_OFFSET: Final = SAMPLE_WIDTH + 8


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A name, and a function that draws its sample from a pixel on."""

    name: str
    sample: Callable[[float, float], str]


def legend_rows(
    entries: Sequence[LegendEntry], y: float, left: float, right: float
) -> tuple[list[str], float]:
    """Return the elements of entries in columns of equal width below y, and the y of their end.

    A name that is wider than the picture is wrapped.
    """
    names = [wrap(entry.name, right - left - NAME_OFFSET) for entry in entries]
    column = NAME_OFFSET + max(text_width(line) for lines in names for line in lines) + GAP
    columns = max(1, int((right - left + GAP) // column))
    parts = list[str]()
    for start in range(0, len(entries), columns):
        row = slice(start, start + columns)
        for index, (entry, lines) in enumerate(zip(entries[row], names[row], strict=True)):
            x = left + index * column
            parts.append(entry.sample(x, y + ROW - 4))
            parts += [
                text_at(x + NAME_OFFSET, y + ROW * number, line)
                for number, line in enumerate(lines, 1)
            ]
        y += ROW * max(map(len, names[row]))
    return parts, y

"""Text in plots: readable numbers, estimated widths, and line breaks.

No font is loaded. The widths are those of DejaVu Sans. It is wider than the other fonts that
`system-ui` stands for, so a text that fits with these widths fits everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from math import isclose
from typing import Final

TEXT_SIZE: Final = 12
"""Pixels."""

BOLD_FACTOR: Final = 1.12
"""Width of bold text, as a multiple of the width of plain text."""

_WIDTHS: Final = {
    **dict.fromkeys("ijl'", 0.3),
    **dict.fromkeys(" ,.:;!-/\\()[]ftrI|", 0.42),
    **dict.fromkeys("#&+<=>^~", 0.85),
    **dict.fromkeys("mwMW%@", 1.0),
}
_CAPITAL, _OTHER, _NOT_ASCII = 0.79, 0.64, 1.0
"""Widths of characters, here and in `_WIDTHS`, as fractions of the text size."""

DIGITS: Final = 4
"""Default number of significant digits."""

MAX_DIGITS: Final = 15
"""Decimal digits that a double always preserves."""

MILLION, TRILLION = 1e6, 1e12
SMALLEST_DECIMAL: Final = 1e-6
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(value: float, digits: int = DIGITS) -> str:
    """Format a number with `digits` significant digits: 0.05, 20,000, 1.5M, 2×10⁻⁷."""
    rounded = float(f"{value:.{digits}g}")
    size = abs(rounded)
    if size == 0.0:
        return "0"
    if size >= TRILLION or size < SMALLEST_DECIMAL:
        mantissa, _, power = f"{Decimal(repr(rounded)).normalize():e}".partition("e")
        return f"{mantissa}×10{str(int(power)).translate(_SUPERSCRIPTS)}"
    # With more digits, close ticks are distinguishable; in millions they would be hard to compare.
    if size >= MILLION and digits <= DIGITS:
        return f"{_decimal(rounded / MILLION, digits)}M"
    return _decimal(rounded, digits)


def _decimal(value: float, digits: int) -> str:
    text = f"{Decimal(f'{value:.{digits}g}'):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def tick_texts(values: Sequence[float]) -> list[str]:
    """Texts of ticks, with as many digits as exact texts need."""
    digits = DIGITS
    while digits < MAX_DIGITS and not all(is_exact(value, digits) for value in values):
        digits += 1
    return [number_text(value, digits) for value in values]


def is_exact(value: float, digits: int = DIGITS) -> bool:
    """Whether a number has at most `digits` significant digits."""
    return isclose(float(f"{value:.{digits}g}"), value, rel_tol=1e-12)


def text_width(text: str, size: float = TEXT_SIZE, *, is_bold: bool = False) -> float:
    """Width of a text in pixels, an upper estimate."""
    factor = BOLD_FACTOR if is_bold else 1.0
    return size * factor * sum(map(_width, text))


def _width(character: str) -> float:
    if not character.isascii():
        return _NOT_ASCII
    return _WIDTHS.get(character, _CAPITAL if character.isupper() else _OTHER)


def wrap(text: str, width: float, size: float = TEXT_SIZE, *, is_bold: bool = False) -> list[str]:
    """Break a text into lines not wider than `width`; at least one line, which may be empty.

    Breaks are at spaces. A word that is too wide is broken after a hyphen, slash or underscore, or
    anywhere if it has none.
    """

    def fits(line: str) -> bool:
        return text_width(line, size, is_bold=is_bold) <= width

    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        for piece in [word] if fits(word) else _pieces(word, fits):
            if not lines[-1] or fits(lines[-1] + gap + piece):
                lines[-1] += gap + piece
            else:
                lines.append(piece)
            gap = ""
    return lines


def _pieces(word: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """The parts of a word between which a line may break."""
    for part in re.findall(r"[^-/_]*[-/_]+|[^-/_]+", word):
        if fits(part):
            yield part
        else:
            yield from part

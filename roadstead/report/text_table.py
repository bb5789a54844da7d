"""Tables that fit a terminal of any width; figures are never cut, names only if unavoidable.

If a row is longer than the line, these steps are taken in order: text and headings are wrapped
between words; bar columns are left out; text whose words would be broken moves below its row, last
column first; remaining figures are printed in further blocks, each with the key columns (the first
ones, which identify a row). Where several texts of a row move below it, each has its heading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

# Widths are in cells of the terminal, of which a wide character has two.
GAP: Final = 2
INDENT: Final = 2
READABLE: Final = 20
"""Text is not wrapped into narrower columns than this: they would hold only single words."""

WIDTH_OF_FILE_CHARS: Final = 140
"""Width of output that is not to a terminal, unless COLUMNS is set."""

KEY_MIN: Final = 8
"""Minimum number of characters of a key column that is narrowed; a key identifies a row."""

BAR_CHARS: Final = 16
Cells = Sequence[Text | str]
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    kind: a text may be wrapped, and may move below its row; a figure stays in one piece, flush
    right; a bar draws the value of a figure, and is left out first.
    """

    heading: str
    kind: Literal["text", "figure", "bar"] = "figure"


@dataclass(frozen=True, slots=True)
class _TableLayout:
    """The columns of each block, those below the rows, and the width of each column.

    A column is named by its index (`col`). A block is a part of the table that fits the width.
    """

    blocks: tuple[tuple[int, ...], ...]
    below: tuple[int, ...]
    widths: dict[int, int]


def wide_console(*, stderr: bool = False) -> Console:
    """Return a console of the terminal's width, or in a pipe one that is wide enough for tables."""
    console = Console(stderr=stderr)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(stderr=stderr, width=WIDTH_OF_FILE_CHARS)


def text_column(heading: str) -> Column:
    """A column of text."""
    return Column(heading, "text")


def bar(fraction: float) -> Text:
    """A bar with the length of a fraction of BAR_CHARS."""
    eighths = int(BAR_CHARS * 8 * min(max(fraction, 0.0), 1.0))
    last = _EIGHTHS[eighths % 8] if eighths % 8 else ""
    return Text("█" * (eighths // 8) + last, style="cyan")


def print_table(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Cells],
    *,
    keys: int = 1,
    left_out: str = "",
) -> None:
    """Print title, headings and rows.

    keys: number of leading columns that identify a row; they are repeated in every block. left_out:
    a line after the rows that counts the rows not shown.
    """
    table = [[_as_text(cell) for cell in row] for row in rows]
    lines = [] if not title else [Text(""), Text(title, style="bold")]
    layout = _layout(columns, table, keys, console.width)
    for number, block in enumerate(layout.blocks):
        # Text below rows is printed with the first block only, so that it is not repeated.
        below = layout.below if number == 0 else ()
        lines += [Text("")] if number else []
        heads = [Text(column.heading, style="bold") for column in columns]
        for row in (heads, *table):
            lines += _row(console, columns, row, block, layout.widths)
            lines += _below(console, heads, row, below)
    lines += [Text(left_out)] if left_out else []
    console.print(Text("\n").join(lines), no_wrap=True, overflow="ignore", crop=False)


def _as_text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _layout(
    columns: Sequence[Column], rows: Sequence[Sequence[Text]], keys: int, width: int
) -> _TableLayout:
    cells = [[row[col].plain for row in rows] for col in range(len(columns))]
    # By column: the width at which nothing is wrapped, and below, the least acceptable one.
    natural = [
        max(map(_longest_line, (columns[col].heading, *cells[col]))) for col in range(len(cells))
    ]
    # The first text, often a reason, stays readable: it gets at least a third of the width.
    readable = [max(READABLE, width // 3), *[READABLE] * len(cells)]
    least = [
        _least_width(columns[col], cells[col], min(natural[col], readable[col]))
        for col in range(len(cells))
    ]
    inline, below = list(range(len(cells))), list[int]()

    def is_too_wide() -> bool:
        return sum(least[col] for col in inline) + GAP * (len(inline) - 1) > width

    if is_too_wide():
        # All bars or none: bars are read by comparison.
        inline = [col for col in inline if columns[col].kind != "bar"]
    for col in [col for col in reversed(inline[keys:]) if columns[col].kind == "text"]:
        if is_too_wide():
            inline.remove(col)
            below.insert(0, col)
    if is_too_wide():
        return _in_blocks(inline[:keys], inline[keys:], below, least, width)
    return _TableLayout((tuple(inline),), tuple(below), _spread(inline, natural, least, width))


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _least_width(column: Column, cells: Sequence[str], readable: int) -> int:
    """The width at which no word and no figure is broken, and text is readable."""
    heading = _longest_word(column.heading)
    if column.kind != "text":
        return max(heading, *map(_longest_line, cells), 0)
    return max(heading, *map(_longest_word, cells), readable)


def _spread(
    inline: Sequence[int], natural: Sequence[int], least: Sequence[int], width: int
) -> dict[int, int]:
    """Distribute the remaining width, first to the columns that need the least of it."""
    widths = {col: least[col] for col in inline}
    unused = width - sum(widths.values()) - GAP * (len(inline) - 1)
    for number, col in enumerate(sorted(inline, key=lambda col: natural[col] - least[col])):
        more = min(natural[col] - least[col], unused // (len(inline) - number))
        widths[col] += more
        unused -= more
    return widths


def _in_blocks(
    keys: Sequence[int],
    figures: Sequence[int],
    below: Sequence[int],
    least: Sequence[int],
    width: int,
) -> _TableLayout:
    """Return blocks of the key columns and as many figures as fit.

    The widest key column is narrowed, and its texts wrapped, if not even one figure fits.
    """
    widths = dict(enumerate(least))
    used = sum(widths[col] + GAP for col in keys) - GAP
    excess = used + max((widths[col] + GAP for col in figures), default=0) - width
    if excess > 0:
        widest = max(keys, key=widths.__getitem__)
        narrowed = max(KEY_MIN, widths[widest] - excess)
        used -= widths[widest] - narrowed
        widths[widest] = narrowed
    blocks, unused = [list(keys)], width - used
    for col in figures:
        if widths[col] + GAP > unused and len(blocks[-1]) > len(keys):
            blocks.append(list(keys))
            unused = width - used
        blocks[-1].append(col)
        unused -= widths[col] + GAP
    return _TableLayout(tuple(map(tuple, blocks)), tuple(below), widths)


def _row(
    console: Console,
    columns: Sequence[Column],
    cells: Sequence[Text],
    block: Sequence[int],
    widths: dict[int, int],
) -> Iterator[Text]:
    """The lines of a row: cells side by side, each wrapped within its column."""
    wrapped = {col: list(cells[col].wrap(console, widths[col], overflow="fold")) for col in block}
    for number in range(max(map(len, wrapped.values()))):
        line = Text()
        for col in block:
            cell = wrapped[col][number] if number < len(wrapped[col]) else Text("")
            cell.rstrip()
            padding = " " * (widths[col] - cell_len(cell.plain))
            is_right = columns[col].kind == "figure" and col != block[0]
            line.append(" " * GAP if col != block[0] else "")
            line.append_text(
                Text.assemble(padding, cell) if is_right else Text.assemble(cell, padding)
            )
        line.rstrip()
        yield line


def _below(
    console: Console, heads: Sequence[Text], row: Sequence[Text], below: Sequence[int]
) -> Iterator[Text]:
    """The lines of the texts below a row; if there are several texts, each follows its heading."""
    if len(below) == 1:
        yield from indented(console, row[below[0]])
    elif row is not heads:
        for col in below:
            if row[col].plain:
                named = Text.assemble(heads[col].plain, ": ", row[col])
                yield from indented(console, named)


def indented(console: Console, line: Text) -> Iterator[Text]:
    """The lines of a text, indented, wrapped to the full width."""
    if not line.plain:
        return
    for each in line.wrap(console, max(1, console.width - INDENT), overflow="fold"):
        each.rstrip()
        yield Text.assemble(" " * INDENT, each)

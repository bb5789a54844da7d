"""Figures of a page: where they are marked, and how an output is compared with what a page shows.

The marks are described in CONTRIBUTING.md, under "Figures of the documentation".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

ELLIPSIS = "…"
PROMPT = "$ "

_MARK = re.compile(r"<!-- figures(?: \((?P<needs>[^)]*)\))?: (?P<what>\S.*) -->")
_LIKE_A_MARK = re.compile(r"\s*<!--\s*figures?\b")

_MASKS = (
    re.compile(r"(?<=^machine)\s.*|(?<=^commit)\s.*"),
    re.compile(r"\d[\d,.]*(?= (?:pods|tasks)/s)"),
    re.compile(r"\d[\d,.]*%(?= of the time)"),
    # Only with a space between number and unit: `10s` in a configuration is an exact value.
    re.compile(r"\d[\d,.]* (?:ns|µs|ms|s|min|h)\b"),
    re.compile(r"(?<!\S)/(?:tmp|var/folders|private)/\S+"),
)
_BAR = re.compile(r"[█▉▊▋▌▍▎▏]+")


class FigureError(Exception):
    """A figure cannot be made; the text begins with page and line."""


class Need(StrEnum):
    """Input of a figure besides the checkout, as an option of the script."""

    OPENB = "openb"
    SLOW = "slow"


class Kind(StrEnum):
    """The type of a figure: the block or table after its mark."""

    SESSION = "session"
    """A block with `$` lines, each followed by its output."""
    OUTPUT = "output"
    """A block that is the output of the command in the mark."""
    FILE = "file"
    """A block that later commands of the page read as a file."""
    TABLE = "table"
    """A table of which a function makes some cells."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A marked figure. line: of the mark, from 1. what: command, file name or name of the table.

    body: the lines of the block or table. start: the index of the first one.
    """

    page: str
    line: int
    kind: Kind
    what: str
    needs: frozenset[Need]
    start: int
    body: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def end(self) -> int:
        return self.start + len(self.body)


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a session: its lines on the page, and the output below them."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def command(self) -> str:
        return " ".join(line.removeprefix(PROMPT).removesuffix("\\").strip() for line in self.lines)


def figures_of(page: str, text: str) -> list[Figure]:
    """Return all marked figures of a page. FigureError if a mark is wrong or marks nothing."""
    lines = text.splitlines()
    return [
        _figure(page, lines, index) for index, line in enumerate(lines) if _LIKE_A_MARK.match(line)
    ]


def _figure(page: str, lines: Sequence[str], index: int) -> Figure:
    place = f"{page}:{index + 1}"
    found = _MARK.fullmatch(lines[index])
    if found is None:
        raise FigureError(
            f"{place}: a mark is <!-- figures: WHAT --> or <!-- figures (NEED): … -->"
        )
    needs = [each.strip() for each in (found["needs"] or "").split(",") if each.strip()]
    if unknown := [each for each in needs if each not in list(Need)]:
        raise FigureError(f"{place}: unknown need {unknown[0]}: one of {', '.join(Need)}")
    kind, what = _kind(found["what"], place)
    start, end = _extent(lines, index + 1, place, is_table=kind is Kind.TABLE)
    if kind is Kind.SESSION and not lines[start].startswith(PROMPT):
        raise FigureError(f"{place}: the block does not begin with a line of {PROMPT.strip()}")
    wanted = frozenset(map(Need, needs))
    return Figure(page, index + 1, kind, what, wanted, start, tuple(lines[start:end]))


def _kind(what: str, place: str) -> tuple[Kind, str]:
    word, _, rest = what.partition(" ")
    if what == PROMPT.strip():
        return Kind.SESSION, what
    if word in (Kind.FILE, Kind.TABLE) and rest:
        return Kind(word), rest
    if word in ("roadstead", "scripts/demo"):
        return Kind.OUTPUT, what
    raise FigureError(
        f"{place}: unknown mark {what!r}: $, file NAME, table NAME, roadstead … or scripts/demo …"
    )


def _extent(lines: Sequence[str], at: int, place: str, *, is_table: bool) -> tuple[int, int]:
    first = lines[at] if at < len(lines) else ""
    if is_table and first.startswith("|"):
        end = at
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        return at, end
    if not is_table and first.startswith("```"):
        for end in range(at + 1, len(lines)):
            if lines[end] == "```":
                return at + 1, end
    raise FigureError(f"{place}: the next line begins no {'table' if is_table else 'fenced block'}")


def steps_of(figure: Figure) -> Iterator[Step]:
    """Yield the commands of a session. A line that ends with \\ continues in the next one."""
    starts = [index for index, line in enumerate(figure.body) if line.startswith(PROMPT)]
    for start, stop in zip(starts, [*starts[1:], len(figure.body)], strict=True):
        shown = start + 1
        while shown < stop and figure.body[shown - 1].endswith("\\"):
            shown += 1
        yield Step(figure.body[start:shown], figure.body[shown:stop])


def masked(line: str) -> str:
    """Return a line with the values masked that change from run to run.

    A masked value's width may differ, and a bar may show it, so in such a line runs of spaces count
    as one and bars are dropped. Bars of other lines show exact numbers and are kept.
    """
    text = line
    for mask in _MASKS:
        text = mask.sub("~", text)
    return line.rstrip() if text == line else " ".join(_BAR.sub("", text).split())


def merged(shown: Sequence[str], output: Sequence[str]) -> list[str]:
    """Return the lines that a page should show. Lines that agree are kept as they are.

    So the durations of the page stay those of one run, and a page that agrees does not change.
    """
    page, made = list(shown), [line.rstrip() for line in output]
    trailing = len(page) - len(_trimmed(page))
    page, made = _trimmed(page), _trimmed(made)
    if not agree(page, made):
        page = _updated(page, made)
    return page + [""] * trailing


def _trimmed(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def _is_ellipsis(line: str) -> bool:
    return line.strip() == ELLIPSIS


def agree(shown: Sequence[str], output: Sequence[str]) -> bool:
    """Whether a page shows an output; each `…` represents omitted lines."""
    made = [masked(line) for line in output]
    parts: list[list[str]] = [[]]
    for line in shown:
        if _is_ellipsis(line):
            parts.append([])
        else:
            parts[-1].append(masked(line))
    first, *middle = parts
    if not middle:
        return first == made
    last = middle.pop()
    if len(first) + len(last) > len(made) or made[: len(first)] != first:
        return False
    rest, ending = made[len(first) : len(made) - len(last)], made[len(made) - len(last) :]
    for part in middle:
        places = range(len(rest) - len(part) + 1)
        at = next((i for i in places if rest[i : i + len(part)] == part), None)
        if at is None:
            return False
        rest = rest[at + len(part) :]
    return ending == last


def _updated(shown: Sequence[str], output: Sequence[str]) -> list[str]:
    before, after = ([masked(line) for line in lines] for lines in (shown, output))
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, end, made_start, made_end in matcher.get_opcodes():
        old, new = shown[start:end], output[made_start:made_end]
        lines += old if tag == "equal" else _replaced(old, new)
    return lines


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Replace old lines by new ones; keep as many before the first `…` and after the last."""
    gaps = [index for index, line in enumerate(old) if _is_ellipsis(line)]
    if not gaps:
        return list(new)
    head, tail = gaps[0], len(old) - gaps[-1] - 1
    if head + tail >= len(new):
        return list(new)
    return [*new[:head], old[gaps[0]], *new[len(new) - tail :]]


def cells_of(row: str) -> list[str]:
    """Return the cells of a table's line."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def row_of(cells: Sequence[str]) -> str:
    """Return the table's line with these cells."""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"

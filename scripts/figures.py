#!/usr/bin/env python3
"""Figures of the documentation: rerun the commands that made them, and compare.

    scripts/figures.py                                 all pages; status 1 where one disagrees
    scripts/figures.py README.md --list                what is marked, with its commands
    scripts/figures.py docs/plugins.md --openb DIR     also the figures of that trace
    scripts/figures.py --update                        writes the new output into the pages

Durations, speeds, bars of durations, machine, commit and temporary paths are not compared. A line
`…` on a page represents lines left out. Figures marked as slow, which take minutes, are made with
--slow. CONTRIBUTING.md describes the marks.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from figures_page import (
    Figure,
    FigureError,
    Kind,
    Need,
    cells_of,
    figures_of,
    merged,
    row_of,
    steps_of,
)
from figures_tables import TABLES

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = {"roadstead": (), "scripts/demo": ("demo",)}
DEADLINE_S, SLOW_DEADLINE_S = 300.0, 7200.0
STATUS_WRONG_USE = 2
_COMMENT = re.compile(r"\s+# .*")
OPENB_FOLDER = "DIR"
"""The word in a command for the folder of --openb."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The output of a command, and its exit status."""

    output: str
    errors: str
    status: int


@dataclass(frozen=True, slots=True)
class Workplace:
    """The temporary folder in which the commands of one page run, one after the other."""

    folder: Path
    openb: Path | None

    def run(self, command: str, folder: str, figure: Figure) -> Ended:
        """Run one command. FigureError if it is unknown, or does not end in time."""
        program, *words = shlex.split(command, comments=True)
        if program not in PROGRAMS:
            raise FigureError(f"{figure.place}: {program} is none of {', '.join(PROGRAMS)}")
        if Need.OPENB in figure.needs:
            words = [str(self.openb) if word == OPENB_FOLDER else word for word in words]
        deadline_s = SLOW_DEADLINE_S if Need.SLOW in figure.needs else DEADLINE_S
        try:
            return run_roadstead([*PROGRAMS[program], *words], self.folder / folder, deadline_s)
        except subprocess.TimeoutExpired:
            raise FigureError(
                f"{figure.place}: {command}: did not end within {deadline_s:.0f} s"
            ) from None

    def result(self, command: str, folder: str, figure: Figure) -> str:
        """Return the standard output of a command. FigureError if it fails."""
        ended = self.run(command, folder, figure)
        if ended.status:
            last = ended.errors.strip().splitlines()[-5:]
            text = "\n".join([f"{figure.place}: {command}: exit status {ended.status}", *last])
            raise FigureError(text)
        return ended.output


class Outcome(StrEnum):
    """The result for a figure."""

    AGREE = "agree"
    DISAGREE = "disagree"
    SKIPPED = "skipped"
    FAILED = "failed"

    @staticmethod
    def of(figure: Figure, lines: Sequence[str]) -> Outcome:
        return Outcome.AGREE if tuple(lines) == figure.body else Outcome.DISAGREE


def run_roadstead(words: Sequence[str], folder: Path, deadline_s: float) -> Ended:
    """Run this checkout's command line with this interpreter, as in a terminal of 80 columns.

    Raises subprocess.TimeoutExpired.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "roadstead", *words],
        cwd=folder,
        env=os.environ | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=deadline_s,
        check=False,
    )
    return Ended(done.stdout, done.stderr, done.returncode)


def made(figure: Figure, place: Workplace) -> list[str]:
    """Return the lines that the page should have. FigureError if they cannot be made."""
    match figure.kind:
        case Kind.FILE:
            (place.folder / figure.what).write_text("\n".join([*figure.body, ""]), encoding="utf-8")
            return list(figure.body)
        case Kind.OUTPUT:
            return merged(figure.body, place.result(figure.what, ".", figure).splitlines())
        case Kind.SESSION:
            return list(_session(figure, place))
        case Kind.TABLE:
            return _table(figure, place)


def _session(figure: Figure, place: Workplace) -> Iterator[str]:
    folder = "."
    for step in steps_of(figure):
        yield from step.lines
        words = shlex.split(step.command, comments=True)
        if words[0] == "cd":
            folder = words[-1]
            if not (place.folder / folder).is_dir():
                raise FigureError(f"{figure.place}: {step.command}: there is no such folder")
        elif any(step.shown):
            # The page shows standard error only of a failed command; otherwise it is progress.
            ended = place.run(step.command, folder, figure)
            output = ended.output + (ended.errors if ended.status else "")
            yield from merged(step.shown, output.splitlines())
        else:
            place.result(step.command, folder, figure)
            yield from step.shown


def _table(figure: Figure, place: Workplace) -> list[str]:
    head, rows = figure.body[:2], figure.body[2:]
    page = [cells_of(row) for row in rows]
    try:
        new = TABLES[figure.what].make(
            page, lambda command, folder: place.result(command, folder, figure)
        )
    except LookupError as error:
        raise FigureError(f"{figure.place}: table {figure.what}: {error}") from None
    changed = zip(rows, page, new, strict=True)
    return [*head, *(row if old == cells else row_of(cells) for row, old, cells in changed)]


def commands_of(figure: Figure) -> list[str]:
    """Return the commands that make a figure, as a reader would type them."""
    match figure.kind:
        case Kind.FILE:
            return []
        case Kind.OUTPUT:
            return [figure.what]
        case Kind.SESSION:
            commands = [step.command for step in steps_of(figure)]
            return [_COMMENT.sub("", each) for each in commands if not each.startswith("cd ")]
        case Kind.TABLE:
            return [f"table {figure.what}: {TABLES[figure.what].commands}"]


def page_text(
    figures: Sequence[Figure], text: str, place: Workplace, missing: frozenset[Need]
) -> tuple[str, Counter[Outcome]]:
    """Return the text that a page should have; keep figures that are skipped or fail."""
    lines, outcomes = text.splitlines(), Counter[Outcome]()
    new: list[tuple[Figure, list[str]]] = []
    for figure in figures:
        title = "; ".join(commands_of(figure))
        if lacks := sorted(figure.needs & missing):
            outcomes[Outcome.SKIPPED] += 1
            _say(f"{figure.place}: skipped, needs --{' and --'.join(lacks)}: {title}")
            continue
        began_s = time.monotonic()
        try:
            new.append((figure, made(figure, place)))
        except FigureError as error:
            outcomes[Outcome.FAILED] += 1
            _say(str(error))
            continue
        if figure.kind is not Kind.FILE:
            outcome = Outcome.of(figure, new[-1][1])
            outcomes[outcome] += 1
            _say(f"{figure.place}: {outcome}s: {title} ({time.monotonic() - began_s:.1f} s)")
    for figure, body in reversed(new):
        lines[figure.start : figure.end] = body
    return "\n".join([*lines, ""]), outcomes


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def pages_of(root: Path, names: Sequence[str]) -> dict[str, list[Figure]]:
    """Return page → its figures. FigureError if a page is unknown or a mark is wrong."""
    known = ["README.md", *sorted(f"docs/{path.name}" for path in (root / "docs").glob("*.md"))]
    if unknown := [page for page in names if page not in known]:
        raise FigureError(f"{unknown[0]}: no page: one of {', '.join(known)}")
    pages = {page: (root / page).read_text(encoding="utf-8") for page in names or known}
    found = {page: figures_of(page, text) for page, text in pages.items()}
    for each in (figure for figures in found.values() for figure in figures):
        if each.kind is Kind.TABLE and each.what not in TABLES:
            tables = ", ".join(TABLES)
            raise FigureError(f"{each.place}: unknown table {each.what!r}: one of {tables}")
    return found


def compare(root: Path, page: str, wanted: str, *, update: bool) -> None:
    """Print how a page differs from what it should be, or write it."""
    text = (root / page).read_text(encoding="utf-8")
    if text == wanted:
        return
    if update:
        (root / page).write_text(wanted, encoding="utf-8")
        print(f"updated: {page}")
    else:
        lines = text.splitlines(), wanted.splitlines()
        print("\n".join(difflib.unified_diff(*lines, page, f"{page} (made)", lineterm="")))


def list_figures(pages: dict[str, list[Figure]]) -> None:
    for figure in (each for figures in pages.values() for each in figures):
        needs = "".join(f" --{need}" for need in sorted(figure.needs))
        for command in commands_of(figure):
            print(f"{figure.place}: {command}{needs and f'  [needs{needs}]'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="README.md, docs/… (default: all)")
    parser.add_argument("--openb", type=Path, metavar="DIR", help="the folder of its CSV files")
    parser.add_argument("--update", action="store_true", help="write what came out into the pages")
    parser.add_argument("--slow", action="store_true", help="also figures that take minutes")
    parser.add_argument("--list", action="store_true", help="name the figures and their commands")
    return parser


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Make the figures and compare them; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        pages = pages_of(root, options.pages)
    except FigureError as error:
        _say(str(error))
        return STATUS_WRONG_USE
    if options.list:
        list_figures(pages)
        return 0
    openb = options.openb.resolve() if options.openb else None
    lacks = {Need.OPENB: openb is None, Need.SLOW: not options.slow}
    missing = frozenset(need for need, is_missing in lacks.items() if is_missing)
    outcomes = Counter[Outcome]()
    for page, figures in pages.items():
        text = (root / page).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="figures-") as folder:
            if (root / "docs/examples").is_dir():
                shutil.copytree(root / "docs/examples", Path(folder) / "docs/examples")
            place = Workplace(Path(folder), openb)
            wanted, of_page = page_text(figures, text, place, missing)
        outcomes += of_page
        compare(root, page, wanted, update=options.update)
    print("figures: " + ", ".join(f"{outcomes[each]} {each}" for each in Outcome))
    is_wrong = bool(outcomes[Outcome.DISAGREE]) and not options.update
    return int(is_wrong or bool(outcomes[Outcome.FAILED]))


if __name__ == "__main__":
    sys.exit(main())

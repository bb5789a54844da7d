"""The runs and tests that reach a line: only they can detect a mutant there.

A run is unchanged until it reaches the changed line, so a run that never reaches it is not repeated
for the mutant. Lines that run during the import of modules are reached by all.
"""

import ast
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent.parent
IMPORTED = ""
"""The context of code that runs during the import of modules."""

Lines = dict[str, dict[int, list[str]]]
"""path → line → contexts that reach it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """lines: the contexts that reach them. seconds: duration of each test, by its id."""

    lines: Lines
    seconds: dict[str, float]

    def of(self, path: str, line: int) -> set[str] | None:
        """Return the contexts that reach a line's statement; None for all of them.

        All reach lines that importing alone reaches, and lines that were not measured.
        """
        known = self.lines.get(path)
        if known is None:
            return None
        found = {name for each in _statement(path, line) for name in known.get(each, ())}
        return None if IMPORTED in found else found


def new_coverage(paths: Iterable[str]) -> coverage.Coverage:
    """Return a measurement of the modules with these paths below the checkout, links followed."""
    names = [str(ROOT / path) for path in paths]
    linked = [str(ROOT / "roadstead" / path) for path in paths if path.startswith("actors/")]
    return coverage.Coverage(data_file=None, config_file=False, include=[*names, *linked])


def lines_of(followed: coverage.Coverage) -> Lines:
    """Return the reached lines with their contexts."""
    data, found = followed.get_data(), Lines()
    for measured in data.measured_files():
        path = os.path.relpath(os.path.realpath(measured), ROOT)
        lines = found.setdefault(path, {})
        for line, contexts in data.contexts_by_lineno(measured).items():
            lines.setdefault(line, []).extend(contexts)
    return found


def save(reach: Reach, path: Path) -> None:
    path.write_text(json.dumps({"lines": reach.lines, "seconds": reach.seconds}))


def load(path: Path) -> Reach:
    found = json.loads(path.read_text())
    lines = {
        name: {int(line): contexts for line, contexts in lines.items()}
        for name, lines in found["lines"].items()
    }
    return Reach(lines, found["seconds"])


def _statement(path: str, line: int) -> range:
    """Return the lines of the smallest statement that has a line, without those of its body."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno
        if node.lineno <= line <= end:
            found = range(node.lineno, end + 1)
    return found

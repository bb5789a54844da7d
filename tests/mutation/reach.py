"""Which runs and tests reach a line: only they can notice a mutant there.

A run is the same run until it comes to the changed line, so one that never comes there is not run
again for each mutant. Lines that are executed while modules are imported are reached by all.
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
"""The context of what is executed while modules are imported."""

Lines = dict[str, dict[int, list[str]]]
"""path → line → contexts that reach it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """lines: who reaches them. seconds: how long each test took, by its id."""

    lines: Lines
    seconds: dict[str, float]

    def of(self, path: str, line: int) -> set[str] | None:
        """Contexts that reach a line's statement; None for all of them.

        All reach what is reached by importing alone, and what was not measured.
        """
        known = self.lines.get(path)
        if known is None:
            return None
        found = {name for each in _statement(path, line) for name in known.get(each, ())}
        return None if IMPORTED in found else found


def new_coverage(paths: Iterable[str]) -> coverage.Coverage:
    """Follows the modules with these paths below the checkout, links followed."""
    names = [str(ROOT / path) for path in paths]
    linked = [str(ROOT / "roadstead" / path) for path in paths if path.startswith("actors/")]
    return coverage.Coverage(data_file=None, config_file=False, include=[*names, *linked])


def lines_of(followed: coverage.Coverage) -> Lines:
    """What was reached, by whom."""
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
    """The lines of the smallest statement that has a line, without those of its body."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno
        if node.lineno <= line <= end:
            found = range(node.lineno, end + 1)
    return found

"""Tests use the public surface of the product; each folder has a budget for its private members."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("actors", "config", "protocol", "roadstead")
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Python's own names, public although they begin with an underscore."""

MOST = {
    "tests/simulation": (194, "shadows, rambles and planted bugs follow and change inner state"),
    "tests/mutation": (12, "the lines of planted and equivalent mutants are quoted"),
    "tests/inside.py": (4, "the one place for inner state that several tests need"),
}
"""Most uses of private members, with the reason; none in every other folder."""


def is_private(name):
    return bool(re.fullmatch(r"_[A-Za-z]\w*", name)) and name not in OF_NAMED_TUPLES


def definitions(tree):
    """Yield the names that a module defines: functions, classes, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


@cache
def members():
    """Return every private name that the product defines."""
    files = (path for top in PRODUCT for path in (ROOT / top).rglob("*.py"))
    names = (name for path in files for name in definitions(ast.parse(path.read_text())))
    return frozenset(filter(is_private, names))


def uses(source, private):
    """Yield line and name of each private name that is imported, read of another, or quoted."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if is_own else [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roadstead"):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        yield from ((node.lineno, name) for name in names if name in private)


def place(path):
    return "/".join(path.relative_to(ROOT).parts[:2])


@cache
def found():
    """Return the uses in each folder of tests as lines of text with file, line and name."""
    by_place = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for line, name in sorted(uses(path.read_text(), members())):
            text = f"{path.relative_to(ROOT)}:{line} {name}"
            by_place.setdefault(place(path), []).append(text)
    return by_place

"""Tests use the public surface of the product; each folder has a budget for its private members."""

import ast
import re
from functools import cache

import pytest

from tests.docs.modules import PRODUCT, ROOT, modules_in

OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Python's own names, public although they begin with an underscore."""

MOST = {
    "tests/inside.py": (20, "the one place for inner state that several tests compare or break"),
    "tests/simulation": (
        200,
        "shadows compare inner state after each call, planted bugs change it",
    ),
}
"""Most uses of private members, and the reason; none in all other folders."""

QUOTING = "tests/mutation"
"""It quotes lines of the product: mutants, each with the reason why no test can find it."""


def is_private(name):
    return bool(re.fullmatch(r"_[A-Za-z]\w*", name)) and name not in OF_NAMED_TUPLES


def definitions(tree):
    """Yield the names that a module defines: functions, classes, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def private_names(trees):
    return frozenset(name for tree in trees for name in definitions(tree) if is_private(name))


def uses(tree, members, own):
    """Yield line and name of each use of a member: read, imported, or in a text.

    own: names of the tests' classes, which these read of `self`.
    """
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if is_own and node.attr in own else [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roadstead"):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A name, as for `monkeypatch`, or a program for another process.
            names = re.findall(r"\A_\w+\Z|(?<=\.)_\w+", node.value)
        yield from ((node.lineno, name) for name in names if name in members)


@cache
def found():
    """Return the uses in each folder of tests, as texts of file, line and name."""
    members, own = (
        private_names(each.tree for each in modules_in(*folders).values())
        for folders in (PRODUCT, ("tests",))
    )
    by_folder = {}
    for path, (_, tree) in modules_in("tests").items():
        inside = path.relative_to(ROOT)
        if inside.is_relative_to(QUOTING):
            continue
        for line, name in sorted(uses(tree, members, own)):
            by_folder.setdefault("/".join(inside.parts[:2]), []).append(f"{inside}:{line} {name}")
    return by_folder


def test_members_of_the_product_and_their_uses_are_recognized():
    members = private_names([ast.parse("class A:\n    def _f(self): self._g = self.h = 1")])
    assert members == {"_f", "_g"}
    source = (
        "a._f()\nself._f\nself._g = a.h\nfrom roadstead.a import _f\n"
        "change(a, '_f')\nrun('b._g()')\na._replace(b=1)\na._other"
    )
    lines = [line for line, _ in sorted(uses(ast.parse(source), members, {"_g"}))]
    assert lines == [1, 2, 4, 5, 6]


def folders():
    """Return the names by which `found` groups: of each folder of tests, and each module beside."""
    inside = (path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))
    return sorted({"/".join(path.parts[:2]) for path in inside} - {QUOTING})


@pytest.mark.parametrize("folder", folders())
def test_tests_use_the_public_members_of_the_product(folder):
    most, reason = MOST.get(folder, (0, "use what is public, or tests/inside.py"))
    uses_here = found().get(folder, [])
    listed = "\n".join(uses_here)
    why = (
        f"{folder}: {len(uses_here)} uses of private members, at most {most} ({reason}):\n{listed}"
    )
    assert len(uses_here) <= most, why


@pytest.mark.parametrize("folder", MOST)
def test_a_budget_is_lowered_when_much_of_it_is_unused(folder):
    most, _ = MOST[folder]
    assert most - len(found()[folder]) < 10, f"{folder} uses {len(found()[folder])} of {most}"

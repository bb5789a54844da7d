"""Core code uses the declarations of plugins, and names no plugin.

The import linter's contract forbids imports of plugins; a name in a string would pass it.
"""

import ast
import re
from pathlib import Path

import pytest

from roadstead.plugins.in_tree import in_tree_classes

ROOT = Path(__file__).parents[2]
# The plugins themselves, the kernel's lowerings, the independent checker, and the modules that
# read or write configurations.
MAY_NAME_PLUGINS = ("plugins", "kernel", "invariants", "cli")
LINKS = ("actors", "config", "protocol")
CORE = [
    ROOT / "actors",
    *sorted(
        each
        for each in (ROOT / "roadstead").iterdir()
        if each.is_dir() and each.name not in (*MAY_NAME_PLUGINS, *LINKS, "__pycache__")
    ),
    *sorted((ROOT / "roadstead").glob("*.py")),
    *sorted((ROOT / "roadstead" / "kernel").glob("*.py")),
]
NAME = re.compile(rf"\b({'|'.join(in_tree_classes())})\b")


def named(text):
    """Yield (line, plugin) for each string in a module that names a plugin, except docstrings."""
    tree = ast.parse(text)
    docs = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    return [
        (each.lineno, found)
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in docs
        for found in NAME.findall(each.value)
    ]


@pytest.mark.parametrize("place", CORE, ids=lambda path: path.name)
def test_core_code_names_no_in_tree_plugin(place):
    modules = [place] if place.is_file() else place.rglob("*.py")

    assert {str(each): found for each in modules if (found := named(each.read_text()))} == {}


def test_names_in_strings_count_and_names_in_docstrings_do_not():
    assert named('"""Coscheduling."""\nx = "Coscheduling"') == [(2, "Coscheduling")]
    assert named('x = f"plugin {y} VolumeBinding"') == [(1, "VolumeBinding")]
    assert named('x = "NodeNames"') == []

"""A class name is unique in the product, or CONTRIBUTING.md lists it with the reason."""

import ast
import re
from collections import defaultdict

from tests.docs.modules import PRODUCT, ROOT, modules_in

SECTION = "## Names that exist twice"


def places_by_name():
    """Return class name → the modules that define such a class."""
    found = defaultdict(list)
    for path, module in modules_in(*PRODUCT).items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    return found


def listed():
    """Return the names of the list, in its order."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split(SECTION)[1].split("\n## ")[0]
    entries = re.findall(r"^- ([^:]+):", section, re.MULTILINE)
    return [name for entry in entries for name in re.findall(r"`(\w+)`", entry)]


def test_every_class_name_that_exists_twice_is_listed():
    names = listed()
    unlisted = {
        name: places
        for name, places in places_by_name().items()
        if len(places) > 1 and name not in names
    }

    assert unlisted == {}


def test_every_listed_class_name_exists_twice():
    places = places_by_name()

    assert [name for name in listed() if len(places[name]) < 2] == []
    assert len(listed()) == len(set(listed())) > 5

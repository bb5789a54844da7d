"""Every name in `docs/invariants.md` exists."""

import ast
import re

from tests.docs.modules import ROOT, modules_in

PAGE = (ROOT / "docs" / "invariants.md").read_text()
INVARIANTS = 12
REFERENCE = re.compile(r"`([\w/]+\.py)(?:::([\w.]+))?`")


def names_in(path):
    """Return functions, classes, their members and assigned names of a module."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        found |= _names_of(node)
        for member in getattr(node, "body", ()) if isinstance(node, ast.ClassDef) else ():
            found |= {f"{node.name}.{name}" for name in _names_of(member)}
    return found


def _names_of(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", ())
    return {each.id for each in targets if isinstance(each, ast.Name)}


def test_every_file_and_name_on_the_page_of_invariants_exists():
    references = REFERENCE.findall(PAGE)
    missing = [
        (path, name)
        for path, name in references
        if not (ROOT / path).is_file() or (name and name not in names_in(ROOT / path))
    ]

    assert missing == []
    assert len(references) > 40


def test_each_invariant_has_its_row():
    rows = re.findall(r"^\| (I\d+) \|", PAGE, re.MULTILINE)

    assert rows == [f"I{number}" for number in range(1, INVARIANTS + 1)], (
        "for a new invariant, change INVARIANTS and the first sentence of docs/invariants.md"
    )


def test_each_invariant_that_the_checker_names_has_its_row():
    named = {
        node.value
        for module in modules_in("roadstead/invariants").values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and re.fullmatch(r"I\d+", str(node.value))
    }
    rows = set(re.findall(r"^\| (I\d+) \|", PAGE, re.MULTILINE))

    assert named, "the checker names invariants"
    assert not named - rows, "add its row to docs/invariants.md, and change INVARIANTS"

"""Names in backticks in docstrings and comments of the product are defined."""

import ast
import builtins
import keyword
import re
from functools import cache

from tests.docs.modules import PRODUCT, ROOT, comments_in, modules_in

NAME = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
PLAIN = re.compile(r"[\w.]+")

OTHERS = frozenset(
    {
        # Go and Kubernetes.
        "Aggregate",
        "UnschedulableAndUnresolvable",
        "enableHttps",
        "errors",
        "maxPods",
        "omitempty",
        # The programs of papers.
        "CellState",
        "Scheduler",
        "exampleWorkloadDesc",
        "scheduleJob",
        # Placeholders, a heading, and a module of Python.
        "Allocation",
        "Case",
        "Class",
        "InstanceEvent",
        "MachineEvent",
        "a__b",
        "kubectl",
        "typing",
    }
)
"""Names that are defined elsewhere."""


def trees():
    return [module.tree for module in modules_in(*PRODUCT).values()]


def names_of(node):
    """Yield the names that a node of a syntax tree defines or uses."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.arg() | ast.keyword():
            yield node.arg
        case ast.Name():
            yield node.id
        case ast.Attribute():
            yield node.attr
        case ast.alias():
            yield from (*node.name.split("."), node.asname)
        # Names of fields, plugins, extension points, settings and metrics.
        case ast.Constant(value=str(text)) if PLAIN.fullmatch(text):
            yield from text.split(".")


@cache
def defined():
    paths = (path.relative_to(ROOT) for path in modules_in(*PRODUCT))
    files = {part for path in paths for part in (path.stem, *path.parts)}
    named = {name for tree in trees() for node in ast.walk(tree) for name in names_of(node)}
    return files | named | {*dir(builtins), *keyword.kwlist, *OTHERS}


def docstrings(tree):
    """Yield (line, text) of each docstring."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                yield each.lineno, str(each.value.value)


@cache
def all_texts():
    """Return (path, line, text) of the docstrings and comments of all modules that have a
    backtick."""
    comments = comments_in(*PRODUCT)
    return [
        (path.relative_to(ROOT), line, text)
        for path, module in modules_in(*PRODUCT).items()
        for line, text in (*docstrings(module.tree), *comments[path])
        if "`" in text
    ]


def unknown(text):
    parts = (part for name in NAME.findall(text) for part in name.split("."))
    return {part for part in parts if part not in defined()} - {""}


def members():
    """Return the names in each class whose name is unique, and that inherits from no other."""
    classes, bases = {}, {}
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found = {name for each in ast.walk(node) for name in names_of(each)}
                classes[node.name] = None if node.name in classes else found
                bases[node.name] = [getattr(each, "id", "") for each in node.bases]
    return {
        name: found
        for name, found in classes.items()
        if found is not None and all(base in ("Protocol", "NamedTuple") for base in bases[name])
    }


def test_every_name_in_backticks_is_defined():
    found = [f"{path}:{line}: {name}" for path, line, text in all_texts() for name in unknown(text)]

    assert found == []


def test_every_member_in_backticks_is_one_of_its_class():
    known = members()
    found = [
        f"{path}:{line}: {owner}.{member}"
        for path, line, text in all_texts()
        for owner, member in re.findall(r"`(\w+)\.(\w+)", text)
        if member not in known.get(owner, {member}) | OTHERS
    ]

    assert len(known) > 300
    assert found == []


def test_a_name_that_no_longer_exists_is_found():
    assert unknown("See `NoSuchMessage.field`, sent by `Verifier.verify` of `binder`.") == {
        "NoSuchMessage"
    }

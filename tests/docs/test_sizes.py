"""Functions of the product have at most 70 lines, and modules at most 400."""

import ast

from tests.docs.modules import PRODUCT, ROOT, modules_in

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 400

LARGER = {
    "roadstead/framework/evaluation.py": (
        530,
        "one class whose methods share the state of one search: codes, positions, scores",
    ),
    "roadstead/framework/plugin.py": (
        500,
        "the interface that users' plugins implement; most lines are its documentation",
    ),
    "roadstead/queue/core.py": (
        450,
        "the state machine of the queue: one short method for each event",
    ),
    "roadstead/simulator/engine.py": (
        550,
        "the event loop of a simulated run: one short handler for each event and command",
    ),
}
"""Module → maximum number of lines, and why it is not split."""


def lines_of_modules():
    return {
        str(path.relative_to(ROOT)): len(module.text.splitlines())
        for path, module in modules_in(*PRODUCT).items()
    }


def test_functions_have_at_most_70_lines():
    larger = [
        (str(path.relative_to(ROOT)), node.name, lines)
        for path, module in modules_in(*PRODUCT).items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES_MAX
    ]

    assert larger == []


def test_modules_have_at_most_400_lines_or_are_listed():
    larger = {
        path: lines
        for path, lines in lines_of_modules().items()
        if lines > LARGER.get(path, (MODULE_LINES_MAX, ""))[0]
    }

    assert larger == {}


def test_every_listed_module_has_more_than_400_lines():
    lines = lines_of_modules()

    assert [path for path in LARGER if lines.get(path, 0) <= MODULE_LINES_MAX] == []

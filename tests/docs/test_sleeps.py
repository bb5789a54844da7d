"""Tests wait for a condition, by `tests/waiting.py`, and never for a fixed real time."""

import ast

import pytest

from tests.docs.modules import ROOT, modules_in

DELIBERATE = {
    "tests/waiting.py": "the pauses between two polls of a condition",
    "tests/simulation": "virtual time: a sleep costs none",
    "tests/actors/test_bind_order.py": "virtual time, by run_virtual",
    "tests/actors/test_worker_feed.py": "virtual time, by run_virtual",
    "tests/actors/hampered_workers.py": "workers that answer late or never, which nobody awaits",
    "tests/actors/test_ray_runtime.py": "an actor whose start outlasts its deadline; it is killed",
    "tests/actors/test_ray_start.py": "a plugin that never returns; its process is killed",
    "tests/scripts/test_kill_matrix.py": "a child that outlasts its deadline; it is killed",
    "tests/scripts/test_kill_soak.py": "a child that looks like an actor; it is killed",
}
"""Files and folders that may call sleep, or start a program that does, and the reason."""


def is_zero(call):
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and not call.args[0].value


def sleeps(tree):
    """Yield the lines of calls of sleep, except asyncio.sleep(0), and of programs that call it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name == "sleep" and not is_zero(node):
                yield node.lineno
        elif isinstance(node, ast.Constant) and "sleep(" in str(node.value):
            yield node.lineno


def entry_of(path):
    return next((each for each in DELIBERATE if path == each or path.startswith(f"{each}/")), None)


def test_only_listed_files_sleep_and_each_entry_is_needed():
    found = {}
    for file, module in modules_in("tests").items():
        path = str(file.relative_to(ROOT))
        lines = list(sleeps(module.tree))
        if lines and file.name != "test_sleeps.py":
            found[path] = lines

    unlisted = {path: lines for path, lines in found.items() if entry_of(path) is None}
    assert unlisted == {}, "use tests/waiting.py, or list the file with its reason"
    unused = DELIBERATE.keys() - {entry_of(path) for path in found}
    assert unused == set(), "these no longer sleep: remove their entries"


@pytest.mark.parametrize("path", [p for p, why in DELIBERATE.items() if "run_virtual" in why])
def test_files_in_virtual_time_use_its_loop_alone(path):
    text = (ROOT / path).read_text()

    assert "run_virtual(" in text
    assert "asyncio.run(" not in text
    assert "\nasync def test_" not in text, "pytest runs such a test in real time"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("time.sleep(1)", [1]),
        ("await asyncio.sleep(seconds)", [1]),
        ("sleep(0.1)", [1]),
        ("time.sleep()", [1]),
        ("await asyncio.sleep(0)", []),
        ("run('import time; time.sleep(9)')", [1]),
    ],
)
def test_calls_and_programs_that_sleep_are_found(text, lines):
    tree = ast.parse(f"async def f():\n    {text}")

    assert [line - 1 for line in sleeps(tree)] == lines

"""Failures of a user's plugin name the line of the author's file."""

import importlib
import sys
import textwrap

import numpy as np
import pytest

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.failures import out_of_range
from roadstead.framework.guarded import PluginFailure, guard
from roadstead.framework.plugin_source import function_at, raised_at
from roadstead.framework.user_plugins import factory_of, load_plugin_class
from roadstead.protocol.errors import InputError
from tests.builders import node, pod, table_of

ALONE = """
    from roadstead.framework.per_node import NodePlugin

    class Mine(NodePlugin):
        name = "Mine"

        def score(self, pod, node):
            return level(node)

    def level(node):
        return int(node.labels["level"])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder to import from; its modules are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"))


def failure_of(plugin, table):
    pod_class = table.classes.pod_class(pod(cpu=100))
    with pytest.raises(PluginFailure) as failed:
        guard(plugin).score(CycleState(len(table)), pod_class, table)
    return failed.value


def test_an_exception_is_named_with_the_innermost_line_of_the_authors_file(folder):
    write(folder / "alone.py", ALONE)

    failure = failure_of(load_plugin_class("alone:Mine")(), table_of(node("n1")))

    assert failure.status.message == "KeyError: 'level' (alone.py:10)"
    assert failure.facts == pod(cpu=100)


def test_a_line_below_the_authors_file_is_named_by_the_line_that_called_it(folder):
    write(folder / "alone.py", ALONE)
    labelled = table_of(node("n1", labels={"level": "high"}))

    failure = failure_of(load_plugin_class("alone:Mine")(), labelled)

    assert failure.status.message.endswith("(alone.py:10)")
    assert failure.status.message.startswith("ValueError: invalid literal for int()")


def test_files_of_a_package_are_named_from_the_folder_that_holds_it(folder):
    write(folder / "mine" / "__init__.py", "from mine.scores import Mine\n")
    write(folder / "mine" / "levels.py", "def level(node):\n    return 1 // 0\n")
    text = ALONE.partition("    def level(node)")[0]
    write(folder / "mine" / "scores.py", "    from mine.levels import level\n" + text.lstrip("\n"))

    failure = failure_of(load_plugin_class("mine:Mine")(), table_of(node("n1")))

    assert failure.status.message == (
        "ZeroDivisionError: integer division or modulo by zero (mine/levels.py:2)"
    )


def test_a_wrong_answer_is_named_with_the_line_of_its_method(folder):
    write(folder / "alone.py", ALONE.replace("return level(node)", 'return "high"'))

    failure = failure_of(load_plugin_class("alone:Mine")(), table_of(node("n1")))

    assert failure.status.message == 'returned "high" for node n1, want an int (alone.py:6)'


def test_a_score_out_of_range_is_named_with_the_line_of_the_last_method(folder):
    write(folder / "alone.py", ALONE)
    guard(load_plugin_class("alone:Mine")())

    status = out_of_range("Mine", np.array([0, 101]))

    assert status.message.endswith("after normalizing (alone.py:6)")
    assert "(" not in out_of_range("Another", np.array([101])).message.partition("after")[2]


def test_code_of_another_author_has_no_place():
    assert raised_at("mine", ValueError()) == ""
    assert function_at("mine", importlib.import_module) == ""
    assert function_at("mine", len) == ""
    assert function_at("mine", None) == ""


def test_a_module_or_a_constructor_that_raises_is_named_with_its_line(folder):
    write(folder / "torn.py", "x = 1\ny = x // 0\n")
    text = ALONE.replace(
        "def score", "def __init__(self):\n            {}['x']\n\n        def score"
    )
    write(folder / "alone.py", text)

    with pytest.raises(InputError, match=r"ZeroDivisionError.*, at torn.py:2"):
        load_plugin_class("torn:Mine")
    with pytest.raises(InputError, match=r"cannot be built \(KeyError: 'x', at alone.py:7\)"):
        factory_of(load_plugin_class("alone:Mine"))(None, None)

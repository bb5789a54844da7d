"""The plugins of `docs/plugins.md` run as printed on the page."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from roadstead.cli.plugin.files import plugin_texts
from roadstead.cli.plugin.outcome import CheckOutcome
from roadstead.cli.plugin.testing import on_sample_fleets

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
FILES = dict(re.findall(r"^`(\w+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
PLUGINS = [name for name in FILES if not name.startswith("test_")]


@pytest.fixture
def pasted(tmp_path, monkeypatch):
    """Write the page's files to a working directory; forget its modules afterwards."""
    known = set(sys.modules)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield tmp_path
    for name in set(sys.modules) - known:
        if not name.startswith("roadstead."):
            del sys.modules[name]


def test_the_page_has_a_filter_a_score_and_a_plugin_across_nodes_each_with_a_test():
    assert PLUGINS == ["ssd_for_databases.py", "free_memory.py", "zone_balance.py"]
    assert FILES.keys() == {*PLUGINS, *(f"test_{name}" for name in PLUGINS)}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_of_the_page_passes_every_check_and_has_work(pasted, name):
    checks = on_sample_fleets(name, None, seeds=2, nodes=30).checks

    assert {
        check.name: check.text for check in checks if check.outcome is not CheckOutcome.OK
    } == {}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_test_of_the_page_passes(pasted, name):
    module = importlib.import_module(f"test_{name.removesuffix('.py')}")
    tests = [each for key, each in vars(module).items() if key.startswith("test_")]

    assert tests
    for each in tests:
        each()


def test_the_first_plugin_of_the_page_equals_the_output_of_plugin_new():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    texts = plugin_texts("FewPods", per_node=False)
    _, _, test = texts["test_few_pods.py"].partition('"""\n\n')

    assert blocks[0] in texts["few_pods.py"]
    assert test in blocks

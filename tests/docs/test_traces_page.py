"""The page on traces: it has every format, and every key and unit of the mapping file."""

import re
from pathlib import Path
from typing import get_args

import pytest

from roadstead.cli.trace_import import IMPORT_COMMANDS
from roadstead.cli.trace_tools import TOOLS
from roadstead.traces import table_mapping as mapping

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text()
PARTS = {"pods": mapping.PodMapping, "nodes": mapping.NodeMapping, "csv": mapping.TableFormat}
KEYS = [
    f"{part}.{field.alias or name}"
    for part, model in PARTS.items()
    for name, field in model.model_fields.items()
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_mapping_file_is_in_the_reference(key):
    table = PAGE[PAGE.index("| key | values | default |") :]
    assert f"`{key}`" in table


def test_the_reference_has_no_other_keys():
    table = PAGE[PAGE.index("| key | values | default |") :]
    assert set(re.findall(r"`((?:pods|nodes|csv)\.\w+)`", table)) == set(KEYS)


def test_every_unit_of_time_is_named():
    assert all(f"`{unit}`" in PAGE for unit in get_args(mapping.TimeUnit))


@pytest.mark.parametrize("command", IMPORT_COMMANDS, ids=lambda command: command.name)
def test_every_format_is_in_the_overview(command):
    assert f"[`{command.name}`](#" in PAGE


@pytest.mark.parametrize("command", TOOLS, ids=lambda command: command.name)
def test_every_tool_is_shown(command):
    assert f"roadstead trace {command.name} " in PAGE

"""docs/scenario.md shows the schema, a valid scenario, and the shapes that exist."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from roadstead.config.scenario.read import read_scenario
from roadstead.config.scenario.reference import reference_markdown
from roadstead.config.scenario.schema import Scenario
from roadstead.config.scenario.structure import documented_type, fields_of, models_in
from roadstead.config.settings import Settings
from roadstead.fleet.sizes import NAMED_NODE_SIZES

PAGE = (Path(__file__).parents[2] / "docs" / "scenario.md").read_text()


def models():
    """Return all models of the schema."""
    found, left = [], [Scenario]
    while left:
        model = left.pop()
        if model not in found and model is not Settings:
            found.append(model)
            left += [each for _, info in fields_of(model) for each in models_in(info.annotation)]
    return found


def test_the_page_ends_with_the_reference_of_this_schema():
    _, _, shown = PAGE.partition("--update -->\n\n")

    assert shown == reference_markdown(), "run scripts/scenario_reference.py --update"


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_key_is_in_the_reference_with_a_sentence_and_a_type(model):
    reference = reference_markdown()

    for key, info in fields_of(model):
        rows = re.findall(rf"^\| `{key}` \| .* \|$", reference, re.MULTILINE)
        assert rows, f"{key} of {model.__name__}"
        assert (info.description or "").rstrip().endswith("."), f"{key} of {model.__name__}"
        is_nested = any(issubclass(each, BaseModel) for each in models_in(info.annotation))
        assert documented_type(info) or is_nested or "Literal" in str(info.annotation), (
            f"{key} of {model.__name__} has a unit"
        )


def test_the_scenario_on_the_page_is_valid():
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    read = read_scenario(text, source="page", directory=Path())

    assert read.scenario.metadata.name == "zone-loss"
    assert len(read.scenario.events) == 4


def test_the_page_names_every_included_shape():
    sizes = "4, 8, 16,\n32, 64, 96 and 128"
    assert sizes in PAGE
    for name in NAMED_NODE_SIZES:
        family, _, size = name.partition("-")
        assert f"`{name}`" in PAGE or (family in ("cpu", "mem") and size in sizes)

"""The recorded decisions of kube-scheduler 1.34.1 over 172 configurations."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.load import load_config
from roadstead.config.model import default_config

GOLDEN = Path(__file__).parents[1] / "golden" / "config" / "config.json.gz"
CASES: list[dict[str, Any]] = json.loads(gzip.decompress(GOLDEN.read_bytes()))["cases"]


def named(valid: bool) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["valid"] is valid]


def upstream_fields(text: str) -> set[str]:
    """The field paths a decode error of Go names, as far as it names any."""
    prefix = re.search(r"decoding \.(\S+?): ", text)
    inside = f"{prefix[1]}.args." if prefix else ""
    fields = {inside + field for field in re.findall(r'unknown field "([^"]+)"', text)}
    fields |= {field.split(".", 1)[1] for field in re.findall(r"struct field (\S+) of type", text)}
    return fields | set(re.findall(r"(line \d+): key", text))


def short(field: str) -> str:
    """Without indices, which Go leaves out of a struct's path, and without a column."""
    return re.sub(r"\[\d+\]|, column \d+", "", field)


@pytest.mark.parametrize("case", named(valid=True))
def test_valid_configuration_has_upstreams_plugins_and_defaulted_document(case: Any) -> None:
    loaded = load_config(case["input"], source="scheduler.yaml")

    assert loaded.effective() == case["effective"]
    assert loaded.document == case["defaulted"]


@pytest.mark.parametrize("case", named(valid=False))
def test_invalid_configuration_is_refused_at_upstreams_stage_and_field(case: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(case["input"], source="scheduler.yaml")

    assert refused.value.stage == case["stage"]
    if case["stage"] != "decode":
        assert refused.value.errors == case["errors"]
        return
    fields = {problem.field for problem in refused.value.problems}
    fields |= {short(field) for field in fields}
    assert upstream_fields(case["errors"][0]) <= fields


def test_the_suite_covers_every_stage() -> None:
    stages = {case.get("stage") for case in CASES if not case["valid"]}

    assert len(CASES) == 172
    assert stages == {"decode", "validate", "build"}


def test_default_config_is_what_an_empty_document_means() -> None:
    (empty,) = (case for case in CASES if case["name"] == "hand-00")

    assert load_config(empty["input"], source="").config == default_config()
    assert default_config() is default_config()

"""The recorded decisions of kube-scheduler 1.34.1 over 172 configurations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from roadstead.config.load import load_config
from roadstead.config.model import default_config
from scripts.recordings.config_cases import check_config

GOLDEN = Path(__file__).parents[1] / "golden" / "config" / "config.json.gz"
CASES: list[dict[str, Any]] = json.loads(gzip.decompress(GOLDEN.read_bytes()))["cases"]


def named(valid: bool) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["valid"] is valid]


@pytest.mark.parametrize("case", named(valid=True))
def test_valid_configuration_has_upstreams_plugins_and_defaulted_document(case: Any) -> None:
    ours, differences = check_config(case)

    assert differences == []
    assert ours["valid"]


@pytest.mark.parametrize("case", named(valid=False))
def test_invalid_configuration_is_refused_at_upstreams_stage_and_field(case: Any) -> None:
    ours, differences = check_config(case)

    assert differences == []
    assert ours["stage"] == case["stage"]


def test_the_suite_covers_every_stage() -> None:
    stages = {case.get("stage") for case in CASES if not case["valid"]}

    assert len(CASES) == 172
    assert stages == {"decode", "validate", "build"}


def test_the_default_config_equals_that_of_an_empty_document() -> None:
    (empty,) = (case for case in CASES if case["name"] == "hand-00")

    assert load_config(empty["input"], source="").config == default_config()
    assert default_config() is default_config()

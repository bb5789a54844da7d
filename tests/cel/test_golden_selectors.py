"""Every recorded selector: compile errors, cost estimates, results and errors of each device."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.recordings.cases import read_document
from scripts.recordings.cel_cases import selector_check

GOLDEN = Path(__file__).parent.parent / "golden" / "dra-cel"
FILES = sorted(GOLDEN.glob("*.json.gz"))
CASES = {
    "dra-cel-000": 255,
    "dra-cel-001": 111,
    "dra-cel-002": 255,
    "dra-cel-003": 113,
    "dra-cel-consumable-000": 55,
    "cel-go-functions": 704,
    "cel-go-random": 1197,
}


def test_no_recording_is_missing() -> None:
    assert {file.name.removesuffix(".json.gz") for file in FILES} == set(CASES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_selectors_answer_like_upstream(file: Path) -> None:
    document = read_document(file)
    check = selector_check(file, document)
    cases = document["cases"]
    assert isinstance(cases, list)

    differences = {case["expression"]: found for case in cases if (found := check(case)[1])}

    assert len(cases) == CASES[str(document["name"])]
    assert differences == {}

"""Recorded decisions on claims of devices by kube-scheduler 1.34.1, on every path."""

from pathlib import Path

import pytest

from scripts.recordings.cases import find_files
from scripts.recordings.suites import run_file

GOLDEN = Path(__file__).parents[1] / "golden"
PATHS = ["plain", "batches", "2"]
FILES = find_files([GOLDEN / "dra", GOLDEN / "dra-sequence"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_on_claims_equal_upstreams(file):
    answers = run_file(file, PATHS)

    assert [answer.path_name for answer in answers] == PATHS
    for answer in answers:
        assert answer.result.mismatches == [], answer.path_name
        assert not answer.result.unsupported, answer.path_name
        assert answer.result.decisions > 0, answer.path_name


@pytest.mark.parametrize("file", find_files([GOLDEN / "dra-queueing"]), ids=lambda file: file.stem)
def test_hints_on_claims_equal_upstreams(file):
    (answer,) = run_file(file, ["-"])

    assert answer.result.mismatches == []
    assert answer.result.compared > 100


def test_every_gate_is_among_the_selected_cases():
    names = {file.name.rpartition("-")[0] for file in FILES}

    assert names >= {"dra", "dra-sequence"} | {
        f"dra-{gate}" for gate in ("binding", "consumable", "extended", "partitionable", "taints")
    }

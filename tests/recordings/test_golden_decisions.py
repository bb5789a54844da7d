"""The recorded decisions of kube-scheduler 1.34.1, on every path."""

from pathlib import Path

import pytest

from scripts.recordings.cases import find_files
from scripts.recordings.suites import run_file

GOLDEN = Path(__file__).parents[1] / "golden"
SUITES = ("static", "profiles", "preemption", "sequence", "openb", "sampling")
PATHS = ["plain", "batches", "1", "2", "5"]
EXPLAINED = ("plain", "batches")
"""Paths that also explain pods: with workers, the same code explains on the same table."""
FILES = find_files([GOLDEN / suite for suite in SUITES])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_equal_upstreams(file):
    answers = run_file(file, PATHS, EXPLAINED)

    assert [answer.path_name for answer in answers] == PATHS
    for answer in answers:
        assert answer.result.mismatches == [], answer.path_name
        assert not answer.result.unsupported, answer.path_name
        assert answer.result.decisions > 0, answer.path_name


def test_the_selected_cases_are_numerous_enough():
    assert len(FILES) >= 55
    assert {file.parent.name for file in FILES} == set(SUITES)


def test_numbers_of_nodes_to_find_and_orders_of_nodes_equal_upstreams():
    (answer,) = run_file(GOLDEN / "misc" / "misc.json.gz", ["plain"])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.compared == 290

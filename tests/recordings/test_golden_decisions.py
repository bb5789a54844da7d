"""The recorded decisions of kube-scheduler 1.34.1, on every path."""

from pathlib import Path

import pytest

from scripts.recordings.cases import find_files
from scripts.recordings.suites import run_file

GOLDEN = Path(__file__).parents[1] / "golden"
SUITES = ("static", "profiles", "preemption", "sequence", "openb", "sampling")
FILES = find_files([GOLDEN / suite for suite in SUITES])


@pytest.mark.parametrize("path_name", ["plain", "batches", "1", "2", "5"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_equal_upstreams(file, path_name):
    (answer,) = run_file(file, [path_name])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.decisions > 0


def test_the_selected_cases_are_numerous_enough():
    assert len(FILES) >= 55
    assert {file.parent.name for file in FILES} == set(SUITES)


def test_numbers_of_nodes_to_find_and_orders_of_nodes_equal_upstreams():
    (answer,) = run_file(GOLDEN / "misc" / "misc.json.gz", ["plain"])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.compared == 290

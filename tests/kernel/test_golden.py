"""The recorded decisions of kube-scheduler 1.34.1, with the kernel for all pods it supports."""

import pytest

from scripts.recordings.suites import run_file
from tests.recordings.test_golden_decisions import FILES

ONE_BY_ONE = ["plain+kernel", "2+kernel", "batches+kernel"]
IN_RUNS = ["2+runs", "batches+runs"]
WITH_BATCHES = ("sequence", "openb", "sampling")
"""Suites whose pods come one after another, so that batches have several."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_with_the_kernel_equal_upstreams(file):
    paths = [*ONE_BY_ONE, *(IN_RUNS if file.parent.name in WITH_BATCHES else ())]

    # Explanations are made without the kernel.
    answers = run_file(file, paths, ONE_BY_ONE[:1])

    assert [answer.path_name for answer in answers] == paths
    for answer in answers:
        assert answer.result.mismatches == [], answer.path_name
        assert not answer.result.unsupported, answer.path_name
        assert answer.result.decisions > 0, answer.path_name

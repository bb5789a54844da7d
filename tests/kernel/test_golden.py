"""The recorded decisions of kube-scheduler 1.34.1, with the kernel for all pods it supports."""

import pytest

from scripts.recordings.suites import run_file
from tests.recordings.test_golden_decisions import FILES


@pytest.mark.parametrize("path_name", ["plain+kernel", "2+kernel", "batches+kernel"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_with_the_kernel_equal_upstreams(file, path_name):
    (answer,) = run_file(file, [path_name])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.decisions > 0


STEPS = [file for file in FILES if file.parent.name in ("sequence", "openb", "sampling")]


@pytest.mark.parametrize("path_name", ["2+runs", "batches+runs"])
@pytest.mark.parametrize("file", STEPS, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_of_batches_equal_upstreams(file, path_name):
    (answer,) = run_file(file, [path_name])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.decisions > 0

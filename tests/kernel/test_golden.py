"""The recorded decisions of kube-scheduler 1.34.1, with the kernel wherever it takes part."""

import pytest

from roadstead.parity.suites import run_file
from tests.parity.test_golden_decisions import FILES


@pytest.mark.parametrize("path_name", ["plain+kernel", "2+kernel", "beside+kernel"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_decisions_with_the_kernel_are_upstreams(file, path_name):
    (answer,) = run_file(file, [path_name])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.decisions > 0

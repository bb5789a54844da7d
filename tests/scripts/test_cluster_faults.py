"""What the scripts that break a cluster count as a clean run."""

import subprocess

import pytest

CLEAN = {"status": 0, "after_fault_s": 3.0, "binds": 12_000, "violations": 0, "left": 0}


@pytest.fixture
def faults(scripts):
    return scripts("cluster_faults")


@pytest.mark.parametrize(
    "changed", [{"after_fault_s": None}, {"status": 1}, {"binds": 1}, {"violations": 1}]
)
def test_a_run_is_clean_only_if_its_fault_happened_and_no_rule_was_broken(faults, changed):
    fault = faults.FAULTS["head-cut"]

    assert faults.is_clean(fault, CLEAN)
    assert not faults.is_clean(fault, CLEAN | changed)


class Host:
    """A host whose commands print nothing, or do not end."""

    disk = None

    def __init__(self, *, hangs):
        self._hangs = hangs

    def run(self, *command, timeout_s):
        if self._hangs:
            raise subprocess.TimeoutExpired(command, timeout_s)
        return subprocess.CompletedProcess(command, 1, "", "")


@pytest.mark.parametrize(
    ("hangs", "line"),
    [
        (True, {"resumed": None, "resumed_message": "did not end within 300 s"}),
        (False, {"resumed": 1, "resumed_message": ""}),
    ],
)
def test_a_resumed_run_without_a_message_has_an_outcome(faults, tmp_path, hangs, line):
    fault = faults.Fault(lambda made: None, ends=True)

    assert faults.Run(fault, [Host(hangs=hangs)], tmp_path).resume() == line


def test_a_job_that_ended_before_it_was_stopped_is_not_clean(scripts):
    stop = scripts("cluster_job_stop")

    assert not stop.is_clean({"run": "stopped-0", "error": "the job ended"})

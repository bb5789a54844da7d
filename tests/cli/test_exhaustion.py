"""If memory or file handles run out, a command reports it in one line, with status 1."""

import errno
import resource
import subprocess
import sys

import pytest

from roadstead.cli import exhaustion
from roadstead.isolation import PACKAGE_PARENT
from tests.cli.manifests import node, pod, write

FEW = """
import resource, sys
from roadstead.actors.entry import main
resource.setrlimit(resource.{limit}, ({number}, {number}))
sys.argv[1:] = {arguments}
main()
"""


def limited(here, limit, number):
    write(here / "nodes.json", node("n"))
    write(here / "pods.json", *(pod(f"p-{number}", "10m") for number in range(20)))
    arguments = ["schedule", "--cluster", "nodes.json", "--pods", "pods.json"]
    arguments += ["--runtime", "inline", "--output", "out"]
    program = FEW.format(limit=limit, number=number, arguments=arguments)
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=here,
        env={"PYTHONPATH": PACKAGE_PARENT},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("number", [7, 9, 11, 13])
def test_a_run_with_a_low_limit_of_open_files_reports_it(tmp_path, number):
    done = limited(tmp_path, "RLIMIT_NOFILE", number)

    assert done.returncode == 1
    message = f"The run failed: too many open files: the limit is {number} (ulimit -n)"
    assert done.stderr.splitlines()[-1] == message
    assert "Traceback" not in done.stderr


class Failing:
    """Stands for a launcher whose runs fail."""

    def __init__(self, failure):
        self.failure = failure

    def prepare(self, settings, log_dir):
        raise RuntimeError("something that follows") from self.failure


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (MemoryError(), "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (RuntimeError("can't start new thread"), "no more threads can be started (ulimit -u)"),
    ],
)
def test_failures_after_an_exhausted_resource_name_the_resource(
    run, launcher, cluster, pods, monkeypatch, failure, message
):
    monkeypatch.setattr(launcher, "prepare", Failing(failure).prepare)

    done = run("schedule", "--cluster", cluster, "--pods", pods)

    assert (done.exit_code, done.stderr) == (1, f"The run failed: {message}\n")


def test_any_other_failure_keeps_its_traceback(run, launcher, cluster, pods, monkeypatch):
    monkeypatch.setattr(launcher, "prepare", Failing(KeyError("x")).prepare)

    with pytest.raises(RuntimeError, match="something that follows"):
        run("schedule", "--cluster", cluster, "--pods", pods)


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [
        (1024, 4096, 4096),
        (1024, resource.RLIM_INFINITY, exhaustion.MOST_FILES),
        (4096, 4096, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_of_open_files_is_raised_to_the_maximum(monkeypatch, soft, hard, set_to):
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, given: limits.append(given))

    exhaustion.allow_files()

    assert limits == ([] if set_to is None else [(set_to, hard)])

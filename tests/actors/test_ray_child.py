"""Ray's programs run unchanged, and end with the process that started them."""

import os
import subprocess
import sys

import pytest

from roadstead.actors.runtime import ray_child

PROGRAM = """
import sys
print(__name__, sys.argv[1:], flush=True)
sys.stdin.read()
"""
STARTS = """
import os, subprocess, sys
environment = os.environ | {"RAY_RAYLET_PID": str(os.getpid())}
child = subprocess.Popen([sys.executable, *sys.argv[1:]], env=environment)
child.wait()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_a_program_runs_with_its_arguments_and_ends_with_its_parent(program):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS, ray_child.__file__, program, "--port=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout.readline() == "__main__ ['--port=1']\n"

    parent.kill()

    # Both processes have the output open, so its end is the end of both.
    assert parent.stdout.read() == ""
    parent.communicate()


def test_an_idle_process_runs_no_program_and_ends_with_its_parent(program):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS, "-I", "-S", ray_child.__file__, ray_child.IDLE, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    parent.kill()

    assert parent.communicate() == ("", None)


def test_a_program_whose_parent_ended_before_does_not_run(program):
    done = subprocess.run(
        [sys.executable, ray_child.__file__, program],
        env=os.environ | {"RAY_RAYLET_PID": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, b"")

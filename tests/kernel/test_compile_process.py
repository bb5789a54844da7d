"""A compiling process ends with the run that started it, unless that run ended normally."""

import os
import runpy
import subprocess
import sys
import threading

import pytest

from roadstead.isolation import child_environment
from roadstead.kernel import compile_process, compiled_code

WATCHES = """
import sys, threading
from roadstead.kernel.compile_process import end_with_parent
end_with_parent()
print("ready", flush=True)
for line in open(sys.argv[1]):
    print(line)
"""


@pytest.fixture
def watching(tmp_path):
    """Start a child that ends with its parent, or after a byte is written to a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", WATCHES, pipe],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | child_environment(),
    )
    assert child.stdout.readline() == b"ready\n"
    yield child, pipe
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_compile_process_ends_immediately_after_its_parent(watching):
    child, _ = watching

    # The system does the same when the parent is killed.
    child.stdin.close()

    assert child.wait(60) == compile_process.ORPHANED


def test_the_command_needs_no_input(monkeypatch):
    compiled = []
    monkeypatch.setattr(compiled_code, "compile_in_process", lambda *part: compiled.append(part))
    monkeypatch.setattr(sys, "argv", ["roadstead.kernel"])
    with open(os.devnull) as empty, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", empty)
        runpy.run_module("roadstead.kernel", run_name="__main__")

    assert compiled == [()]
    watchers = [each for each in threading.enumerate() if each.name == "parent"]
    assert watchers == [], "the end of the input does not end the process"


def test_a_compile_process_that_may_finish_outlives_its_parent(watching, monkeypatch):
    child, pipe = watching
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: child)
    compile_process.start_compiling()

    compile_process.detach_compilations()
    child.stdin.close()
    pipe.write_text("done")

    assert child.wait(60) == 0
    assert b"done" in child.stdout.read()
    # The next run of this process has nothing to detach.
    compile_process.detach_compilations()

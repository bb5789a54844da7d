"""An interrupted command ends with the status that shells expect, and reports what is kept."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from roadstead.interruption import Interrupted, cancelling_on_signal, interruptible
from tests.cli.manifests import node, pod, write

PODS = 120
SIGNALS = (signal.SIGINT, signal.SIGTERM)
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(autouse=True)
def signals_are_heeded():
    """Handle SIGINT as in a terminal: a shell that starts tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


COMMAND = """
import os, sys
from roadstead.actors import entry
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.report import output

signum, at, *arguments = sys.argv[1:]
write = output.write_output

def interrupt(phase, placed=30):
    if phase == at and placed >= 30:
        # As a terminal does: to all processes of the command.
        os.killpg(0, int(signum))

class Interrupting(ActorLauncher):
    def run(self, inputs, plan, progress):
        interrupt("inputs")
        def report(event):
            progress(event)
            is_scheduling = event.phase == "scheduling"
            interrupt(event.phase, event.placed if is_scheduling else 30)
        return super().run(inputs, plan, report)

def writing(directory, result):
    interrupt("output")
    write(directory, result)

entry.open_launcher = Interrupting
output.write_output = writing
sys.argv[1:] = arguments
entry.main()
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run `roadstead schedule`, interrupted in a phase; return its status and its output."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "nodes.json", *(node(f"n-{number}") for number in range(20)))
    write(tmp_path / "pods.json", *(pod(f"p-{number}", "10m") for number in range(PODS)))
    (tmp_path / "settings.yaml").write_text("batch: 2\nworkers: 2\n")

    def run(signum, at, *more, runtime="inline"):
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-c", COMMAND, str(int(signum)), at, "schedule"),
                *("--cluster", "nodes.json", "--pods", "pods.json", "--settings", "settings.yaml"),
                *("--runtime", runtime, "--format", "json", *more),
            ],
            capture_output=True,
            text=True,
            timeout=240,
            start_new_session=True,
            check=False,
        )
        return done

    return run


def prove_continued(command, runtime="inline"):
    done = command(0, "", "--output", "out", "--resume", runtime=runtime)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["placed"] == PODS


@pytest.mark.parametrize("signum", SIGNALS)
@pytest.mark.parametrize("at", ["inputs", "starting actors", "loading the cluster"])
def test_an_interruption_before_the_first_bind_keeps_no_result(command, signum, at):
    done = command(signum, at)

    assert done.returncode == STATUS[signum]
    last_line = done.stderr.splitlines()[-1]
    assert last_line == f"Interrupted by {signum.name}. No result of the run is kept."
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("signum", SIGNALS)
@pytest.mark.parametrize("at", ["scheduling", "collecting results"])
def test_an_interrupted_run_names_its_journal_and_can_be_resumed(command, signum, at):
    done = command(signum, at, "--output", "out")

    assert done.returncode == STATUS[signum]
    assert done.stderr.splitlines()[-1] == (
        f"Interrupted by {signum.name}. Acknowledged binds are in out/journal; the same "
        "command with --resume continues the run."
    )
    assert "Traceback" not in done.stderr
    prove_continued(command)


def test_interrupted_output_is_not_left_in_part(command, tmp_path):
    done = command(signal.SIGINT, "output", "--output", "out")

    assert done.returncode == STATUS[signal.SIGINT]
    assert "the same command with --resume continues the run" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal"]
    prove_continued(command)


@pytest.mark.ray
def test_an_interrupted_run_on_ray_prints_no_stack_and_can_be_resumed(command):
    done = command(signal.SIGTERM, "scheduling", "--output", "out", runtime="ray")

    assert done.returncode == STATUS[signal.SIGTERM]
    assert "continues the run" in done.stderr.splitlines()[-1]
    assert [line for line in done.stderr.splitlines() if "@" in line or "Traceback" in line] == []
    prove_continued(command)


def interrupt(signum=signal.SIGTERM):
    signal.raise_signal(signum)


def test_a_signal_raises_in_the_main_thread_and_handlers_are_restored():
    before = [signal.getsignal(each) for each in SIGNALS]

    with pytest.raises(Interrupted) as raised, interruptible():
        interrupt()

    assert raised.value.status == 143
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_cancellable_work_ends_by_itself_first():
    done = []

    def work():
        with interruptible(), cancelling_on_signal(lambda: done.append("cancelled")):
            interrupt(signal.SIGINT)
            done.append("ended")

    with pytest.raises(Interrupted, match="SIGINT"):
        work()

    assert done == ["cancelled", "ended"]


def test_a_second_signal_ends_the_process_immediately(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)

    def work():
        with interruptible(), cancelling_on_signal(lambda: None):
            interrupt()
            interrupt(signal.SIGINT)

    with pytest.raises(Interrupted):
        work()

    assert ended == [130]


def test_an_ignored_signal_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            interrupt(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_nothing_changes():
    before, seen = [signal.getsignal(each) for each in SIGNALS], []

    def look():
        with interruptible(), cancelling_on_signal(lambda: None):
            seen.extend(signal.getsignal(each) for each in SIGNALS)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert seen == before

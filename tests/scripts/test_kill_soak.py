"""The kill soak: its figures are observations, and it kills no processes of others."""

import json
import os
import signal
import subprocess
import sys

import pytest

from roadstead.actors.supervisor.replacing import Budget
from roadstead.journal.records import JournalRecord, RecordKind
from roadstead.report.result import PlacedPod
from roadstead.run import RunOutcome
from tests.builders import pod


@pytest.fixture
def soak(scripts, monkeypatch):
    found = scripts("kill_soak")
    monkeypatch.setattr(found, "NODES", 20)
    monkeypatch.setattr(found, "PODS", 200)
    monkeypatch.setattr(found, "LOOK_S", 0.05)
    monkeypatch.setattr(Budget, "TIMES", Budget.TIMES)
    return found


def test_a_run_with_kills_counts_them_and_ends_without_errors(soak, tmp_path):
    metrics = soak.OneRun(1, tmp_path, 3, inline=True).run()

    assert 1 <= metrics.kills.total() <= 3
    assert (metrics.runs, metrics.lost, metrics.doubled) == (1, 0, 0)
    assert metrics.is_clean
    assert metrics.placed > 0


class Journal:
    """Stands for the journal of a run."""

    def __init__(self, *records):
        self._records = records

    def records(self):
        return iter(self._records)


def bind(lsn, uid):
    return JournalRecord(lsn, RecordKind.BIND, uid, uid, "n1", facts=pod(cpu=10))


def test_double_lost_and_missing_pods_are_counted(soak, monkeypatch, tmp_path):
    monkeypatch.setattr(soak, "Reader", lambda disk: Journal(bind(1, "a"), bind(2, "a")))
    inputs = soak.inputs_of(1)
    metrics = soak.SoakMetrics()

    soak.judge(metrics, tmp_path, inputs, RunOutcome((PlacedPod("b", "b", "n1"),), (), 0.0, {}))

    assert metrics.doubled == 1
    assert metrics.lost == len(inputs.pending) + 1
    assert metrics.violations
    assert not metrics.is_clean


def test_figures_of_runs_are_summed(soak):
    found = soak.SoakMetrics()

    for took_s, why in ((1.0, []), (3.0, ["it ended"])):
        found.add(soak.SoakMetrics({"queue": 2}, 1, 10, 0, 0, {"I1": 1, "I2": 2}, [took_s], why, 9))

    report = found.report()
    assert (report["kills"], report["runs"], report["placed"]) == (4, 2, 20)
    assert (report["overfilled"], report["other_violations"]) == (2, {"I2": 4})
    assert (report["recovery_p50_s"], report["recovery_max_s"]) == (2.0, 3.0)
    assert (report["runs_that_ended_early"], report["why"]) == (1, ["it ended"])
    assert report["driver_rss_max_mib"] == 9


def test_a_run_whose_process_ends_without_output_is_reported_as_ended(soak, monkeypatch):
    monkeypatch.setattr(soak, "__file__", os.devnull)

    found = soak.in_a_process(7, 1, inline=True)

    assert found.why == ["run 7: its process ended with 0: IndexError"]


def test_a_run_that_hangs_is_ended_before_its_journal_is_read(soak, monkeypatch, tmp_path):
    hanging = tmp_path / "hanging.py"
    hanging.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(soak, "__file__", str(hanging))
    monkeypatch.setattr(soak, "RUN_S", 0.0)
    started, states = [], []
    popen = subprocess.Popen

    def start(*args, **options):
        started.append(popen(*args, **options))
        return started[-1]

    monkeypatch.setattr(soak.subprocess, "Popen", start)
    monkeypatch.setattr(soak, "judge", lambda *_: states.append(started[0].poll()))

    found = soak.in_a_process(7, 1, inline=True)

    assert states == [-signal.SIGKILL]
    assert found.why == ["run 7: its process ended with None: TimeoutExpired"]


def test_only_children_of_the_own_raylet_count_as_actors(soak, monkeypatch):
    sleeps = "import time; print(flush=True); time.sleep(60)  # ray::"
    ours, plain = (
        subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        for text in (sleeps, sleeps[:-6])
    )

    class Raylet:
        pid = os.getpid()

    try:
        for each in (ours, plain):
            # Before the first output, its command line may still be that of this process.
            assert each.stdout.readline()
        monkeypatch.setattr(soak, "servers", lambda: {"raylet": Raylet})
        assert soak.actors_among([ours.pid, plain.pid, os.getpid()]) == {ours.pid}
        Raylet.pid = 1
        assert soak.actors_among([ours.pid, plain.pid]) == set()
    finally:
        for each in (ours, plain):
            each.kill()
            each.communicate()


def test_the_script_prints_its_figures_as_json(soak, monkeypatch, capsys):
    monkeypatch.setattr(
        soak, "in_a_process", lambda *given, **how: soak.SoakMetrics({"queue": 5}, 1)
    )
    monkeypatch.setattr(sys, "argv", ["kill_soak.py", "--kills", "7", "--inline"])

    assert soak.main() == 0

    printed = json.loads(capsys.readouterr().out)
    assert (printed["kills"], printed["runs"], printed["recovery_p50_s"]) == (10, 2, None)

"""kill -9 of processes on a real Ray: the run continues, and its journal is correct."""

import os
import signal

import pytest

from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.run import RunPlan
from tests.actors.test_replacing import prove
from tests.actors.world import inputs_of

pytestmark = pytest.mark.ray


def test_killing_each_process_once_loses_doubles_and_overfills_nothing(monkeypatch, tmp_path):
    opened, killed = [], []
    waiting = ["scheduler-0", "worker-1", "binder", "queue", "cache"]

    def opening(plan):
        opened.append(open_runtime(plan))
        return opened[0]

    def on_progress(progress):
        if waiting and progress.placed >= 4 * (len(killed) + 1):
            killed.append(waiting.pop(0))
            os.kill(opened[0].pids[killed[-1]], signal.SIGKILL)

    monkeypatch.setattr(launch, "open_runtime", opening)
    trace = generate_fleet(20, 300, 1)
    settings = Settings(workers=2, schedulers=2, batch=2, control="apart", journal=tmp_path)

    outcome = ActorLauncher().run(
        inputs_of(trace.nodes(), trace.pods()), RunPlan(settings), on_progress
    )

    assert len(killed) >= 3, "enough processes were killed, one after the other"
    prove(outcome, tmp_path)

"""Faults of a real system on Ray: a stopped process, a full disk, calls that Ray loses."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.config.settings import ActorDeadlines, Settings
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.run import RunPlan
from tests.actors.test_replacing import fleet, prove

pytestmark = pytest.mark.ray
ROOT = Path(__file__).resolve().parents[2]


class Run:
    """A run on Ray, with processes that a test can access."""

    def __init__(self, monkeypatch, **settings):
        self.settings = Settings(batch=2, workers=2, control="apart", **settings)
        self.opened = []
        monkeypatch.setattr(launch, "open_runtime", self.open)

    def open(self, plan):
        self.opened.append(open_runtime(plan))
        return self.opened[0]

    def pid(self, name):
        return self.opened[0].pids[name]

    def go(self, on_progress, inputs=None):
        return ActorLauncher().run(inputs or fleet(), RunPlan(self.settings), on_progress)


def test_a_worker_that_is_stopped_for_a_while_is_skipped_and_kept(monkeypatch, tmp_path):
    run = Run(monkeypatch, journal=tmp_path, deadlines=ActorDeadlines(evaluate_s=0.5))
    stopped, since = [], []

    def on_progress(progress):
        if not stopped and progress.placed >= 10:
            stopped.append(run.pid("worker-1"))
            os.kill(stopped[0], signal.SIGSTOP)
            since.append(progress.placed)
        # Other pods are placed meanwhile; then the process continues.
        elif len(since) == 1 and progress.placed > since[0]:
            since.append(progress.placed)
            os.kill(stopped[0], signal.SIGCONT)

    outcome = run.go(on_progress)

    assert len(since) == 2
    assert run.pid("worker-1") == stopped[0]
    prove(outcome, tmp_path)


def test_a_full_disk_ends_the_run_and_loses_no_acknowledged_bind(monkeypatch, tmp_path):
    run = Run(monkeypatch, journal=tmp_path)
    placed = []

    def on_progress(progress):
        if not placed and progress.phase == "scheduling":
            room = max(file.stat().st_size for file in tmp_path.glob("*.segment")) + 1_000
            resource.prlimit(run.pid("binder"), resource.RLIMIT_FSIZE, (room, room))
        if progress.phase == "scheduling":
            placed.append(progress.placed)

    with pytest.raises(RunFailedError) as failure:
        run.go(on_progress)

    assert "binder cannot continue: journal" in str(failure.value)
    assert "File too large" in str(failure.value)
    assert "are durable" in str(failure.value)
    records = list(Reader(RealDisk(tmp_path)).records())
    assert check(records).violations == []
    assert sum(each.kind is RecordKind.BIND for each in records) >= max(placed)


WITH_FAILURES = """
import sys
from pathlib import Path
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import ActorDeadlines, Settings
from roadstead.run import RunPlan
from tests.actors.test_replacing import fleet, prove

folder = Path(sys.argv[1])
deadlines = ActorDeadlines(call_s=5.0)
settings = Settings(batch=16, schedulers=2, journal=folder, deadlines=deadlines)
prove(ActorLauncher().run(fleet(), RunPlan(settings), lambda progress: None), folder)
print("proved")
"""


def test_calls_lost_by_ray_lose_no_pod(tmp_path):
    push = {"num_failures": 6, "req_failure_prob": 10, "resp_failure_prob": 10}
    environment = {
        **os.environ,
        "RAY_testing_rpc_failure": json.dumps({"CoreWorkerService.grpc_client.PushTask": push}),
        "RAY_testing_rpc_failure_avoid_intra_node_failures": "0",
        "PYTHONPATH": str(ROOT),
    }

    ended = subprocess.run(
        [sys.executable, "-c", WITH_FAILURES, str(tmp_path / "journal")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert ended.stdout.strip().endswith("proved"), ended.stderr[-2000:]

"""Ray itself is lost in the middle of a run: it ends in our words, and --resume goes on with it."""

import json
import subprocess
import sys
import time

import pytest

from roadstead.journal import RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from tests.actors.test_ray_faults import ROOT

pytestmark = pytest.mark.ray

GONE_S = 20.0

RUN = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from roadstead.actors import launch
from roadstead.actors.launch import ActorLauncher, open_runtime
from roadstead.actors.ray_node import servers
from roadstead.actors.supervisor import RunFailedError
from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.actors.test_replacing import fleet, prove

folder, victim = Path(sys.argv[1]), sys.argv[2]
pids, placed, opened = [], [0], []

def opening(plan):
    opened.append(open_runtime(plan))
    return opened[0]

def on_progress(progress):
    placed.append(progress.placed)
    if victim and not pids and progress.placed >= 30:
        pids.extend([*opened[0].pids.values(), *(each.pid for each in servers().values())])
        servers()[victim].kill()

launch.open_runtime = opening
settings = Settings(batch=2, shards=2, schedulers=2, control="apart", journal=folder)
plan = replace(RunPlan(settings), resume=not victim)
try:
    prove(ActorLauncher().run(fleet(), plan, on_progress), folder)
    told = "proved"
except RunFailedError as failure:
    told = str(failure)
print(json.dumps([told, max(placed), pids]))
"""


def run(folder, victim=""):
    """What a run told, how many were placed to its knowledge, and what Ray had for processes."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), victim],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout.splitlines()[-1])


def ray_processes(pids):
    """Those of the processes that are there and Ray's."""
    command = ["ps", "-o", "args=", "-p", ",".join(map(str, pids))]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line for line in told.splitlines() if "ray" in line]


def until_gone(pids):
    until_s = time.monotonic() + GONE_S
    while (left := ray_processes(pids)) and time.monotonic() < until_s:
        time.sleep(0.1)
    return left


@pytest.mark.parametrize("victim", ["gcs_server", "raylet"])
def test_a_run_whose_ray_is_lost_ends_and_is_gone_on_with(tmp_path, victim):
    told, placed, pids = run(tmp_path, victim)

    assert told.startswith(f"Ray's {victim} (process ")
    assert told.endswith(
        "ended: killed by signal 9. The run ends here; what the binder acknowledged is in "
        f"{tmp_path}, and --resume goes on with it."
    )
    assert until_gone(pids) == []
    bound = sum(each.kind is RecordKind.BIND for each in Reader(RealDisk(tmp_path)).records())
    assert 30 <= placed <= bound < 300

    told, placed, _ = run(tmp_path)

    assert told == "proved"
    assert placed > bound

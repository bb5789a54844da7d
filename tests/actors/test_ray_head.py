"""Output and exit of a run whose Ray, Ray node or own process is lost in the middle."""

import json
import subprocess
import sys

import pytest

from roadstead.journal import RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from tests.actors.test_ray_faults import ROOT
from tests.waiting import until

pytestmark = pytest.mark.ray

GONE_S = 20.0
PODS = 300

RUN = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.actors.runtime.ray_node import servers
from roadstead.actors.interface import RunFailedError
from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.actors.test_replacing import fleet, prove
# Ray brings it along.
from ray._private.services import psutil

folder, victim, runtime = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
pids, opened = [], []

def opening(plan):
    opened.append(open_runtime(plan))
    return opened[0]

def on_progress(progress):
    if victim and not pids and progress.placed >= 30:
        ray = {name: each.pid for name, each in servers().items()}
        pids.extend(each.pid for each in psutil.Process().children(recursive=True))
        assert {*pids} >= {*opened[0].pids.values(), *ray.values()}
        print(json.dumps([progress.placed, pids]), flush=True)
        os.kill({**ray, "driver": os.getpid()}[victim], 9)

launch.open_runtime = opening
apart = {"workers": 2, "schedulers": 2, "control": "apart"}
settings = Settings(runtime=runtime, batch=2, journal=folder, **apart)
plan = replace(RunPlan(settings), resume=not victim)
try:
    prove(ActorLauncher().run(fleet(), plan, on_progress), folder)
    print("proved")
except RunFailedError as failure:
    print(failure)
"""

LOSES_A_NODE = """
import json, subprocess, sys
from pathlib import Path
from ray.cluster_utils import Cluster
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.actors.runtime.ray_session import RaySession
from roadstead.config.ray import RayOptions
from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.actors.test_replacing import fleet, prove

folder = Path(sys.argv[1])
like = {"num_cpus": 4, "object_store_memory": 80 << 20}
looks = {
    # Otherwise Ray runs the actors at niceness 15, and on a busy machine each takes minutes.
    "worker_niceness": 0,
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
}
lean = {"no_monitor": True, "include_log_monitor": False, "_system_config": looks}
cluster = Cluster(initialize_head=True, head_node_args={**like, **lean})
other = cluster.add_node(**like)
# An actor that is to be on a node which nobody knows of yet is put on another one.
cluster.wait_for_nodes()
opened, lost = [], []
joined = RayOptions(address=cluster.address, cpus_per_process=0)

def opening(plan):
    opened.append(RayRuntime(processes=7, limits=plan.limits, options=joined))
    return opened[0]

def on_the_other():
    raylet = str(other.all_processes["raylet"][0].process.pid)
    listed = subprocess.run(["/bin/ps", "-eo", "pid=,ppid="], capture_output=True, text=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    there = {int(pid) for pid, parent in rows if parent == raylet}
    return [name for name, pid in opened[0].pids.items() if pid in there]

def on_progress(progress):
    # Early: two schedulers of which one is lost may be done before that is noticed.
    if not lost and progress.placed >= 4:
        lost.extend(on_the_other())
        assert lost, f"Ray has put all actors on one node: {opened[0].pids}"
        cluster.remove_node(other, allow_graceful=False)

launch.open_runtime = opening
settings = Settings(batch=1, workers=2, schedulers=2, control="apart", journal=folder)
outcome = ActorLauncher().run(fleet(), RunPlan(settings), on_progress)
prove(outcome, folder)
replaced = [name for name in outcome.timings_s if name.startswith("replace ")]
print(json.dumps([lost, replaced]))
RaySession.await_end(60)
cluster.shutdown()
"""


def run(script, *arguments, ends_with=0):
    """Run a script in a new process; return the lines of its output."""
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == ends_with, ended.stderr[-2000:]
    return ended.stdout.splitlines()


def left_of(pids):
    """Return Ray's processes among these pids that are still alive after a while."""
    command = ["/bin/ps", "-o", "args=", "-p", ",".join(map(str, pids))]
    left = []

    def have_ended():
        listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        left[:] = [line for line in listing.splitlines() if "ray" in line]
        return not left

    until(have_ended, GONE_S)
    return left


def binds_in(folder):
    records = Reader(RealDisk(folder)).records()
    return sum(each.kind is RecordKind.BIND for each in records)


def gone_on_with(folder, placed, pids, runtime):
    """Resume a run; return its last line. Before that, assert that no process of Ray is left, and
    that the journal has every acknowledged bind."""
    assert left_of(pids) == []
    assert 30 <= placed <= binds_in(folder) < PODS
    return run(RUN, folder, "", runtime)[-1]


@pytest.mark.parametrize(("victim", "then"), [("gcs_server", "ray"), ("raylet", "inline")])
def test_a_run_that_loses_ray_ends_with_a_clear_message_and_can_be_resumed(tmp_path, victim, then):
    first, *lines = run(RUN, tmp_path, victim, "ray")

    assert lines[-1].startswith(f"Ray's {victim} (process ")
    assert lines[-1].endswith(
        "ended: killed by signal 9. The run ends here; what the binder acknowledged is in "
        f"{tmp_path}, and --resume continues the run."
    )
    assert gone_on_with(tmp_path, *json.loads(first), then) == "proved"


def test_a_killed_run_ends_its_ray_and_can_be_resumed(tmp_path):
    (first,) = run(RUN, tmp_path, "driver", "ray", ends_with=-9)

    assert gone_on_with(tmp_path, *json.loads(first), "inline") == "proved"


def named_in(phase):
    return phase.removeprefix("replace ").split(", ")


def test_actors_on_a_lost_ray_node_are_replaced_on_another(tmp_path):
    lost, replaced = json.loads(run(LOSES_A_NODE, tmp_path)[-1])

    # The processes of a lost node end one by one: the first replacement may come before the last.
    assert {name for each in replaced for name in named_in(each)} >= {*lost} != set()

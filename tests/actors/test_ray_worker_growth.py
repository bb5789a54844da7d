"""A node that joins the Ray cluster during a run gets further workers, and the run continues."""

import json
import subprocess
import sys

import pytest

from tests.actors.test_ray_faults import ROOT

pytestmark = pytest.mark.ray

TIMEOUT_S = 240

GROWS = """
import json
from dataclasses import replace
from ray.cluster_utils import Cluster
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.actors.supervisor import worker_growth
from roadstead.config.ray import RayOptions
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.run import RunPlan
from tests.actors.world import inputs_of, placed

worker_growth.POLL_S = 0.5
# Otherwise Ray runs the actors at niceness 15, and on a busy machine each takes minutes.
system = {"worker_niceness": 0}
size = {"num_cpus": 2, "object_store_memory": 80 << 20}
lean = {"no_monitor": True, "include_log_monitor": False, "_system_config": system}
cluster = Cluster(initialize_head=True, head_node_args={**size, **lean})
trace = generate_fleet(300, 420, 1)
inputs = inputs_of(trace.nodes(), trace.pods())
# Batches with pauses, some 40 s: the run lasts until the new processes answer (10 s, if idle).
slow = {"batch": {"job_s": 0.08, "task_s": 0.0}, "service": {"job_s": 0.08, "task_s": 0.0}}
settings = Settings(batch=4, seed=3, decision_time=slow)
opened, joined, notes = [], [], []

def opening(plan):
    options = RayOptions(address=cluster.address)
    opened.append(RayRuntime(processes=2, limits=plan.limits, options=options))
    return opened[0]

def on_progress(progress):
    if progress.note:
        notes.append(progress.note)
    if progress.placed and not joined:
        joined.append(cluster.add_node(num_cpus=3, object_store_memory=80 << 20))

open_runtime, launch.open_runtime = launch.open_runtime, opening
grown = ActorLauncher().run(inputs, replace(RunPlan(settings), workers_max=9), on_progress)
launch.open_runtime = open_runtime
inline = RunPlan(Settings(runtime="inline", batch=4, seed=3))
alone = ActorLauncher().run(inputs, inline, lambda progress: None)
same = placed(grown) == placed(alone)
print(json.dumps([sorted(opened[0].pids), same, len(placed(alone)), notes]))
cluster.shutdown()
"""


def test_a_node_that_joins_gets_workers():
    ended = subprocess.run(
        [sys.executable, "-c", GROWS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    processes, is_same, pods, notes = json.loads(ended.stdout.splitlines()[-1])
    assert processes == ["control", "scheduler-0", "worker-0", "worker-1", "worker-2"]
    assert is_same, "more workers change no decision"
    assert pods > 300
    assert "worker-2 on " in notes[-1]

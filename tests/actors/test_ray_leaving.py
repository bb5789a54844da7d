"""Ray is left while other threads release its objects, or because its servers ended."""

import asyncio
import subprocess
import sys

import pytest
from ray._private import worker

from roadstead.actors.runtime import ray_session
from roadstead.actors.runtime.ray_node import ignore_dropped_references
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.protocol.plain_data import DecodeLimits
from tests.actors.test_ray_faults import ROOT
from tests.actors.world import ray_left

LETS_GO = """
import asyncio, threading
import ray
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.protocol.codec import DecodeLimits

runtime = RayRuntime(processes=1, limits=DecodeLimits(max_bytes=1_000_000))
kept = [ray.put(each) for each in range(2_000)]
asyncio.run(runtime.stop())
(thread,) = (each for each in threading.enumerate() if each.name == "ray-session")
while thread.is_alive() and kept:
    kept.pop()
    thread.join(0.001)
thread.join()
print("alive")
"""


@pytest.mark.ray
def test_releasing_objects_while_ray_is_left_does_not_end_the_process():
    ended = subprocess.run(
        [sys.executable, "-c", LETS_GO],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.stdout.startswith("alive"), ended.stderr[-2000:]
    assert ended.returncode == 0


class Core:
    """Stands for Ray's core worker."""

    def __init__(self):
        self.heard = []

    def remove_object_ref_reference(self, who):
        self.heard.append(who)

    def shutdown_driver(self):
        return "ended"


def test_after_leaving_ray_object_refs_are_not_released_but_other_calls_pass(monkeypatch):
    core = Core()
    monkeypatch.setattr(worker.global_worker, "core_worker", core, raising=False)

    ignore_dropped_references()

    leaving = worker.global_worker.core_worker
    leaving.remove_object_ref_reference("an object")
    assert core.heard == []
    assert leaving.shutdown_driver() == "ended"


def test_without_ray_no_object_needs_a_release(monkeypatch):
    monkeypatch.delattr(worker.global_worker, "core_worker", raising=False)

    ignore_dropped_references()

    assert not hasattr(worker.global_worker, "core_worker")


class Ended:
    """Stands for a process that ended."""

    def __init__(self, status):
        self.pid = 7
        self.status = status

    def poll(self):
        return self.status


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        ((None, None), ""),
        ((None, -9), "Ray's raylet (process 7) ended: killed by signal 9"),
        ((3, -9), "Ray's gcs_server (process 7) ended: exit status 3"),
    ],
)
def test_a_ray_started_by_this_process_reports_which_server_ended(monkeypatch, statuses, message):
    servers = dict(zip(("gcs_server", "raylet"), map(Ended, statuses), strict=True))
    forced = []
    ray_left()
    monkeypatch.setattr(ray_session, "servers", lambda: servers)
    monkeypatch.setattr(ray_session, "end_by_force", lambda: forced.append(True))
    monkeypatch.setattr(ray_session, "ignore_dropped_references", lambda: None)
    monkeypatch.setattr(ray_session.ray, "init", lambda **options: None)
    monkeypatch.setattr(ray_session.ray, "shutdown", lambda: None)

    runtime = RayRuntime(processes=1, limits=DecodeLimits(max_bytes=1_000_000))

    assert runtime.lost() == message
    asyncio.run(runtime.stop())
    ray_left()
    assert forced == [True] * bool(message)

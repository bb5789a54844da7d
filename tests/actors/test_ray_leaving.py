"""Ray is left while others let go of what they had of it."""

import subprocess
import sys

import pytest
from ray._private import worker

from roadstead.actors.ray_node import let_go
from tests.actors.test_ray_faults import ROOT

LETS_GO = """
import time
import ray
from roadstead.actors.ray_runtime import RayRuntime, RaySession
from roadstead.protocol.codec import Limits

runtime = RayRuntime(processes=1, limits=Limits(max_bytes=1_000_000))
kept = [ray.put(each) for each in range(100)]
runtime._ray.leave()
while RaySession._last.is_alive():
    kept.append(kept.pop(0)) if len(kept) < 2 else kept.pop()
    RaySession._last.join(0.02)
print("alive, with", len(kept))
"""


@pytest.mark.ray
def test_letting_go_of_objects_while_ray_is_left_does_not_end_the_process():
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


def test_who_lets_go_of_ray_is_no_longer_heard_and_all_else_is(monkeypatch):
    core = Core()
    monkeypatch.setattr(worker.global_worker, "core_worker", core, raising=False)

    let_go()

    leaving = worker.global_worker.core_worker
    leaving.remove_object_ref_reference("an object")
    assert core.heard == []
    assert leaving.shutdown_driver() == "ended"


def test_without_a_ray_there_is_nobody_to_let_go_of(monkeypatch):
    monkeypatch.delattr(worker.global_worker, "core_worker", raising=False)

    let_go()

    assert not hasattr(worker.global_worker, "core_worker")

import os
import subprocess

import pytest
import ray

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.run import RunPlan
from tests.actors.world import GENEROUS_S, inputs_of, plan_of, ray_left
from tests.waiting import until

pytestmark = pytest.mark.ray


def descendants():
    """Return the direct and indirect child processes of this process."""
    with subprocess.Popen(["ps", "-axo", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
        parent_of = dict(map(bytes.split, ps.stdout.read().splitlines()))
    parent_of.pop(b"%d" % ps.pid, None)
    found, before = {b"%d" % os.getpid()}, set()
    while found != before:
        before = set(found)
        found |= {pid for pid, parent in parent_of.items() if parent in found}
    return found


def test_a_run_on_ray_places_like_an_inline_run_and_leaves_no_process_behind(tmp_path):
    ray_left()
    before = descendants()
    trace = generate_fleet(20, 200, 1)
    inputs = inputs_of(trace.nodes(), trace.pods())
    plan = RunPlan(Settings(runtime="ray", workers=2, batch=32), log_dir=str(tmp_path))
    seen = []

    launcher = ActorLauncher()
    launcher.prepare(plan.settings, plan.log_dir)
    outcome = launcher.run(inputs, plan, lambda progress: seen.append(len(descendants())))

    inline = ActorLauncher().run(inputs, plan_of(workers=3, batch=7), lambda progress: None)
    by_pod = sorted(outcome.placements, key=lambda each: each.pod)
    assert by_pod == sorted(inline.placements, key=lambda each: each.pod)
    assert {each.pod: each.message for each in outcome.pending} == {
        each.pod: each.message for each in inline.pending
    }
    logs = ("driver", "control", "worker-0", "worker-1", "scheduler-0")
    assert {f"{name}.jsonl" for name in logs} == {path.name for path in tmp_path.iterdir()}
    assert max(seen) > len(before) + 4
    ray_left()
    assert not ray.is_initialized()
    assert until(lambda: descendants() <= before, GENEROUS_S), descendants() - before


def test_a_second_run_of_a_process_starts_a_ray_of_its_own_after_the_first():
    trace = generate_fleet(20, 100, 1)
    inputs = inputs_of(trace.nodes(), trace.pods())
    plan = RunPlan(Settings(runtime="ray"))
    notes = []

    outcomes = [ActorLauncher().run(inputs, plan, lambda p: notes.append(p.note)) for _ in range(2)]

    assert outcomes[0].placements == outcomes[1].placements
    assert not any(note.startswith("Ray at") for note in notes), "a run joined the other's Ray"
    ray_left()

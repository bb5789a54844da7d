"""Gangs in whole runs: each gang is placed completely, or none of its pods is."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.facts.pod_groups import PodGroup
from roadstead.run import RunInputs, RunPlan
from tests.actors.world import ray_left
from tests.builders import node, pod

GANG_PLUGIN = {"name": "Coscheduling"}
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [GANG_PLUGIN],
                    "disabled": [{"name": "PrioritySort"}],
                }
            },
            "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 1}}],
        }
    ],
}


def plan(runtime="inline", groups=(), **settings):
    return RunPlan(
        Settings(runtime=runtime, **settings),
        json.dumps(CONFIG),
        "gangs.yaml",
        ClusterFacts(pod_groups=groups),
    )


def gang(name, count, least, cpu=1000, **facts):
    """Return (identity, facts) of `count` pods of a gang."""
    wanted = pod(cpu=cpu, pod_group=GroupMembership(name, least), **facts)
    return [
        (PodIdentity(f"{name}-{number}", "default", f"{name}-{number}"), wanted)
        for number in range(count)
    ]


def run(run_plan, *gangs, nodes=4, running=()):
    """Return (placed members by gang, messages of the pending pods by name)."""
    inputs = RunInputs(
        tuple(node(f"n{number}", cpu=4000) for number in range(nodes)),
        running,
        tuple(each for pods in gangs for each in pods),
    )
    outcome = ActorLauncher().run(inputs, run_plan, lambda progress: None)
    placed = Counter(each.pod.partition("/")[2].partition("-")[0] for each in outcome.placements)
    return placed, {each.pod.partition("/")[2]: each.message for each in outcome.pending}


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_a_fitting_gang_is_placed_completely_and_others_leave_their_resources(batch):
    placed, pending = run(
        plan(batch=batch, workers=2),
        gang("big", 5, 5, cpu=4000),
        gang("a", 6, 6),
        gang("b", 4, 4, cpu=2000),
    )

    assert placed == {"a": 6, "b": 4}
    assert len(pending) == 5
    assert any("big" in message and "does not fit" in message for message in pending.values())


def test_two_gangs_that_do_not_fit_stop_waking_each_other():
    placed, pending = run(
        plan(batch=64), gang("x", 5, 5, cpu=4000), gang("y", 6, 6, cpu=4000), gang("z", 1, 1)
    )

    assert placed == {"z": 1}
    assert len(pending) == 11


def test_all_gangs_are_placed_if_the_cluster_is_large_enough():
    placed, pending = run(plan(batch=3), gang("a", 3, 3), gang("b", 4, 4), gang("c", 5, 2))

    assert placed == {"a": 3, "b": 4, "c": 5}
    assert pending == {}


def test_a_gang_with_too_few_pods_is_not_tried():
    placed, pending = run(plan(), gang("a", 2, 3), gang("b", 2, 2))

    assert placed == {"b": 2}
    assert set(pending.values()) == {
        'waiting for pod group "default/a": 2 of 3 pods exist',
    }


def test_a_gate_opens_when_the_last_member_is_submitted(monkeypatch):
    monkeypatch.setattr(client, "PODS_PER_MESSAGE", 2)

    placed, pending = run(plan(), gang("a", 5, 5))

    assert placed == {"a": 5}
    assert pending == {}


def test_a_late_member_joins_members_bound_before_the_run_was_resumed(tmp_path, monkeypatch):
    # The late member is not among the inputs with which the journal begins.
    monkeypatch.setattr("roadstead.actors.runs.journals.digest_of", lambda plan, inputs: "any")
    members = gang("a", 4, 3)
    first = plan(groups=(PodGroup("default", "a", 3),), journal=tmp_path)
    assert run(first, members[:3]) == ({"a": 3}, {})
    (tmp_path / "outcome").unlink()

    placed, pending = run(replace(first, resume=True), members)

    assert placed == {"a": 4}
    assert pending == {}


def test_running_members_complete_a_gang():
    running = [(identity, facts, "n0") for identity, facts in gang("r", 2, 3)]
    group = PodGroup("default", "a", 3, running=2)

    placed, pending = run(plan(groups=(group,)), gang("a", 1, 3), running=tuple(running))

    assert placed == {"a": 1}
    assert pending == {}


def test_a_gang_without_a_size_is_pending_with_the_missing_field():
    placed, pending = run(plan(), gang("a", 2, None))

    assert placed == {}
    assert all("says how many pods it needs" in message for message in pending.values())


@pytest.mark.ray
def test_on_ray_gangs_are_placed_completely_or_not_at_all():
    ray_left()

    placed, pending = run(
        plan("ray", workers=2, batch=4), gang("a", 3, 3), gang("big", 5, 5, cpu=4000)
    )
    ray_left()

    assert placed == {"a": 3}
    assert len(pending) == 5

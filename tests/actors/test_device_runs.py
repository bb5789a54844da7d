"""Whole runs of pods with claims of devices: several schedulers, gangs and preemption."""

import json
from collections import Counter

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.facts.pod import GroupMembership
from roadstead.run import RunPlan
from tests.actors.test_gang_runs import CONFIG
from tests.actors.world import identity, inputs_of, placed
from tests.builders import node
from tests.devices.fleet import claim, cluster, owned, slice_of, using, with_template

NODES = [node(f"n{number}", cpu=4000, pods=20) for number in range(4)]
SLICES = [slice_of(each.name, "d0", "d1") for each in NODES]


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def claiming(name, **facts):
    """Return a pod with a claim from a template, and the claim."""
    who = identity(name)
    wanted = with_template(who.uid, f"c-{name}", **facts)
    return (who, wanted), owned(f"c-{name}", who.uid)


def run(pods, claims, *, nodes=NODES, running=(), config="", **settings):
    slices = [each for each in SLICES if each.name in {one.name for one in nodes}]
    plan = RunPlan(
        Settings(runtime="inline", **settings),
        config,
        "test.yaml",
        cluster(*claims, slices=slices),
    )
    return ActorLauncher().run(inputs_of(nodes, pods, running), plan, lambda progress: None)


def devices(outcome):
    """Return how many claims have each device."""
    return Counter((each.pool, each.device) for each in outcome.devices)


@pytest.mark.parametrize("settings", [{"workers": 2}, {"mode": "partitioned", "partitions": 4}])
def test_several_schedulers_give_no_device_twice_and_leave_none(settings):
    pods, claims = zip(*(claiming(f"p{n}", cpu=10) for n in range(12)), strict=True)

    outcome = run(pods, claims, schedulers=3, batch=2, **settings)

    assert len(placed(outcome)) == 8
    assert devices(outcome) == dict.fromkeys(
        ((f"n{n}", f"d{d}") for n in range(4) for d in (0, 1)), 1
    )


def test_several_schedulers_share_a_claim_on_one_node():
    pods = [(identity(f"p{n}"), using(f"uid-p{n}", "shared", cpu=10)) for n in range(6)]

    outcome = run(pods, [claim("shared")], schedulers=3, batch=2)

    assert len(placed(outcome)) == 6
    assert len(set(placed(outcome).values())) == 1
    (shared,) = outcome.devices
    assert len(shared.pods) == 6


def test_a_gang_gets_all_its_devices_or_none():
    members = {"a": 5, "b": 4}
    made = [
        claiming(f"{gang}-{n}", cpu=10, pod_group=GroupMembership(gang, least))
        for gang, least in members.items()
        for n in range(least)
    ]
    pods, claims = zip(*made, strict=True)

    outcome = run(pods, claims, nodes=NODES[:3], config=json.dumps(CONFIG))

    gangs = Counter(each.partition("/")[2].partition("-")[0] for each in placed(outcome))
    assert set(gangs.items()) < set(members.items())
    assert sum(devices(outcome).values()) == sum(gangs.values())


def test_a_victims_claim_ends_with_it():
    victim, its = claiming("victim", cpu=4000)
    urgent, own = claiming("urgent", cpu=4000, priority=100)

    outcome = run([victim], [its, own], nodes=NODES[:1])
    assert placed(outcome) == {"default/victim": "n0"}
    outcome = run([urgent], [its, own], nodes=NODES[:1], running=[(*victim, "n0")])

    assert placed(outcome) == {"default/urgent": "n0"}
    assert [each.claim for each in outcome.devices] == ["default/c-urgent"]

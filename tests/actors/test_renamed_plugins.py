"""A user's plugin for gangs, claims or preemption is treated like the in-tree one."""

from collections import Counter
from dataclasses import replace

import pytest

from roadstead.actors.messages import LeaseReport, LeaseRequest
from roadstead.actors.queue.actor import QueueActor
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.attempts.commands import Nominate, Nomination, RequeuePods
from roadstead.cache.answers import CacheAnswer
from roadstead.cache.volumes import NOTHING_RESERVED, CacheVolumes
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership
from roadstead.framework.victims import Victim
from roadstead.queue.reports import ReturnedPod
from roadstead.scheduler.preempting import evict_and_nominate
from tests.actors.world import NOBODY, batch_of, identity, inputs_of, placed, plan_of
from tests.attempts.core_world import WAIT, World
from tests.builders import node, pod
from tests.renamed_plugins import MyGangs, MyVolumes, config_with, renamed
from tests.storage.world import claim, random_fleet, storage, using, volume, waiting

GANGS = config_with(MyGangs, without=["PrioritySort"])
VOLUMES = config_with(MyVolumes, without=["VolumeBinding"])


def plan_with(kind, config, **settings):
    return replace(plan_of(config=config, **settings), plugins=renamed(kind))


def placements(inputs, plan):
    return placed(ActorLauncher().run(inputs, plan, lambda progress: None))


def volumes_of(plan):
    return CacheVolumes(plan.storage_state(), plan.binding_profiles())


def gang(name, count, cpu):
    facts = pod(cpu=cpu, pod_group=GroupMembership(name, count))
    return [(identity(f"{name}-{number}"), facts) for number in range(count)]


def test_gangs_of_a_renamed_plugin_are_placed_completely_or_leave_their_resources():
    pods = [*gang("big", 5, 4000), *gang("a", 6, 1000), *gang("b", 4, 2000)]
    nodes = [node(f"n{number}", cpu=4000) for number in range(4)]

    found = placements(inputs_of(nodes, pods), plan_with(MyGangs, GANGS, batch=4))

    assert Counter(key.partition("/")[2][0] for key in found) == {"a": 6, "b": 4}


async def test_a_failed_member_under_a_renamed_plugin_is_tried_again_with_its_gang():
    queue = QueueActor(plan_with(MyGangs, GANGS), NOBODY)
    facts = pod(cpu=100, pod_group=GroupMembership("g", 3))
    await queue.submit(batch_of("a", "b", "last", facts=facts))
    lease = await queue.lease(LeaseRequest("scheduler-0", 1, 10, 0.0))
    back = tuple(ReturnedPod(f"uid-{name}", "unschedulable", ("MyGangs",)) for name in "ab")
    await queue.report(LeaseReport(lease.lease_id, (), back, ()))

    again = await queue.lease(LeaseRequest("scheduler-0", 1, 10, 0.0, gangs=(("default", "g"),)))

    assert again.pods.names == ("a", "b")


def test_claims_of_a_renamed_plugin_are_bound_when_the_pod_is_assumed():
    facts = storage(waiting("local"), claim("c"), volume("a"))
    plan = replace(plan_with(MyVolumes, VOLUMES), cluster=ClusterFacts(storage=facts))
    without = replace(
        plan_of(config=config_with(without=["VolumeBinding"])), cluster=ClusterFacts(storage=facts)
    )

    (binding,) = volumes_of(plan).assume("p", using("c"), node("n1")).bindings

    assert binding.claim.name == "c"
    assert volumes_of(without).assume("p", using("c"), node("n1")) == NOTHING_RESERVED


def test_pods_with_claims_are_placed_as_with_the_in_tree_plugin():
    nodes, facts, pods = random_fleet(1)
    inputs = inputs_of(nodes, [(identity(name), each) for name, each in pods])
    plan = replace(plan_with(MyVolumes, VOLUMES, batch=8), cluster=ClusterFacts(storage=facts))

    wanted = placements(inputs, replace(plan_of(batch=8), cluster=ClusterFacts(storage=facts)))

    assert placements(inputs, plan) == wanted


def test_a_preempting_plugin_refuses_a_victim_that_waits_at_permit():
    world = World(answers={"A": {"permit": (WAIT, 9.0)}})
    world.lease()
    world.accept(*world.place())
    victims = (Victim("u1", "default/u1", 0),)
    facts = pod(priority=9)
    nomination = Nomination("p", "default/p", facts, "n1", victims, "MyPreemption")

    steps = evict_and_nominate(Nominate((nomination,)), world.core, 0)
    assert next(steps).evicted == ()
    with pytest.raises(StopIteration) as ended:
        steps.send(CacheAnswer((), 1))
    effects, _, _ = ended.value.value

    (requeue,) = (each for each in effects if isinstance(each, RequeuePods))
    assert requeue.items[0].rejected_by == ("MyPreemption",)

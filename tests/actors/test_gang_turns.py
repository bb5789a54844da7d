"""Gangs that failed too often to wake each other are tried one at a time."""

import json

import pytest

from roadstead.actors.messages import LeaseReport, LeaseRequest
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.queue.actor import QueueActor
from roadstead.facts.pod import GroupMembership
from roadstead.queue import scheduling_queue
from roadstead.queue.reports import NodeChange, ReturnedPod
from tests.actors.world import NOBODY, batch_of, plan_of
from tests.builders import node, pod
from tests.simulation.scenarios import GANGS as CONFIG


@pytest.fixture(autouse=True)
def _no_failed_reports(monkeypatch):
    """No gang wakes another one."""
    monkeypatch.setattr(scheduling_queue, "MAX_FAILED_REPORTS", 0)


class Queue:
    def __init__(self):
        self.actor = QueueActor(plan_of(config=json.dumps(CONFIG)), NOBODY)

    async def submit(self, gang, **facts):
        """Submit two pods that need all-or-nothing placement: ga and gb of gang g."""
        facts = pod(cpu=100, pod_group=GroupMembership(gang, 2), **facts)
        await self.actor.submit(batch_of(f"{gang}a", f"{gang}b", facts=facts))

    async def lease(self, max_pods=10):
        return await self.actor.lease(LeaseRequest("scheduler-0", 1, max_pods, 0.0))

    async def names(self):
        return (await self.lease()).pods.names

    async def gives_up(self, lease, *gangs):
        """Report for each gang one pod with a node and one pod without."""
        back = [each for gang in gangs for each in given_up(gang)]
        await self.actor.report(LeaseReport(lease.lease_id, (), tuple(back), ()))

    async def fails_in_turn(self, gang):
        lease = await self.lease()
        assert lease.pods.names == (f"{gang}a", f"{gang}b")
        await self.gives_up(lease, gang)


def given_up(gang):
    yield ReturnedPod(f"uid-{gang}a", "unschedulable", ("Coscheduling",), freed=True)
    yield ReturnedPod(f"uid-{gang}b", "unschedulable", ("NodeResourcesFit",))


async def two_that_gave_up(**of_h):
    queue = Queue()
    await queue.submit("g")
    await queue.submit("h", **of_h)
    await queue.gives_up(await queue.lease(), "g", "h")
    return queue


async def test_each_gang_has_one_turn_and_then_all_wait():
    queue = await two_that_gave_up()

    await queue.fails_in_turn("g")
    await queue.fails_in_turn("h")

    assert await queue.names() == ()


async def test_the_gang_of_the_highest_priority_is_first():
    queue = await two_that_gave_up(priority=10)

    assert await queue.names() == ("ha", "hb")


async def test_no_turn_begins_while_another_gang_is_tried():
    queue = Queue()
    await queue.submit("g")
    await queue.submit("h")
    of_g, of_h = await queue.lease(2), await queue.lease(2)

    await queue.gives_up(of_g, "g")
    assert await queue.names() == ()
    await queue.gives_up(of_h, "h")

    assert await queue.names() == ("ga", "gb")


async def test_a_gang_that_failed_alone_needs_no_turn():
    queue = Queue()
    await queue.submit("g")

    await queue.gives_up(await queue.lease(), "g")

    assert await queue.names() == ()


async def test_other_gangs_have_a_turn_after_one_is_bound():
    queue = await two_that_gave_up()
    lease = await queue.lease()

    await queue.actor.report(LeaseReport(lease.lease_id, lease.pods.uids, (), ()))

    assert await queue.names() == ("ha", "hb")


async def test_a_gang_tried_during_another_ones_turn_has_its_own_turn():
    queue = await two_that_gave_up()
    in_turn = await queue.lease()
    await queue.submit("i")
    beside = await queue.lease()
    assert beside.pods.names == ("ia", "ib")
    await queue.gives_up(in_turn, "g")
    await queue.gives_up(beside, "i")
    await queue.fails_in_turn("h")

    for gang in ("g", "h", "i"):
        await queue.fails_in_turn(gang)

    assert await queue.names() == ()


async def test_a_new_node_gives_turns_again_after_all_gangs_failed():
    queue = await two_that_gave_up()
    await queue.fails_in_turn("g")
    await queue.fails_in_turn("h")
    await queue.actor.observe(ClusterChanges(nodes=(NodeChange(None, node(cpu=4000)),)))
    lease = await queue.lease()
    assert sorted(lease.pods.names) == ["ga", "gb", "ha", "hb"]

    await queue.gives_up(lease, "g", "h")

    await queue.fails_in_turn("g")

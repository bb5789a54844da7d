"""Leases for one profile, leases that are renewed, and the current owner of each partition."""

from roadstead.actors.messages import LeaseRequest, Renew, Renewed
from roadstead.actors.queue import actor as queue_actor
from roadstead.actors.queue.actor import QueueActor
from tests.actors.test_runs import TWO_PROFILES
from tests.actors.world import NOBODY, batch_of, plan_of
from tests.builders import pod


async def test_a_lease_has_the_pods_of_the_schedulers_profile():
    queue = QueueActor(
        plan_of(config=TWO_PROFILES, schedulers={"default-scheduler": 1, "packs": 1}), NOBODY
    )
    await queue.submit(batch_of("a"))
    await queue.submit(batch_of("b", facts=pod(cpu=100, scheduler_name="packs")))

    packs = await queue.lease(LeaseRequest("scheduler-1", 1, 9, 0.0, "packs"))
    others = await queue.lease(LeaseRequest("scheduler-0", 1, 9, 0.0, "default-scheduler"))

    assert (packs.pods.names, packs.waiting) == (("b",), 1)
    assert (others.pods.names, others.waiting) == (("a",), 0)


async def test_a_lease_lasts_while_its_scheduler_renews_it():
    queue = QueueActor(plan_of(), NOBODY)
    await queue.submit(batch_of("a"))
    lease = await queue.lease(LeaseRequest("scheduler-0", 1, 9, 0.0))

    assert await queue.renew(Renew((lease.lease_id, 99))) == Renewed((lease.lease_id,))


async def test_partitions_change_owners_over_time_but_only_if_needed(monkeypatch):
    turning = QueueActor(plan_of(mode="partitioned", partition_refresh_s=2.0), NOBODY)
    resting = QueueActor(plan_of(mode="partitioned"), NOBODY)
    turns = []
    for now_s in (10.0, 11.9, 12.0, 15.0):
        monkeypatch.setattr(queue_actor, "clock_s", lambda now_s=now_s: now_s)
        ask = LeaseRequest("scheduler-0", 1, 9, 0.0)
        turns.append([(await each.lease(ask)).turn for each in (turning, resting)])

    assert turns == [[5, 0], [5, 0], [6, 0], [7, 0]]

"""Gangs in the queue: it leases their pods in one batch, and reports their bound members."""

import json

from roadstead.actors.messages import LeaseReport, LeaseRequest
from roadstead.actors.messages.recovery import EndOwner, OwnerEpoch
from roadstead.actors.queue.actor import QueueActor
from roadstead.facts.pod import GroupMembership
from roadstead.queue import QueueState
from roadstead.queue.reports import ReturnedPod
from tests.actors.world import NOBODY, batch_of, plan_of
from tests.builders import pod
from tests.simulation.scenarios import GANGS as CONFIG

GANG = pod(cpu=100, pod_group=GroupMembership("g", 3))
KEY = ("default", "g")


def queue_of():
    return QueueActor(plan_of(config=json.dumps(CONFIG)), NOBODY)


async def leased(queue, *, max_pods=10, gangs=()):
    return await queue.lease(LeaseRequest("scheduler-0", 1, max_pods, 0.0, gangs=gangs))


async def report(queue, lease, *, done=(), back=()):
    uids = tuple(f"uid-{name}" for name in done)
    await queue.report(LeaseReport(lease.lease_id, uids, tuple(back), ()))


def gave_up(name, plugin="Coscheduling"):
    return ReturnedPod(f"uid-{name}", "unschedulable", (plugin,))


async def test_a_lease_reports_the_number_of_bound_pods_of_its_gangs():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c", facts=GANG))
    first = await leased(queue)
    await report(queue, first, done=("a", "b", "c"))
    await queue.submit(batch_of("late", facts=GANG))
    await queue.submit(batch_of("other"))

    late = await leased(queue)

    assert first.gangs == ((*KEY, 0),)
    assert late.gangs == ((*KEY, 3),)


async def test_a_lease_without_gangs_names_none():
    queue = queue_of()
    await queue.submit(batch_of("a"))

    assert (await leased(queue)).gangs == ()


async def test_members_bound_by_an_ended_scheduler_count_as_bound():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c", facts=GANG))
    await leased(queue)

    end = EndOwner(OwnerEpoch("scheduler-0", 2), ("uid-a", "uid-b", "uid-c"), ("n1", "n2", ""))
    await queue.end_owner(end)
    lease = await queue.lease(LeaseRequest("scheduler-0", 2, 10, 0.0))

    assert lease.pods.names == ("c",)
    assert lease.gangs == ((*KEY, 2),)


async def test_deleted_members_are_no_longer_counted():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c", facts=GANG))
    await report(queue, await leased(queue), done=("a", "b", "c"))

    await queue.remove_deleted(batch_of("a", facts=GANG))
    await queue.submit(batch_of("d", facts=GANG))

    assert (await leased(queue)).gangs == ((*KEY, 2),)


async def test_a_gate_counts_members_that_were_bound_before_the_queue_began():
    queue = queue_of()
    await queue.submit(batch_of("late", facts=GANG))
    assert queue.core.state_of("uid-late") is QueueState.GATED

    await queue.bound_members(batch_of("a", "b", facts=GANG))

    lease = await leased(queue)
    assert lease.pods.names == ("late",)
    assert lease.gangs == ((*KEY, 2),)


async def with_two_that_gave_up(queue):
    """Two of a gang failed at Permit, one fitted nowhere; the lease of the last one is open."""
    await queue.submit(batch_of("a", "b", "large", "last", facts=GANG))
    lease = await leased(queue)
    back = [gave_up("a"), gave_up("b"), gave_up("large", "NodeResourcesFit")]
    await report(queue, lease, back=back)


async def test_a_failed_member_is_tried_again_when_another_one_waits_at_permit():
    queue = queue_of()
    await with_two_that_gave_up(queue)
    assert (await leased(queue)).pods.names == ()

    assert (await leased(queue, gangs=(KEY,))).pods.names == ("a", "b")

    assert queue.core.state_of("uid-large") is QueueState.UNSCHEDULABLE


async def test_a_waiting_pod_of_another_gang_requeues_no_member():
    queue = queue_of()
    await with_two_that_gave_up(queue)

    assert (await leased(queue, gangs=(("default", "other"),))).pods.names == ()


async def test_without_failed_members_no_member_is_requeued():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c", facts=GANG))

    assert (await leased(queue, gangs=(KEY,))).pods.names == ("a", "b", "c")

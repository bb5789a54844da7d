import asyncio
import json

import pytest

from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import LeaseReport, LeaseRequest, PageRequest
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.messages.recovery import (
    BoundBefore,
    EndOwner,
    OwnerEpoch,
    PodNodes,
    Restored,
    Uids,
)
from roadstead.actors.queue import actor as queue_actor
from roadstead.actors.queue.actor import QueueActor
from roadstead.cache.answers import CacheAnswer
from roadstead.config.settings import ActorDeadlines, Bounds
from roadstead.facts.pod import GroupMembership, PodAffinityTerm
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import QueueState
from roadstead.queue.pods import PodEntry
from roadstead.queue.reports import NodeChange, PendingReason, ReturnedPod
from roadstead.queue.retries import MAX_CONFLICTS, MAX_FAILURES, Retries
from roadstead.queue.scheduling_queue import MAX_FAILED_REPORTS
from tests.actors.world import GENEROUS_S, NOBODY, Fake, Fakes, batch_of, plan_of, turns
from tests.builders import node, pod
from tests.simulation.scenarios import GANGS

LONG_S = 1000.0
LACKS_ROOM = ReturnedPod("uid-a", "unschedulable", ("NodeResourcesFit",))
ALL = PageRequest(0, 100)


class Clock:
    """The clock of this module's queues; its time is constant between two steps."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(queue_actor, "clock_s", found)
    return found


def queue_of(**settings):
    return QueueActor(plan_of(**settings), NOBODY)


async def leased(queue, *, max_pods=10, wait_s=0.0, owner="scheduler-0", epoch=1):
    return await queue.lease(LeaseRequest(owner, epoch, max_pods, wait_s))


async def names(queue, **ask):
    return (await leased(queue, **ask)).pods.names


def report_of(lease_id, *, done=(), back=(), notes=()):
    done = tuple(f"uid-{name}" for name in done)
    return LeaseReport(lease_id, done, tuple(back), tuple(notes))


def back(name, reason="unschedulable", *rejected_by):
    return ReturnedPod(f"uid-{name}", reason, rejected_by)


def note_on(name, message="0/1 nodes are available: 1 Insufficient cpu."):
    return PendingReason(f"uid-{name}", f"default/{name}", message, (), ("NodeResourcesFit",))


async def pending_messages(queue):
    """Return name → reason of the pending pods."""
    page = await queue.pending(ALL)
    queue.core.validate()
    return {note.key.removeprefix("default/"): note.message for note in page.pending_reasons}


async def test_submitted_pods_are_leased_in_order():
    queue = queue_of()

    assert (await queue.submit(batch_of("a", "b", "c"))).accepted == 3

    assert await names(queue, max_pods=2) == ("a", "b")
    assert await names(queue) == ("c",)


async def test_pods_of_higher_priority_are_leased_first():
    queue = queue_of()
    await queue.submit(batch_of("low"))
    await queue.submit(batch_of("high", facts=pod(priority=10)))

    assert await names(queue) == ("high", "low")


async def test_pods_submitted_twice_are_queued_once():
    queue = queue_of()
    await queue.submit(batch_of("a"))

    again = await queue.submit(batch_of("a", "b"))

    assert (again.accepted, again.refused) == (1, ())
    assert await names(queue) == ("a", "b")


async def test_pods_beyond_the_bound_are_refused_by_name():
    queue = queue_of(bounds=Bounds(queue_max_pods=2))

    answer = await queue.submit(batch_of("a", "b", "c", "d"))

    assert (answer.accepted, answer.refused) == (2, ("uid-c", "uid-d"))


async def test_an_empty_queue_answers_without_a_lease_after_the_wait():
    answer = await leased(queue_of(), wait_s=0.0)

    assert (answer.lease_id, answer.pods.uids, answer.lease_counts) == (0, (), ())


async def test_a_lease_waits_for_the_first_pod():
    queue = queue_of()
    waiting = asyncio.create_task(leased(queue, wait_s=GENEROUS_S))
    await turns()
    assert not waiting.done()

    await queue.submit(batch_of("a"))

    assert (await waiting).pods.names == ("a",)


async def test_a_lease_waits_for_pods_whose_backoff_ends(clock):
    queue = queue_of()
    await queue.submit(batch_of("a"))
    first = await leased(queue)
    await queue.report(report_of(first.lease_id, back=[back("a", "error")]))
    assert queue.core.state_of("uid-a") is QueueState.BACKOFF

    waiting = asyncio.create_task(leased(queue, wait_s=GENEROUS_S))
    await turns()
    assert not waiting.done()
    clock.now_s += 2.0
    second = await waiting

    assert second.pods.names == ("a",)
    assert second.lease_counts == (2,)


async def test_a_newer_epoch_of_a_scheduler_takes_over_the_pods_of_the_older_one():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    await leased(queue, epoch=1)

    assert await names(queue, epoch=2) == ("a",)
    assert (await leased(queue, epoch=1)).lease_id == 0


async def test_pods_of_an_expired_lease_are_queued_again(clock):
    queue = queue_of(deadlines=ActorDeadlines(lease_s=30.0))
    await queue.submit(batch_of("a"))
    assert await names(queue) == ("a",)
    assert await names(queue) == ()

    clock.now_s += 30.0
    again = await leased(queue, owner="scheduler-1")

    assert (again.pods.names, again.lease_counts) == (("a",), (2,))


async def test_bound_pods_leave_the_queue_and_are_no_longer_pending():
    queue = queue_of()
    await queue.submit(batch_of("a", "b"))
    lease = await leased(queue)
    notes = [note_on("a", "tried before")]

    await queue.report(report_of(lease.lease_id, done=["a"], notes=notes))

    state = await queue.queue_state(NOTHING)
    assert (state.done, state.in_flight) == (1, 1)
    assert await pending_messages(queue) == {"b": "has not been tried yet"}


async def test_the_same_report_twice_changes_nothing():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c"))
    lease = await leased(queue)
    report = report_of(
        lease.lease_id,
        done=["a"],
        back=[back("b", "unschedulable", "NodeResourcesFit")],
        notes=[note_on("b")],
    )
    await queue.report(report)
    before = await queue.queue_state(NOTHING), await pending_messages(queue)

    await queue.report(report)

    assert (await queue.queue_state(NOTHING), await pending_messages(queue)) == before


async def test_a_report_on_an_ended_lease_changes_nothing():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    lease = await leased(queue)
    report = report_of(lease.lease_id, done=["a"])
    await queue.report(report)

    await queue.report(report_of(lease.lease_id, back=[back("a", "error")]))

    assert (await queue.queue_state(NOTHING)).done == 1


async def test_a_report_on_a_pod_of_another_lease_is_illegal():
    queue = queue_of()
    await queue.submit(batch_of("a", "b"))
    first = await leased(queue, max_pods=1)
    await leased(queue, max_pods=1)

    with pytest.raises(IllegalTransitionError, match="not in lease"):
        await queue.report(report_of(first.lease_id, done=["b"]))


async def test_rejected_pods_are_pending_with_the_reasons_of_their_scheduler():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    lease = await leased(queue)
    given_back = [back("a", "unschedulable", "NodeResourcesFit")]

    await queue.report(report_of(lease.lease_id, back=given_back, notes=[note_on("a")]))

    assert await pending_messages(queue) == {"a": note_on("a").message}
    assert (await queue.queue_state(NOTHING)).unschedulable == 1


async def test_pods_that_lost_a_race_are_leased_again_immediately():
    queue = queue_of()
    await queue.submit(batch_of("a", "b"))
    lease = await leased(queue, max_pods=1)

    await queue.report(report_of(lease.lease_id, back=[back("a", "conflict")]))

    assert await names(queue) == ("a", "b")


async def parked(queue, facts, plugin="NodeResourcesFit"):
    """Park pod "a" as rejected by a plugin."""
    await queue.submit(batch_of("a", facts=facts))
    lease = await leased(queue, max_pods=1)
    await queue.report(report_of(lease.lease_id, back=[back("a", "unschedulable", plugin)]))
    assert queue.core.state_of("uid-a") is QueueState.UNSCHEDULABLE


def is_parked(queue):
    return queue.core.state_of("uid-a") is QueueState.UNSCHEDULABLE


IS_WEB = LabelSelector((Requirement("app", "In", ("web",)),))
NEAR_WEB = PodAffinityTerm("zone", IS_WEB, ("default",), None)


@pytest.mark.parametrize(("app", "woken"), [("web", True), ("db", False)])
async def test_a_bound_pod_wakes_pods_with_affinity_to_it(app, woken):
    queue = queue_of()
    await parked(queue, pod(pod_affinity=(NEAR_WEB,)), "InterPodAffinity")
    await queue.submit(batch_of("b", facts=pod(labels={"app": app})))
    second = await leased(queue, max_pods=1)

    await queue.report(report_of(second.lease_id, done=["b"]))

    assert is_parked(queue) is not woken


async def test_a_bound_pod_wakes_no_pod_that_lacks_resources():
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    await queue.submit(batch_of("b"))
    second = await leased(queue, max_pods=1)

    await queue.report(report_of(second.lease_id, done=["b"]))

    assert is_parked(queue), "the pod stays unschedulable"


async def test_a_pod_removed_from_its_node_wakes_pods_that_lack_resources():
    queue = queue_of()
    await parked(queue, pod(cpu=100))

    await queue.observe(ClusterChanges(gone=batch_of("old", facts=pod(cpu=50))))

    assert not is_parked(queue)


async def test_an_evicted_pod_leaves_the_queue_and_wakes_pods_that_lack_resources():
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    victim = batch_of("victim", facts=pod(cpu=50))
    await queue.submit(victim)
    lease = await leased(queue, max_pods=1)

    await queue.report(LeaseReport(lease.lease_id, (), (), (note_on("victim"),), victim))

    assert not is_parked(queue)
    assert queue.core.state_of("uid-victim") is QueueState.NEW
    assert "victim" not in await pending_messages(queue)


@pytest.mark.parametrize(("cpu", "woken"), [(4000, True), (50, False)])
async def test_a_new_node_wakes_the_pods_that_fit_on_it(cpu, woken):
    queue = queue_of()
    await parked(queue, pod(cpu=100))

    await queue.observe(ClusterChanges(nodes=(NodeChange(None, node(cpu=cpu)),)))

    assert is_parked(queue) is not woken


async def test_an_irrelevant_change_of_a_node_wakes_no_pod():
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    before, after = node(), node(labels={"disk": "ssd"})

    await queue.observe(ClusterChanges(nodes=(NodeChange(before, after),)))

    assert is_parked(queue), "the pod stays unschedulable"


def freed(name, reason="unschedulable", *rejected_by):
    return ReturnedPod(f"uid-{name}", reason, rejected_by, freed=True)


async def gives_up(queue, facts=None, *, name="b", reason="unschedulable"):
    """Submit a pod that is assumed and then refused after all."""
    await queue.submit(batch_of(name, facts=facts or pod(cpu=50)))
    lease = await leased(queue, max_pods=1)
    assert lease.pods.names == (name,)
    given_back = freed(name, reason, *(("Gate",) if reason == "unschedulable" else ()))
    await queue.report(report_of(lease.lease_id, back=[given_back]))


async def test_an_assumed_pod_that_fails_wakes_pods_that_lack_resources():
    queue = queue_of()
    await parked(queue, pod(cpu=100))

    await gives_up(queue)

    assert not is_parked(queue)
    assert queue.core.state_of("uid-b") is QueueState.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("named", "woken"), [("", True), ("n2", True), ("n1", False), (None, False)]
)
async def test_resources_no_longer_reserved_for_a_pod_wake_pods_that_lack_them(named, woken):
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    nominated = pod(cpu=100, priority=10, nominated_node_name="n1")
    await queue.submit(batch_of("b", facts=nominated))
    lease = await leased(queue)
    given_back = ReturnedPod("uid-b", "unschedulable", ("NodeResourcesFit",), nominated_node=named)

    await queue.report(report_of(lease.lease_id, back=(given_back,)))

    assert is_parked(queue) is not woken


async def test_failed_pods_stop_waking_others_after_a_while():
    queue = queue_of()
    for number in range(MAX_FAILED_REPORTS):
        await gives_up(queue, name=f"b{number}")
    await parked(queue, pod(cpu=100))

    await gives_up(queue, name="last")

    assert is_parked(queue), "the pod stays unschedulable"


GANG = pod(cpu=50, pod_group=GroupMembership("g", 1))


@pytest.mark.parametrize(("facts", "woken"), [(pod(cpu=100), True), (GANG, False)])
async def test_failed_gangs_continue_to_wake_pods_without_a_gang(facts, woken):
    queue = queue_of()
    for number in range(MAX_FAILED_REPORTS):
        await gives_up(queue, GANG, name=f"b{number}")
    await parked(queue, facts)

    await gives_up(queue, GANG, name="last")

    assert is_parked(queue) is not woken


@pytest.mark.parametrize(("facts", "woken"), [(pod(cpu=100), True), (GANG, False)])
async def test_in_flight_pods_without_a_gang_get_the_failure_events_of_gangs(facts, woken):
    queue = queue_of()
    for number in range(MAX_FAILED_REPORTS):
        await gives_up(queue, GANG, name=f"b{number}")
    await queue.submit(batch_of("a", facts=facts))
    lease = await leased(queue, max_pods=1)

    await gives_up(queue, GANG, name="last")
    lacks_room = ReturnedPod("uid-a", "unschedulable", ("NodeResourcesFit",))
    await queue.report(report_of(lease.lease_id, back=[lacks_room]))

    assert is_parked(queue) is not woken


async def test_a_deleted_pod_is_no_longer_a_member_of_its_gang():
    of_two = pod(cpu=50, pod_group=GroupMembership("g", 2))
    queue = queue_of(config=json.dumps(GANGS))
    await queue.submit(batch_of("a", facts=of_two))

    await queue.report(LeaseReport(0, (), (), (), batch_of("a", facts=of_two)))

    await queue.submit(batch_of("b", facts=of_two))
    assert queue.core.state_of("uid-b") is QueueState.GATED


async def test_a_new_queue_refuses_bound_and_deleted_pods():
    node_of = {"uid-bound": "n1", "uid-waits": "", "uid-gone": None}
    binder = Fake("binder", pod_nodes=lambda ask: PodNodes(tuple(node_of[uid] for uid in ask.uids)))
    queue = QueueActor(plan_of(), Fakes(binder), is_new=True)

    answer = await queue.submit(batch_of("bound", "waits", "gone"))

    assert answer.accepted == 1
    assert await names(queue) == ("waits",)


async def test_a_resumed_run_counts_the_pods_bound_before():
    queue = queue_of()

    await queue.bound_before(BoundBefore(8))

    state = await queue.queue_state(NOTHING)
    assert (state.in_flight, state.done) == (0, 8)


async def test_a_new_queue_is_busy_until_the_supervisor_reports_all_pods_restored():
    queue = QueueActor(plan_of(), NOBODY, is_new=True)
    # The client has sent all its pods to the previous queue.
    await queue.bound_before(BoundBefore(8))
    busy = await queue.queue_state(NOTHING)

    await queue.restored(Restored(9))
    await queue.bound_before(BoundBefore(8))

    whole = await queue.queue_state(NOTHING)
    assert (busy.in_flight, busy.done) == (1, 0)
    assert (whole.in_flight, whole.done) == (0, 9)


async def test_the_queue_reports_nominations_except_those_of_leased_pods():
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    lease_id = (await leased_again(queue, "a")).lease_id
    named = ReturnedPod("uid-a", "unschedulable", ("NodeResourcesFit",), nominated_node="n1")
    await queue.report(report_of(lease_id, back=[named]))
    await queue.submit(batch_of("leased"))
    await leased(queue)
    await queue.submit(batch_of("plain"))

    nominated = await queue.nominated(Uids(("uid-a", "uid-leased", "uid-plain", "uid-unknown")))

    assert (nominated.pods.uids, nominated.nodes) == (("uid-a",), ("n1",))
    assert nominated.none == ("uid-plain", "uid-unknown")


async def test_the_cache_counts_a_nomination_while_its_pod_is_not_gated():
    cache = Fake("cache", nominate=CacheAnswer((), ()))
    queue = QueueActor(plan_of(), Fakes(cache))
    gated = pod(nominated_node_name="n1", scheduling_gates=("hold",))

    await queue.submit(batch_of("a", facts=gated))
    await queue.submit(batch_of("a", facts=pod(nominated_node_name="n1")))

    assert [each.nodes for each in cache.received("nominate")] == [("",), ("n1",)]


async def test_a_pod_under_deletion_is_pending_with_upstreams_message():
    queue = queue_of()

    await queue.submit(batch_of("a", facts=pod(is_terminating=True)))

    assert await pending_messages(queue) == {"a": "skip schedule deleting pod: default/a"}
    assert await names(queue) == ()


async def test_a_lost_nomination_is_withdrawn_at_the_cache_and_wakes_pods():
    cache = Fake("cache", nominate=CacheAnswer((), ()))
    queue = QueueActor(plan_of(), Fakes(cache))
    await parked(queue, pod(cpu=100))
    lease_id = (await leased_again(queue, "a")).lease_id
    low = ReturnedPod("uid-a", "unschedulable", ("NodeResourcesFit",), nominated_node="n1")
    await queue.report(report_of(lease_id, back=[low]))
    await queue.submit(batch_of("high", facts=pod(cpu=100, priority=10)))
    lease_id = (await leased(queue, max_pods=1)).lease_id
    plugins = ("NodeResourcesFit",)
    high = ReturnedPod("uid-high", "unschedulable", plugins, nominated_node="n1", preempts=True)

    await queue.report(report_of(lease_id, back=[high]))

    (sent,) = cache.received("nominate")
    assert (sent.pods.uids, sent.nodes) == (("uid-a",), ("",))
    assert queue.core.pop_cleared() == []


def nominated_back(name, node_name):
    return ReturnedPod(
        f"uid-{name}", "unschedulable", ("NodeResourcesFit",), nominated_node=node_name
    )


async def lent_twice():
    """Return a cache, a queue, the ended lease of its pod, and the current one."""
    cache = Fake("cache", nominate=CacheAnswer((), ()))
    queue = QueueActor(plan_of(deadlines=ActorDeadlines(lease_s=0.1)), Fakes(cache))
    await queue.submit(batch_of("a", facts=pod(cpu=100)))
    over = (await leased(queue, max_pods=1)).lease_id
    queue.core.expire(1.0)
    again = (await leased(queue, max_pods=1, owner="scheduler-1")).lease_id
    return cache, queue, over, again


async def test_a_nomination_under_an_expired_lease_is_withdrawn_when_the_pod_returns():
    cache, queue, over, again = await lent_twice()

    await queue.report(report_of(over, back=[nominated_back("a", "n1")]))
    count_before_expiry = len(cache.received("nominate"))
    await queue.report(report_of(again, back=[nominated_back("a", "")]))

    assert count_before_expiry == 0
    (sent,) = cache.received("nominate")
    assert (sent.pods.uids, sent.nodes) == (("uid-a",), ("",))


async def test_a_valid_nomination_is_sent_again_after_one_under_an_expired_lease():
    cache, queue, over, again = await lent_twice()
    await queue.report(report_of(again, back=[nominated_back("a", "n2")]))

    await queue.report(report_of(over, back=[nominated_back("a", "n1")]))

    (sent,) = cache.received("nominate")
    assert (sent.pods.uids, sent.nodes) == (("uid-a",), ("n2",))


async def test_a_repeated_report_of_an_ended_lease_wakes_no_pod():
    queue = QueueActor(plan_of(), Fakes(Fake("cache")))
    await queue.submit(batch_of("a", "named", facts=pod(cpu=100)))
    lease = await leased(queue)
    again = report_of(lease.lease_id, back=[nominated_back("a", ""), nominated_back("named", "n1")])
    await queue.report(again)
    queue.core.expire(LONG_S)

    await queue.report(again)

    assert is_parked(queue), "the pod stays unschedulable"
    # No correction is kept for the next report, either; the cache of this test answers nothing.
    queue.core.activate(["uid-a", "uid-named"], 2 * LONG_S)
    lease = await leased(queue)
    assert sorted(lease.pods.uids) == ["uid-a", "uid-named"]
    await queue.report(report_of(lease.lease_id, back=[back("a"), back("named")]))


async def test_a_nomination_removed_in_vain_is_sent_again_and_requeues_no_pod():
    cache = Fake("cache", nominate=CacheAnswer((), ()))
    queue = QueueActor(plan_of(deadlines=ActorDeadlines(lease_s=0.1)), Fakes(cache))
    await queue.submit(batch_of("named", facts=pod(cpu=100)))
    over = (await leased(queue)).lease_id
    queue.core.expire(1.0)
    again = (await leased(queue, owner="scheduler-1")).lease_id
    await queue.report(report_of(again, back=[nominated_back("named", "n2")]))
    await queue.submit(batch_of("a", facts=pod(cpu=100)))
    await queue.report(report_of((await leased(queue, max_pods=1)).lease_id, back=[LACKS_ROOM]))
    assert is_parked(queue), "the pod stays unschedulable"

    await queue.report(report_of(over, back=[nominated_back("named", "")]))

    (sent,) = cache.received("nominate")
    assert (sent.pods.uids, sent.nodes) == (("uid-named",), ("n2",))
    assert is_parked(queue), "the pod stays unschedulable"


async def test_resources_reserved_in_vain_requeue_others_and_bound_pods_are_not_sent():
    cache = Fake("cache", nominate=CacheAnswer((), ()))
    queue = QueueActor(plan_of(deadlines=ActorDeadlines(lease_s=0.1)), Fakes(cache))
    await queue.submit(batch_of("a", "bound", facts=pod(cpu=100)))
    over = (await leased(queue)).lease_id
    queue.core.expire(1.0)
    await queue.report(report_of((await leased(queue)).lease_id, done=["bound"], back=[LACKS_ROOM]))
    assert is_parked(queue), "the pod stays unschedulable"

    nominations = [nominated_back("a", "n1"), nominated_back("bound", "n1")]
    await queue.report(report_of(over, back=nominations))

    (sent,) = cache.received("nominate")
    assert sent.pods.uids == ("uid-a",)
    assert not is_parked(queue)


async def test_a_pod_that_failed_too_often_is_parked(clock):
    queue = queue_of()
    await queue.submit(batch_of("a"))
    for _ in range(MAX_FAILURES + 1):
        lease = await leased(queue)
        if lease.lease_id:
            again = ReturnedPod("uid-a", "error", ())
            await queue.report(report_of(lease.lease_id, back=[again]))
        clock.now_s += LONG_S / 10

    assert queue.core.state_of("uid-a") is QueueState.UNSCHEDULABLE


async def leased_again(queue, name):
    queue.core.activate([f"uid-{name}"], 0.0)
    return await leased(queue, max_pods=1)


async def test_a_bound_pod_lets_failed_pods_wake_others_again():
    queue = queue_of()
    for number in range(MAX_FAILED_REPORTS + 1):
        await gives_up(queue, name=f"b{number}")
    await parked(queue, pod(cpu=100))
    await queue.submit(batch_of("bound"))
    lease = await leased(queue, max_pods=1)
    await queue.report(report_of(lease.lease_id, done=["bound"]))

    await gives_up(queue, name="last")

    assert not is_parked(queue)


async def test_a_lost_race_wakes_others_any_number_of_times():
    queue = queue_of()
    for number in range(MAX_FAILED_REPORTS + 1):
        await gives_up(queue, name=f"b{number}")
    await parked(queue, pod(cpu=100))

    await gives_up(queue, name="loser", reason="conflict")

    assert not is_parked(queue)


async def test_the_plugin_that_answered_pending_requeues_its_pod_without_backoff():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    lease = await leased(queue)
    pending = ReturnedPod("uid-a", "unschedulable", ("NodeName",), pending=("NodeName",))
    await queue.report(report_of(lease.lease_id, back=[pending]))

    await queue.observe(ClusterChanges(nodes=(NodeChange(None, node()),)))

    assert queue.core.state_of("uid-a") is QueueState.ACTIVE


async def test_an_event_during_an_attempt_counts_when_the_pod_returns():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    lease = await leased(queue)

    await queue.observe(ClusterChanges(nodes=(NodeChange(None, node()),)))
    given_back = [back("a", "unschedulable", "NodeResourcesFit")]
    await queue.report(report_of(lease.lease_id, back=given_back))

    assert queue.core.state_of("uid-a") is QueueState.BACKOFF
    assert await names(queue) == ("a",)


async def test_a_waiting_lease_is_granted_when_an_event_requeues_a_pod():
    queue = queue_of()
    await parked(queue, pod(cpu=100))
    waiting = asyncio.create_task(leased(queue, wait_s=GENEROUS_S))
    await turns()
    assert not waiting.done()

    await queue.observe(ClusterChanges(gone=batch_of("old", facts=pod(cpu=50))))

    assert (await waiting).pods.names == ("a",)


async def test_a_gated_pod_submitted_again_without_gates_is_leased():
    queue = queue_of()
    await queue.submit(batch_of("a", facts=pod(scheduling_gates=("example.com/hold",))))
    assert await names(queue) == ()

    await queue.submit(batch_of("a", facts=pod()))

    assert await names(queue) == ("a",)


async def test_a_rejected_pod_submitted_again_is_requeued_if_the_change_may_help():
    queue = queue_of()
    await parked(queue, pod(cpu=100))

    await queue.submit(batch_of("a", facts=pod(cpu=100, labels={"app": "web"})))
    assert is_parked(queue), "more labels do not help it"
    await queue.submit(batch_of("a", facts=pod(cpu=50, labels={"app": "web"})))
    assert not is_parked(queue)


async def test_gated_pods_are_pending_with_their_gates():
    queue = queue_of()

    await queue.submit(batch_of("a", facts=pod(scheduling_gates=("example.com/hold",))))

    assert await pending_messages(queue) == {
        "a": "waiting for scheduling gates: [example.com/hold]"
    }
    (note,) = (await queue.pending(ALL)).pending_reasons
    assert note.plugins == ("SchedulingGates",)
    assert (await queue.queue_state(NOTHING)).gated == 1
    assert await names(queue) == ()


async def test_pods_of_an_unknown_scheduler_are_pending_with_its_name():
    queue = queue_of()

    await queue.submit(batch_of("a", facts=pod(scheduler_name="theirs")))

    assert await pending_messages(queue) == {"a": 'no profile has the scheduler name "theirs"'}
    (note,) = (await queue.pending(ALL)).pending_reasons
    assert note.plugins == ()
    assert await names(queue) == ()


async def test_the_name_of_an_unknown_scheduler_is_escaped_and_cut_short():
    queue = queue_of()

    await queue.submit(batch_of("a", facts=pod(scheduler_name="\x1b[2J" + "x" * 200)))

    (message,) = (await pending_messages(queue)).values()
    assert message.startswith('no profile has the scheduler name "\\x1b[2Jxxx')
    assert message.isprintable()
    assert len(message) < 120, "the name is cut short"


@pytest.mark.parametrize("given_back", [back("a", "error", "P"), back("a", "unschedulable")])
async def test_a_pod_that_fails_repeatedly_stays_pending(given_back, clock):
    queue = queue_of(deadlines=ActorDeadlines(lease_s=10 * LONG_S))
    await queue.submit(batch_of("a", "b"))
    lease = await leased(queue)
    states = []
    for attempt in range(1, MAX_FAILURES + 1):
        report = report_of(lease.lease_id, back=[given_back], notes=[note_on("a", "broke")])
        await queue.report(report)
        await queue.report(report)
        states.append(queue.core.state_of("uid-a"))
        if attempt < MAX_FAILURES:
            clock.now_s += LONG_S
            lease = await leased(queue, max_pods=1)

    assert states == [*[QueueState.BACKOFF] * (MAX_FAILURES - 1), QueueState.UNSCHEDULABLE]
    assert (await pending_messages(queue))["a"] == "broke"


@pytest.mark.parametrize("comes_in_flight", [False, True])
async def test_a_new_node_wakes_a_pod_that_repeatedly_found_no_nodes(comes_in_flight, clock):
    queue = queue_of(deadlines=ActorDeadlines(lease_s=10 * LONG_S))
    await queue.submit(batch_of("a"))
    comes = ClusterChanges(nodes=(NodeChange(None, node()),))
    for attempt in range(1, MAX_FAILURES + 1):
        lease = await leased(queue)
        if comes_in_flight and attempt == MAX_FAILURES:
            await queue.observe(comes)
        await queue.report(report_of(lease.lease_id, back=[back("a", "unschedulable")]))
        clock.now_s += LONG_S
    if not comes_in_flight:
        assert queue.core.state_of("uid-a") is QueueState.UNSCHEDULABLE
        await queue.observe(comes)

    assert (await leased(queue)).pods.uids == ("uid-a",)


async def test_failures_of_a_pod_are_forgotten_when_it_is_bound(clock, monkeypatch):
    queue = queue_of()
    await queue.submit(batch_of("a"))
    first = await leased(queue)
    await queue.report(report_of(first.lease_id, back=[back("a", "error")]))
    clock.now_s += LONG_S
    second = await leased(queue)

    forgotten = []
    monkeypatch.setattr(Retries, "forget", lambda self, uid: forgotten.append(uid))
    await queue.report(report_of(second.lease_id, done=["a"]))

    assert await pending_messages(queue) == {}
    assert forgotten == ["uid-a"]


@pytest.mark.parametrize("reason", ["error", "conflict"])
def test_a_forgotten_pod_may_fail_as_often_as_a_new_one(reason):
    retries = Retries()

    def reasons(first_lease, count=MAX_CONFLICTS + MAX_FAILURES):
        leases = range(first_lease, first_lease + count)
        return [retries.requeue(each, back("a", reason)).reason for each in leases]

    as_new = reasons(1)
    retries.forget("uid-a")

    assert reasons(100) == as_new
    assert as_new[-1] != as_new[0]


async def test_pending_pods_are_returned_in_pages():
    queue = queue_of()
    await queue.submit(batch_of(*"abcde"))

    pages = [await queue.pending(PageRequest(start, 2)) for start in (0, 2, 4, 6)]

    assert [[note.key[-1] for note in page.pending_reasons] for page in pages] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
        [],
    ]
    assert {page.total for page in pages} == {5}


async def test_a_page_builds_no_pod_of_another_page(monkeypatch):
    built, view = [], PodEntry.view
    monkeypatch.setattr(PodEntry, "view", lambda entry: built.append(entry.uid) or view(entry))
    queue = queue_of()
    await queue.submit(batch_of(*"abcde"))
    await leased(queue, max_pods=2)
    built.clear()

    await queue.pending(PageRequest(2, 2))

    assert built == ["uid-e", "uid-a"], "pods in flight are the last ones"


async def test_status_counts_the_pods_by_state():
    queue = queue_of()
    await queue.submit(batch_of("a", "b", "c"))
    await queue.submit(batch_of("gated", facts=pod(scheduling_gates=("hold",))))
    await leased(queue, max_pods=2)

    status = await queue.status(NOTHING)

    assert status.text == (
        "held 1 active, 0 backing off, 0 unschedulable, 1 gated pods and 2 in flight; "
        "had given out 1 leases"
    )
    assert (status.error, dict(status.counts)) == ("", {"leases": 1})


async def test_a_bind_reported_after_its_lease_ended_removes_the_pod_from_the_queue():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    first = await leased(queue)
    queue.core.expire(LONG_S)

    await queue.report(LeaseReport(first.lease_id, ("uid-a",), (), ()))

    assert queue.core.state_of("uid-a") is QueueState.DONE
    assert not (await leased(queue)).lease_id


async def test_a_bind_of_an_ended_scheduler_is_found_after_its_lease_ended(clock):
    queue = queue_of()
    await queue.submit(batch_of("a", "b"))
    await leased(queue)
    clock.now_s = LONG_S
    again = await leased(queue, owner="scheduler-1")
    owner = OwnerEpoch("scheduler-0", 2)

    lease = await queue.leased_to(owner)
    await queue.end_owner(EndOwner(owner, lease.uids, ("n1", "")))

    assert lease.uids == ("uid-a", "uid-b") == again.pods.uids
    assert queue.core.state_of("uid-a") is QueueState.DONE
    assert queue.core.state_of("uid-b") is QueueState.IN_FLIGHT
    assert (await queue.leased_to(owner)).uids == ()


async def test_pods_of_the_last_epoch_are_reported_at_its_end_after_earlier_ends(clock):
    queue = queue_of()
    await queue.submit(batch_of("a"))
    # The second epoch leases before the end of the first one is reported.
    await leased(queue, epoch=2)
    clock.now_s = LONG_S
    await leased(queue, owner="scheduler-1")

    lease = await queue.leased_to(OwnerEpoch("scheduler-0", 2))
    await queue.end_owner(EndOwner(OwnerEpoch("scheduler-0", 2), lease.uids, ()))

    assert lease.uids == ()
    assert (await queue.leased_to(OwnerEpoch("scheduler-0", 3))).uids == ("uid-a",)


async def test_a_pod_that_keeps_losing_races_backs_off():
    queue = queue_of()
    await queue.submit(batch_of("a"))
    states = []
    for _ in range(MAX_CONFLICTS + 1):
        lease = await leased(queue)
        report = LeaseReport(lease.lease_id, (), (ReturnedPod("uid-a", "conflict", ()),), ())
        await queue.report(report)
        await queue.report(report)
        states.append(queue.core.state_of("uid-a"))

    assert states == [QueueState.ACTIVE] * MAX_CONFLICTS + [QueueState.BACKOFF]

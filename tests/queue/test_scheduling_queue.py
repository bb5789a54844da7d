"""The queue's reasons of pending pods, and its pods of expired leases."""

import json

import pytest

from roadstead.config.settings import Settings
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.queue import QueueState
from roadstead.queue.nominator import MAX_GONE
from roadstead.queue.reports import PendingReason, ReturnedPod
from roadstead.queue.retries import MAX_FAILURES
from roadstead.run import RunPlan
from roadstead.run_parts import build_queue
from tests.builders import pod
from tests.simulation.scenarios import GANGS

LONG_S = 1000.0
GATED = pod(scheduling_gates=("hold",))


class World:
    def __init__(self, config=None):
        self.queue = build_queue(RunPlan(Settings(), "" if config is None else json.dumps(config)))

    def submit(self, *names, facts=None, revision=0):
        pods = [(PodIdentity(name, "default", name), facts or pod()) for name in names]
        end_of(self.queue.submit(pods, 0.0, revision))

    def lease(self, now_s=0.0, owner="s"):
        return self.queue.lease(owner, 1, 10_000, now_s)

    def note(self, name, message="0/1 nodes are available."):
        reason = PendingReason(name, f"default/{name}", message, (), ())
        end_of(self.queue.report(0, (), (), (reason,), (), 0.0))

    def delete(self, name, revision):
        self.queue.remove_deleted([(PodIdentity(name, "default", name), pod())], 0.0, revision)

    def fail(self, lease_id, name):
        end_of(self.queue.report(lease_id, (), (ReturnedPod(name, "error", ()),), (), (), 0.0))

    def end_owner(self, epoch, **nodes):
        end_of(self.queue.end_owner("s", epoch, nodes, 0.0))

    def messages(self):
        return {reason.uid: reason.message for reason in self.queue.pending()}


def end_of(steps):
    """Run steps that send no nomination."""
    with pytest.raises(StopIteration):
        next(steps)


def test_a_pod_that_is_no_longer_gated_is_not_pending_for_its_gates():
    world = World()
    world.submit("a", facts=GATED)
    gated = world.messages()

    world.submit("a")

    assert gated == {"a": "waiting for scheduling gates: [hold]"}
    assert world.messages() == {"a": "has not been tried yet"}


def test_a_gated_pod_is_pending_for_its_gates_whatever_it_was_before():
    world = World()
    world.submit("a")
    world.lease()
    world.note("a", "first")
    world.submit("b", facts=GATED)
    world.note("b", "second")

    assert world.messages() == {"a": "first", "b": "second"}
    world.submit("b", facts=pod(scheduling_gates=("other",)))
    assert world.messages()["b"] == "waiting for scheduling gates: [other]"


def test_no_reason_is_kept_of_a_pod_that_ended_with_its_scheduler():
    world = World()
    world.submit("a", "b")
    world.lease()
    world.note("a")
    world.note("b")

    world.end_owner(2, a="n1", b=None)
    world.submit("a", "b")

    assert world.queue.core.state_of("a") is QueueState.DONE
    assert world.messages() == {"b": "has not been tried yet"}


def test_a_late_report_on_a_deleted_pod_leaves_no_reason():
    world = World()
    world.submit("a", revision=1)
    world.lease()
    world.delete("a", revision=2)

    world.note("a")
    world.submit("a", revision=3)

    assert world.messages() == {"a": "has not been tried yet"}


def test_late_failures_of_a_deleted_pod_do_not_count():
    world = World()
    world.submit("a", revision=1)
    batch = world.lease()
    world.delete("a", revision=2)

    world.fail(batch.lease_id, "a")
    world.submit("a", revision=3)
    for attempt in range(1, MAX_FAILURES):
        world.fail(world.lease(attempt * LONG_S).lease_id, "a")

    assert world.queue.core.state_of("a") is QueueState.BACKOFF


def test_events_of_freed_pods_have_the_order_of_the_report(monkeypatch):
    world = World()
    names = [f"p{number}" for number in range(16)]
    for number, name in enumerate(names):
        world.submit(name, facts=pod(cpu=number + 1))
    lease = world.lease()
    moved = []
    monkeypatch.setattr(world.queue.core, "move", lambda events, *_: moved.append(events))
    returned = [ReturnedPod(name, "conflict", (), freed=True) for name in names]

    end_of(world.queue.report(lease.lease_id, (), returned, (), (), 0.0))

    (events,) = moved
    assert [dict(each.change.old.facts.requests)["cpu"] for each in events] == [*range(1, 17)]


def test_pods_of_expired_leases_are_dropped_once_many_left_the_queue():
    world = World()
    names = [f"p{number}" for number in range(MAX_GONE + 2)]
    world.submit(*names)
    world.lease()
    assert len(world.lease(LONG_S, owner="t").pods) == len(names)
    world.queue.core.delete(names)

    world.submit("late")
    world.lease(LONG_S)
    world.lease(2 * LONG_S, owner="t")

    assert world.queue.leased_to("s", 2) == ("late",)


@pytest.mark.parametrize("other", [None, GroupMembership("other", 3)])
def test_a_pod_that_leaves_its_gang_no_longer_counts_for_it(other):
    world, member = World(GANGS), pod(pod_group=GroupMembership("g", 3))
    world.submit("a", "b", facts=member)
    world.submit("a", facts=pod(pod_group=other))

    world.submit("c", facts=member)

    assert world.messages()["c"] == 'waiting for pod group "default/g": 2 of 3 pods exist'

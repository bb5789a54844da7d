"""Nominations in the queue: they are part of the facts in a lease."""

import pytest

from roadstead.facts.pod import PodIdentity
from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.status import SUCCESS, unresolvable
from roadstead.queue import EventRules, QueueCore, QueueState, Requeue, RequeueReason
from roadstead.queue.events import PodEvents
from roadstead.queue.nominations import QueueNominations
from roadstead.queue.nominator import MAX_GONE
from tests.builders import pod


def gate(facts):
    return unresolvable("gated") if facts.scheduling_gates else SUCCESS


class World:
    def __init__(self):
        rules = EventRules(hint=lambda plugin, event, facts: False)
        self.core = QueueCore(gate=gate, rules=rules)
        self.lease_id = 0

    def add(self, name, **facts):
        self.core.add([(PodIdentity(name, "default", name), pod(**facts))], 0.0)

    def lease(self, now_s=0.0):
        batch = self.core.lease("s", 1, 10, now_s)
        self.lease_id = batch.lease_id
        return {each.identity.uid: each.facts for each in batch.pods}

    def reject(self, name, nominated_node=None, preempts=False):
        back = Requeue(
            name,
            RequeueReason.UNSCHEDULABLE,
            ("P",),
            nominated_node=nominated_node,
            preempts=preempts,
        )
        self.core.requeue(self.lease_id, [back], 0.0)
        self.core.validate()

    def again(self, name):
        """The facts with which a pod is leased the next time."""
        self.core.activate([name], 100.0)
        return self.lease(100.0)[name]


def test_a_nominated_pod_is_leased_with_its_node():
    world = World()
    world.add("a")
    world.lease()

    world.reject("a", "n1")

    assert world.core.nominated("n1") == ("a",)
    assert world.again("a").nominated_node_name == "n1"


def test_a_large_batch_of_nominated_pods_keeps_every_nomination():
    core = QueueCore()
    facts = pod(nominated_node_name="n1")
    names = [f"p{number}" for number in range(2 * MAX_GONE)]

    core.add([(PodIdentity(name, "default", name), facts) for name in names], 0.0)

    assert core.nominated("n1") == tuple(names)


def test_none_keeps_a_nomination_and_an_empty_name_clears_it():
    world = World()
    world.add("a", nominated_node_name="n1")
    world.lease()
    assert world.core.nominated("n1") == ("a",)

    world.reject("a")
    assert world.again("a").nominated_node_name == "n1"

    world.reject("a", "")
    assert world.core.nominated("n1") == ()
    assert world.again("a").nominated_node_name == ""


def test_a_pod_sent_again_keeps_a_nomination_unknown_to_its_sender():
    world = World()
    world.add("a")
    world.lease()
    world.reject("a", "n1")

    world.add("a")
    world.core.update(PodIdentity("a", "default", "a"), pod(labels={"new": "yes"}), 0.0)

    assert world.core.nominated("n1") == ("a",)
    leased = world.again("a")
    assert leased.nominated_node_name == "n1"
    assert dict(leased.labels) == {"new": "yes"}


def test_a_nomination_from_the_sender_replaces_the_present_one():
    world = World()
    world.add("a")
    world.add("b")
    world.lease()
    world.reject("a", "n1")
    world.reject("b")

    world.add("a", nominated_node_name="n2")
    world.add("b", nominated_node_name="n3")

    assert world.core.nominated("n1") == ()
    assert world.core.nominated("n2") == ("a",)
    assert world.core.nominated("n3") == ("b",)


def test_a_preemptor_clears_nominations_of_lower_priority_to_its_node():
    world = World()
    world.add("low", priority=1, nominated_node_name="n1")
    world.add("elsewhere", priority=1, nominated_node_name="n2")
    world.add("equal", priority=5, nominated_node_name="n1")
    world.add("high", priority=5)
    world.lease()
    for name in ("low", "elsewhere", "equal"):
        world.reject(name)

    world.reject("high", "n1", preempts=True)

    assert world.core.nominated("n1") == ("equal", "high")
    assert world.core.nominated("n2") == ("elsewhere",)
    assert world.core.state_of("low") is QueueState.BACKOFF
    assert world.again("low").nominated_node_name == ""


def test_a_nomination_without_preemption_clears_no_other():
    world = World()
    world.add("low", priority=1, nominated_node_name="n1")
    world.add("high", priority=5)
    world.lease()
    world.reject("low")

    world.reject("high", "n1")

    assert world.core.nominated("n1") == ("low", "high")


def test_pods_that_left_the_queue_are_no_longer_nominated():
    world = World()
    world.add("a", nominated_node_name="n1")
    world.add("b", nominated_node_name="n1")
    world.lease()

    world.core.done(world.lease_id, ["a"])
    world.core.delete(["b"])

    assert world.core.nominated("n1") == ()


def test_equal_facts_stay_one_object_when_nominated():
    world = World()
    facts = pod(cpu=5)
    for name in ("a", "b"):
        world.core.add([(PodIdentity(name, "default", name), facts)], 0.0)
    world.lease()
    for name in ("a", "b"):
        world.reject(name, "n1")

    world.core.activate(["a", "b"], 100.0)
    leased = world.lease(100.0)

    assert leased["a"] is leased["b"]


def uids(pods):
    return [each.identity.uid for each in pods]


def test_a_gated_pods_nomination_reserves_nothing_until_the_pod_is_queued():
    world = World()
    world.add("a", nominated_node_name="n1", scheduling_gates=("hold",))
    assert world.core.nominated("n1") == ()
    assert uids(world.core.pop_cleared()) == ["a"]
    assert world.core.pop_released() == []

    world.add("a", nominated_node_name="n1")

    assert world.core.state_of("a") is QueueState.ACTIVE
    assert world.core.nominated("n1") == ("a",)
    assert uids(world.core.pop_released()) == ["a"]
    assert world.core.pop_cleared() == world.core.pop_released() == []


def test_a_gated_pod_sent_again_with_a_nomination_still_reserves_nothing():
    world = World()
    world.add("a", scheduling_gates=("hold",))
    assert world.core.pop_cleared() == []

    world.add("a", nominated_node_name="n1", scheduling_gates=("hold",))

    assert world.core.nominated("n1") == ()
    assert uids(world.core.pop_cleared()) == ["a"]


def test_a_nominated_pod_that_returns_to_a_closed_gate_reserves_nothing():
    world = World()
    world.add("a", nominated_node_name="n1")
    world.lease()
    world.add("a", nominated_node_name="n1", scheduling_gates=("hold",))
    assert world.core.nominated("n1") == ("a",)

    world.core.requeue(world.lease_id, [Requeue("a", RequeueReason.CONFLICT)], 1.0)

    assert world.core.state_of("a") is QueueState.GATED
    assert world.core.nominated("n1") == ()
    assert uids(world.core.pop_cleared()) == ["a"]
    world.core.validate()


def test_a_nomination_that_the_cache_did_not_acknowledge_is_sent_again():
    world = World()
    nominations = QueueNominations(world.core, PodEvents(()), lambda *_: None)
    world.add("gated", nominated_node_name="n1", scheduling_gates=("hold",))

    lost = nominations.send_changes()
    assert next(lost).nodes == [""]
    with pytest.raises(RoadsteadError):
        lost.throw(RoadsteadError("no reply"))

    again = nominations.send_corrections()
    sent = next(again)
    assert ([each.uid for each, _ in sent.pods], sent.nodes) == (["gated"], [""])
    with pytest.raises(StopIteration):
        again.send(0.0)
    assert list(nominations.send_corrections()) == []

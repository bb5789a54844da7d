"""Bugs that schedulers of this kind had before, each as the shortest history that shows it."""

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import (
    CHANGES_APPLIED,
    AssumeBatch,
    BindBatch,
    NominateBatch,
    UpdateAssumptions,
    node_batch,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import OwnerEpoch, PodRemoval
from roadstead.cache import Assumption, CacheCore, CacheState
from roadstead.facts.pod import PodAffinityTerm, PodIdentity
from roadstead.facts.selectors import LabelSelector
from roadstead.placements import TableStore
from roadstead.queue import EventRules, QueueCore, QueueState, Requeue, RequeueReason
from tests.actors.world import NOBODY, Fake, Fakes, batch_of, plan_of
from tests.builders import node, pod, require

ZONE = "topology.kubernetes.io/zone"
ALONE_IN_ZONE = pod(
    cpu=100,
    labels={"app": "x"},
    pod_anti_affinity=(
        PodAffinityTerm(ZONE, LabelSelector((require("app", "In", "x"),)), ("default",), None),
    ),
)


def cache_core():
    core = CacheCore(TableStore())
    core.add_node(node("n1", cpu=1000))
    core.add_node(node("n2", cpu=1000))
    return core


def assume(core, name, on, token, facts=None):
    return core.assume([Assumption(name, name, facts or pod(cpu=400), on, token)], 0.0)


def used(core, name):
    return core.placements.store.table.row_facts(name)["requested"].get("cpu", 0)


def sound(core):
    core.validate()
    assert core.compare(core.rebuild(TableStore())) == []


def test_double_assume_counts_a_pod_once():
    core = cache_core()
    assume(core, "a", "n1", "one")

    refused = assume(core, "a", "n2", "two").refused

    assert [each.uid for each in refused] == ["a"]
    assert (used(core, "n1"), used(core, "n2")) == (400, 0)
    sound(core)


def test_forget_after_confirm_leaves_the_pod_on_its_node():
    core = cache_core()
    assume(core, "a", "n1", "one")
    core.confirm([core.placement_of("a")])

    refused = core.forget([("a", "one")]).refused

    assert [each.uid for each in refused] == ["a"]
    assert (core.state_of("a"), used(core, "n1")) == (CacheState.ADDED, 400)
    sound(core)


def test_update_while_assumed_counts_the_new_facts_of_the_pod():
    core = cache_core()
    assume(core, "a", "n1", "one")

    core.update_pod("a", pod(cpu=700), "n2")

    assert (core.state_of("a"), used(core, "n1"), used(core, "n2")) == (CacheState.ADDED, 0, 700)
    sound(core)


def test_node_deleted_and_added_again_counts_its_assumed_pods_once():
    core = cache_core()
    assume(core, "a", "n1", "one")
    core.remove_node("n1")
    assume(core, "b", "n1", "two")

    core.add_node(node("n1", cpu=1000))

    assert used(core, "n1") == 800
    core.forget([("a", "one")])
    assert used(core, "n1") == 400
    sound(core)


def test_a_pod_forgotten_while_its_node_is_away_does_not_return_with_the_node():
    core = cache_core()
    assume(core, "a", "n1", "one")
    core.remove_node("n1")
    core.forget([("a", "one")])

    core.add_node(node("n1", cpu=1000))

    assert used(core, "n1") == 0
    sound(core)


def test_an_assumption_repeated_after_the_pod_was_deleted_is_refused():
    core = cache_core()
    assume(core, "a", "n1", "one")
    core.confirm([core.placement_of("a")])
    core.remove_pods(["a"])

    assert assume(core, "a", "n1", "one").refused
    assert used(core, "n1") == 0


def test_an_event_between_pop_and_requeue_brings_the_pod_back():
    queue = QueueCore(rules=EventRules(hint=lambda plugin, event, facts: True))
    queue.add([(PodIdentity("a", "default", "a"), pod())], 0.0)
    lease = queue.lease("s", 1, 1, 0.0)
    queue.move(["a node came"], 0.0)

    queue.requeue(lease.lease_id, [Requeue("a", RequeueReason.UNSCHEDULABLE, ("P",))], 0.0)

    assert queue.state_of("a") in (QueueState.ACTIVE, QueueState.BACKOFF)


async def binder_of(*names, facts):
    binder = BinderActor(plan_of(), NOBODY)
    hosts = tuple(node(name, cpu=1000, labels={ZONE: "a"}) for name in ("n1", "n2"))
    await binder.add_nodes(node_batch(hosts))
    await binder.add_pending(batch_of(*names, facts=facts))
    return binder


async def bind(binder, name, on, facts, owner="one", epoch=1):
    tokens = (f"{owner}/{epoch}/{name}",)
    batch = BindBatch(owner, epoch, batch_of(name, facts=facts), (on,), tokens)
    (answer,) = (await binder.bind(batch)).answers
    binder.core.validate()
    return answer.cause


async def test_two_schedulers_do_not_overcommit_a_node():
    facts = pod(cpu=600)
    binder = await binder_of("a", "b", facts=facts)

    assert await bind(binder, "a", "n1", facts, "one") == ""
    assert await bind(binder, "b", "n1", facts, "two") == "constraint"


async def test_anti_affinity_holds_when_a_scheduler_takes_the_place_of_another():
    binder = await binder_of("a", "b", facts=ALONE_IN_ZONE)
    await binder.fence_owner(OwnerEpoch("one", 2))

    # The new life decides without the old one's messages in transit.
    assert await bind(binder, "b", "n2", ALONE_IN_ZONE, epoch=2) == ""
    assert await bind(binder, "a", "n1", ALONE_IN_ZONE, epoch=1) == "stale_epoch"


async def test_anti_affinity_holds_when_the_old_life_was_faster():
    binder = await binder_of("a", "b", facts=ALONE_IN_ZONE)
    assert await bind(binder, "a", "n1", ALONE_IN_ZONE, epoch=1) == ""
    await binder.fence_owner(OwnerEpoch("one", 2))

    assert await bind(binder, "b", "n2", ALONE_IN_ZONE, epoch=2) == "constraint"


async def cache_of():
    scheduler, queue = Fake("scheduler-0", apply=CHANGES_APPLIED), Fake("queue", observe=NOTHING)
    cache = CacheActor(plan_of(), Fakes(scheduler, queue))
    await cache.add_nodes(node_batch((node("n1"), node("n2"))))
    return cache, queue


async def test_a_node_that_was_removed_does_not_come_back_with_a_late_copy():
    cache, _ = await cache_of()
    await cache.remove_nodes(NodeNames(("n1",), revision=1))

    await cache.add_nodes(node_batch((node("n1"), node("n2"))))
    assert sorted(cache.core.placements.nodes) == ["n2"]
    await cache.add_nodes(node_batch((node("n1"),), revision=1))
    await cache.remove_nodes(NodeNames(("n1",), revision=1))

    assert sorted(cache.core.placements.nodes) == ["n1", "n2"]


async def test_the_queue_receives_the_resources_of_pods_on_a_removed_node():
    cache, queue = await cache_of()
    await cache.assume(AssumeBatch(batch_of("a"), ("n1",), ("one",)))
    await cache.update_assumptions(UpdateAssumptions((), (), ("uid-a",)))

    await cache.remove_nodes(NodeNames(("n1",), revision=1))

    assert [each.gone.uids for each in queue.received("observe")] == [("uid-a",)]
    cache.release()


async def test_a_pod_that_is_gone_is_nominated_no_more():
    cache, _ = await cache_of()
    await cache.remove_pods(PodRemoval(("uid-a",), revision=1))

    await cache.nominate(NominateBatch(batch_of("a"), ("n1",), (True,)))

    assert cache.core.placements.nominated == {}


async def test_a_pod_that_was_deleted_is_not_accepted_again_by_a_late_copy():
    facts = pod(cpu=100)
    binder = await binder_of("a", facts=facts)
    await binder.delete_pods(PodRemoval(("uid-a",), revision=1))

    await binder.add_pending(batch_of("a", facts=facts))

    assert await bind(binder, "a", "n1", facts) == "deleted"
    await binder.delete_pods(PodRemoval(("uid-a",), revision=1))

"""The cache's part in a recovery: expiry by the binder, new followers, orphans, comparisons."""

import itertools
from dataclasses import replace

import pytest

from roadstead import run_parts
from roadstead.actors.cache import encoding
from roadstead.actors.cache import recovery as cache_recovery
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING, DeadlineError
from roadstead.actors.messages import CHANGES_APPLIED, STORAGE, AssumeBatch, node_batch
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.messages.recovery import (
    EndOwner,
    OwnerEpoch,
    PodNodes,
    PodRemoval,
    ResolveAttempts,
    Restream,
    StorageLog,
)
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.cache import CacheSettings, CacheState
from roadstead.facts.cluster import ClusterFacts
from roadstead.nodes.pod_class import PodClasses
from tests.actors.world import Fake, Fakes, batch_of, lines, plan_of, turns, until
from tests.builders import node
from tests.storage.world import claim, storage, using, volume, waiting

OWNER = OwnerEpoch("scheduler-0", 2)


class World:
    """A cache with one scheduler, and a binder whose answers a test sets."""

    def __init__(self, nodes_of=(), facts=None):
        self.plan = replace(plan_of(), cluster=ClusterFacts(storage=facts or storage()))
        self.scheduler = Fake("scheduler-0", apply=CHANGES_APPLIED, restore=NOTHING)
        self.nodes_of = dict(nodes_of)
        self.binder = Fake("binder", resolve=self.placements_of)
        self.queue = Fake("queue", observe=NOTHING)
        self.directory = Fakes(self.scheduler, self.binder, self.queue)
        self.cache = CacheActor(self.plan, self.directory)

    def placements_of(self, ask):
        return PodNodes(tuple(self.nodes_of.get(uid) for uid in ask.uids))

    async def assuming(self, *names, epoch=1, facts=None):
        await self.cache.add_nodes(node_batch((node("n1"), node("n2"))))
        tokens = tuple(f"scheduler-0/{epoch}/{number}" for number, _ in enumerate(names))
        pods = batch_of(*names, facts=facts)
        await self.cache.assume(AssumeBatch(pods, ("n1",) * len(names), tokens))
        return self

    def states(self, *names):
        return [self.cache.core.state_of(f"uid-{name}") for name in names]


def follower(world, epoch=1):
    """Return the table of a restarted scheduler."""
    return SchedulerNodes("scheduler-0", world.plan, PodClasses(), is_new=True, epoch=epoch)


@pytest.fixture(autouse=True)
def _later(monkeypatch):
    monkeypatch.setattr(cache_recovery, "clock_s", lambda: 1e12)


async def test_the_binders_answer_ends_expired_assumptions():
    world = await World({"uid-a": "n1", "uid-b": ""}).assuming("a", "b", "c")

    await world.cache.recovery.expire()

    tokens = ("scheduler-0/1/0", "scheduler-0/1/1", "scheduler-0/1/2")
    assert world.binder.received("resolve") == [
        ResolveAttempts(("uid-a", "uid-b", "uid-c"), tokens)
    ]
    assert world.states("a", "b", "c") == [CacheState.ADDED, CacheState.EXPIRED, CacheState.EXPIRED]
    world.cache.core.validate()


async def test_the_queue_receives_the_resources_freed_by_expired_assumptions():
    world = await World({"uid-a": "n1", "uid-b": ""}).assuming("a", "b")

    await world.cache.recovery.expire()

    assert world.queue.received("observe") == [ClusterChanges(gone=batch_of("b"))]


async def test_more_assumptions_can_expire_than_deleted_pods_are_remembered(monkeypatch):
    few = CacheSettings(max_gone_remembered=1)
    monkeypatch.setattr(run_parts, "CacheSettings", lambda **_: few)
    world = await World().assuming("a", "b", "c")

    await world.cache.recovery.expire()

    assert world.queue.received("observe") == [ClusterChanges(gone=batch_of("a", "b", "c"))]


async def test_nothing_is_reported_to_the_queue_if_all_pods_are_bound():
    world = await World({"uid-a": "n1"}).assuming("a")

    await world.cache.recovery.expire()

    assert world.queue.calls == []


async def test_the_binder_is_asked_only_if_an_assumption_expired():
    world = await World().assuming()

    await world.cache.recovery.expire()

    assert world.binder.calls == []


async def test_the_cache_expires_assumptions_by_itself_and_runs_on_without_the_binder(
    monkeypatch,
):
    monkeypatch.setattr(cache_recovery, "EXPIRY_S", 0.001)
    later = itertools.count(1e12, 1000.0)
    monkeypatch.setattr(cache_recovery, "clock_s", lambda: next(later))
    world = World()
    world.binder.answers["resolve"] = DeadlineError("binder did not answer")
    await world.assuming("a")

    await until(lambda: len(world.binder.calls) >= 2)

    assert world.cache.core.counts().asked == 1
    world.cache.release()


async def test_attempts_of_earlier_epochs_end_as_the_binder_reports_and_others_stay():
    world = await World().assuming("a", "b")
    await world.cache.assume(AssumeBatch(batch_of("c"), ("n1",), ("scheduler-0/2/7",)))

    held = await world.cache.assumed_by(OWNER)
    await world.cache.end_owner(EndOwner(OWNER, held.uids, ("n1", "")))

    assert held.uids == ("uid-a", "uid-b")
    assert world.states("a", "b", "c") == [CacheState.ADDED, CacheState.INITIAL, CacheState.ASSUMED]


async def test_deleted_unbound_pods_free_their_resources_when_their_scheduler_ends():
    world = World()
    await world.cache.remove_pods(PodRemoval(("uid-a", "uid-b"), revision=1))
    await world.assuming("a", "b")

    await world.cache.end_owner(EndOwner(OWNER, ("uid-a", "uid-b"), ("n1", "")))

    assert world.states("a", "b") == [CacheState.ADDED, CacheState.INITIAL]
    assert world.queue.received("observe") == [ClusterChanges(gone=batch_of("b"))]


async def claim_of_a_pod_deleted_while_assumed():
    """Return a cache that assumed a pod with a claim; the pod was deleted before its bind."""
    facts = storage(waiting("local"), claim("c"), volume("a"))
    world = await World(facts=facts).assuming("p", facts=using("c"))
    assumed = world.cache.state.volumes.assumed_claims
    committed = StorageLog(tuple(world.cache.state.volumes.log))
    await world.cache.remove_pods(PodRemoval(("uid-p",), revision=1))
    assert assumed.storage.claims["default/c"].volume_name == "a"
    return world, assumed, committed


async def test_a_new_cache_sends_earlier_committed_changes_of_claims_to_followers():
    *_, committed = await claim_of_a_pod_deleted_while_assumed()
    world = World(facts=storage(waiting("local"), claim("c"), volume("a")))

    for _ in range(2):
        await world.cache.load_storage(committed)
    await turns()

    (batch,) = world.scheduler.received("apply")
    assert batch.changes == (), "schedulers get them in answers"
    assert world.cache.state.volumes.changes_since(0).changes == committed.changes
    assert (batch.first_seq, batch.count) == (1, len(committed.changes))


async def end_of_the_owner(world):
    held = await world.cache.assumed_by(OWNER)
    await world.cache.end_owner(EndOwner(OWNER, held.uids, ()))
    world.cache.state.volumes.assumed_claims.validate()


async def test_claims_of_a_pod_deleted_while_assumed_are_free_when_its_scheduler_ends():
    world, assumed, _ = await claim_of_a_pod_deleted_while_assumed()
    world.binder.answers["storage_log"] = StorageLog(())

    await end_of_the_owner(world)

    assert assumed.holders() == ()
    assert assumed.storage.claims["default/c"] == claim("c")
    await turns()
    changes = world.cache.state.volumes.changes_since(0).changes
    assert [change.claims[0].is_bound for change in changes] == [True, False]
    kinds = [kind for each in world.scheduler.received("apply") for kind in each.kinds]
    assert kinds.count(STORAGE) == len(changes)


async def test_claims_of_a_pod_deleted_when_bound_stay_bound_when_its_scheduler_ends():
    world, assumed, committed = await claim_of_a_pod_deleted_while_assumed()
    world.binder.answers["storage_log"] = committed

    await end_of_the_owner(world)

    assert assumed.holders() == ()
    assert assumed.storage.claims["default/c"].volume_name == "a"


async def test_claims_held_by_a_running_epoch_are_kept():
    facts = storage(waiting("local"), claim("c"), volume("a"))
    world = await World(facts=facts).assuming("p", epoch=2, facts=using("c"))
    await world.cache.remove_pods(PodRemoval(("uid-p",), revision=1))

    await end_of_the_owner(world)

    assert world.binder.calls == []
    assert world.cache.state.volumes.assumed_claims.keys_of("uid-p") == ("default/c",)


async def test_a_worker_that_is_added_gets_the_cluster_and_then_later_changes():
    world = await World().assuming("a", "b")
    worker = Fake("worker-7", restore=NOTHING, apply=CHANGES_APPLIED)
    world.directory.refs["worker-7"] = worker
    for epoch in (1, 2):
        await world.cache.restream(Restream("worker-7", epoch))
    sent = world.cache.stream.seq

    await world.cache.assume(AssumeBatch(batch_of("c"), ("n2",), ("t-c",)))
    await until(lambda: worker.received("apply"))

    assert world.cache.stream.followers.count("worker-7") == 1
    fills = [(each.seq, each.epoch) for each in worker.received("restore") if not each.part]
    assert fills == [(sent, 1), (sent, 2)]
    assert worker.received("apply")[0].first_seq == sent + 1


async def test_a_new_follower_gets_the_cluster_and_then_later_changes(monkeypatch):
    monkeypatch.setattr(encoding, "PAGE", 2)
    world = await World().assuming("a", "b", "c")
    fresh = follower(world)
    await world.cache.restream(Restream("scheduler-0", 1))
    parts = world.scheduler.received("restore")
    await world.cache.assume(AssumeBatch(batch_of("d"), ("n2",), ("t-d",)))
    await turns()

    for batch in world.scheduler.received("apply"):
        await fresh.receive(batch)
    for part in [*reversed(parts), parts[0]]:
        await fresh.restore(part)

    assert len(parts) > 2, "the state does not fit into one message"
    assert lines(fresh.table) == lines(world.cache.core.placements.store.table)
    assert fresh.applied == 6


async def test_a_new_cache_sends_no_changes_before_it_is_restored():
    world = World()
    world.cache = CacheActor(world.plan, Fakes(world.scheduler), is_new=True)
    await world.assuming("a")
    assert world.scheduler.calls == []

    await world.cache.restream(Restream("scheduler-0", 2))
    await world.cache.assume(AssumeBatch(batch_of("b"), ("n2",), ("t-b",)))
    await turns()

    assert {part.seq for part in world.scheduler.received("restore")} == {3}
    assert [batch.first_seq for batch in world.scheduler.received("apply")] == [4]


async def test_a_new_follower_gets_nothing_that_was_for_an_earlier_epoch():
    world = await World().assuming("a")
    fresh = follower(world, epoch=3)
    await world.cache.restream(Restream("scheduler-0", 2))
    await world.cache.assume(AssumeBatch(batch_of("b"), ("n2",), ("t-b",)))
    await world.cache.restream(Restream("scheduler-0", 3))

    for part in world.scheduler.received("restore"):
        await fresh.restore(part)

    assert fresh.applied == 4
    assert lines(fresh.table) == lines(world.cache.core.placements.store.table)


async def test_parts_of_two_streams_do_not_make_a_complete_one(monkeypatch):
    monkeypatch.setattr(encoding, "PAGE", 2)
    world = await World().assuming("a", "b", "c")
    fresh = follower(world)
    await world.cache.restream(Restream("scheduler-0", 1))
    await world.cache.assume(AssumeBatch(batch_of("d"), ("n2",), ("t-d",)))
    await world.cache.restream(Restream("scheduler-0", 1))
    earlier, later = [
        [each for each in world.scheduler.received("restore") if each.seq == seq] for seq in (5, 6)
    ]

    for part in (*earlier[:-1], *later[-1:]):
        await fresh.restore(part)
    assert fresh.applied == -1
    for part in later:
        await fresh.restore(part)

    assert fresh.applied == 6
    assert lines(fresh.table) == lines(world.cache.core.placements.store.table)


async def test_evicted_pods_are_no_longer_counted():
    world = await World().assuming("a", "b")

    await world.cache.remove_pods(PodRemoval(("uid-a", "uid-unknown")))

    assert world.states("a", "b") == [CacheState.DELETED, CacheState.ASSUMED]


async def test_a_cache_with_wrong_counts_reports_them():
    world = await World().assuming("a")
    assert (await world.cache.compare(NOTHING)).lines == ()
    table = world.cache.core.placements.store.table

    table.columns.pod_count[0] += 1

    assert any("n1" in line for line in (await world.cache.compare(NOTHING)).lines)

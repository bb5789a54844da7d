"""The contents of the cache's messages to its followers, and the remains of an ended attempt."""

import asyncio
import itertools
from dataclasses import replace

import pytest

from roadstead.actors.cache import recovery as cache_recovery
from roadstead.actors.cache import refill
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING, DeadlineError
from roadstead.actors.messages import (
    STORAGE,
    VERSION,
    AssumeBatch,
    RunningPods,
    UpdateAssumptions,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import ClusterChanges, NodeNames
from roadstead.actors.messages.recovery import EndOwner, OwnerEpoch, PodNodes, PodRemoval, Restream
from roadstead.cache import CacheState
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodIdentity
from tests.actors.world import Fake, Fakes, batch_of, identity, plan_of, turns, until
from tests.builders import node, pod
from tests.storage.world import claim, storage, using, volume, waiting

SMALL = pod(cpu=100)
CLAIMS = storage(waiting("local"), claim("c"), volume("v"))
SILENCE = DeadlineError("no answer")


class World:
    """A cache with nodes n1 and n2; its scheduler and worker accept every message."""

    def __init__(self, facts=CLAIMS):
        plan = replace(plan_of(workers=1), cluster=ClusterFacts(storage=facts))
        takes = {"apply": NOTHING, "restore": NOTHING}
        self.scheduler, self.worker = Fake("scheduler-0", **takes), Fake("worker-0", **takes)
        self.binder, self.queue = Fake("binder"), Fake("queue", observe=NOTHING)
        refs = (self.scheduler, self.worker, self.binder, self.queue)
        self.cache = CacheActor(plan, Fakes(*refs))
        self.assumed_claims = self.cache.state.volumes.assumed_claims

    async def with_nodes(self):
        await self.cache.add_nodes(node_batch((node("n1"), node("n2"))))
        return self

    async def assume(self, *names, facts=SMALL, token="t"):
        tokens = tuple(f"{token}-{name}" for name in names)
        pods = batch_of(*names, facts=facts)
        answer = await self.cache.assume(AssumeBatch(pods, ("n1",) * len(names), tokens))
        await turns()
        return answer

    async def update(self, *, forget=(), confirm=(), rows=()):
        await self.cache.update_assumptions(
            UpdateAssumptions(tuple(forget), (), tuple(confirm), rows=tuple(rows))
        )
        await turns()

    def last(self):
        return self.scheduler.received("apply")[-1]

    def is_bound(self):
        """Whether the claim is bound in the cache and in its answers; the stream has the number."""
        held = self.assumed_claims.storage.claims["default/c"].is_bound
        log = self.cache.state.volumes.changes_since(0).changes
        assert log[-1].claims[0].is_bound == held
        sent = self.scheduler.received("apply")
        assert [kind for batch in sent for kind in batch.kinds].count(STORAGE) == len(log)
        assert not any(batch.changes for batch in sent)
        return held


async def test_a_pod_is_sent_with_its_name_if_it_differs_from_the_uid():
    world = await World().with_nodes()
    pods = pod_list([(identity("p"), SMALL), (PodIdentity("default/q", "default", "q"), SMALL)])
    await world.cache.assume(AssumeBatch(pods, ("n1", "n1"), ("t-p", "t-q")))
    await turns()

    assert world.last().uids == ("uid-p", "default/q")
    assert world.last().keys == ("default/p", "")

    await world.update(forget=[("uid-p", "t-p")])
    assert (world.last().kinds, world.last().keys) == (("remove_pod",), ("",))


async def test_an_already_running_pod_is_sent_with_its_start_time():
    world = await World().with_nodes()
    old = PodIdentity("uid-old", "default", "old", started_s=70.0)
    pods = pod_list([(identity("p"), SMALL), (old, SMALL)])

    await world.cache.add_running(RunningPods(pods, ("n1", "n2")))
    assert world.last().started_s == ((1, 70.0),)

    await world.cache.remove_pods(PodRemoval(("uid-old",)))
    await turns()
    assert (world.last().kinds, world.last().started_s) == (("remove_pod",), ())


async def test_changes_of_nodes_have_no_pod_and_with_one_partition_no_partition():
    world = await World().with_nodes()
    assert world.last().partitions == ()

    world.cache.stream.send(world.cache.core.update_node(node("n2", cpu=1)))
    await world.cache.stream.flush()

    assert world.last().kinds == ("update_node",)
    assert world.last().pods == (-1,)
    assert world.last().partitions == ()


async def filled(world):
    """Return the batches that are sent to a restarted scheduler."""
    before = len(world.scheduler.received("restore"))
    await world.cache.restream(Restream("scheduler-0", 1))
    return [part.batch for part in world.scheduler.received("restore")[before:]]


async def test_a_fill_is_numbered_without_gaps_and_ends_with_the_last_change():
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"))
    await world.assume("q")
    await world.update(rows=[("n1", 3), ("n2", 4)])
    assert (world.last().kinds, world.last().versions) == ((VERSION,) * 2, (3, 4))

    batches = await filled(world)

    kinds = [kind for batch in batches for kind in batch.kinds]
    assert [kinds.count(kind) for kind in (STORAGE, "add_node", "add_pod", VERSION)] == [1, 2, 2, 2]
    for batch, after in itertools.pairwise(batches):
        assert batch.first_seq + batch.count == after.first_seq
    assert batches[-1].first_seq + batches[-1].count - 1 == world.cache.stream.seq
    (of_storage,) = [batch for batch in batches if STORAGE in batch.kinds]
    (of_rows,) = [batch for batch in batches if VERSION in batch.kinds]
    assert (of_storage.pods, of_rows.versions) == ((-1,), (3, 4))


async def test_a_node_added_again_has_no_row_version_yet():
    world = await World().with_nodes()
    await world.update(rows=[("n1", 3), ("n2", 4)])
    await world.cache.remove_nodes(NodeNames(("n1",)))
    await world.cache.add_nodes(node_batch((node("n1"),)))

    batches = await filled(world)

    assert [name for batch in batches if VERSION in batch.kinds for name in batch.names] == ["n2"]


async def test_a_forgotten_attempt_frees_its_claims_everywhere():
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"))
    assert world.is_bound()

    await world.update(forget=[("uid-p", "t-p")])

    assert not world.is_bound()


async def test_a_refused_forget_frees_no_claims():
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"))

    await world.update(forget=[("uid-p", "t-other")])

    assert world.is_bound()
    assert world.assumed_claims.keys_of("uid-p") == ("default/c",)


async def test_claims_of_one_of_two_forgotten_attempts_are_freed():
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"))

    await world.update(forget=[("uid-p", "t-other"), ("uid-p", "t-p")])

    assert not world.is_bound()


@pytest.mark.parametrize("node_name", ["", "n1"])
async def test_the_binders_answer_about_an_attempt_decides_on_its_claims(monkeypatch, node_name):
    monkeypatch.setattr(cache_recovery, "clock_s", lambda: 1e12)
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"))
    world.binder.answers["resolve"] = PodNodes((node_name,))

    await world.cache.recovery.expire()
    await turns()

    assert world.is_bound() == bool(node_name)
    assert world.assumed_claims.holders() == ()
    kinds = [kind for batch in world.scheduler.received("apply") for kind in batch.kinds]
    assert ("remove_pod" in kinds) == (not node_name)


async def test_a_binder_answer_about_an_ended_attempt_changes_nothing(monkeypatch):
    monkeypatch.setattr(cache_recovery, "clock_s", lambda: 1e12)
    world = await World().with_nodes()
    await world.assume("forgotten", "again", "over")

    async def forget_meanwhile(ask):
        await world.update(forget=[("uid-forgotten", "t-forgotten"), ("uid-again", "t-again")])
        await world.assume("again", token="later")
        return PodNodes((None,) * len(ask.uids))

    world.binder.answers["resolve"] = forget_meanwhile
    await world.cache.recovery.expire()

    assert world.cache.core.state_of("uid-again") is CacheState.ASSUMED
    assert world.queue.received("observe") == [ClusterChanges(gone=batch_of("over", facts=SMALL))]


@pytest.mark.parametrize("node_name", ["", "n1"])
async def test_claims_of_bound_pods_stay_bound_when_a_scheduler_ends_and_others_are_free(
    node_name,
):
    world = await World().with_nodes()
    await world.assume("p", facts=using("c"), token="scheduler-0/1/t")

    end = EndOwner(OwnerEpoch("scheduler-0", 2), ("uid-p",), (node_name,))
    await world.cache.end_owner(end)
    await turns()

    assert world.is_bound() == bool(node_name)
    assert world.assumed_claims.holders() == ()


async def test_the_queue_receives_the_resources_of_a_pod_deleted_before_it_was_assumed():
    world = await World().with_nodes()
    await world.cache.remove_pods(PodRemoval(("uid-p",), revision=1))
    await world.assume("p", "q")
    assert world.queue.calls == []

    await world.update(forget=[("uid-p", "t-p"), ("uid-q", "t-q")])
    await world.update(forget=[("uid-p", "t-p")])

    assert world.queue.received("observe") == [ClusterChanges(gone=batch_of("p", facts=SMALL))]


@pytest.mark.parametrize(
    ("most", "step_s", "compares"), [(4, 1000.0, True), (3, 1000.0, False), (4, 6.0, False)]
)
async def test_the_cache_compares_itself_with_a_new_one_unless_too_large_or_too_soon(
    monkeypatch, most, step_s, compares
):
    log = []
    later = itertools.count(1e12, step_s)
    monkeypatch.setattr(cache_recovery, "log", lambda who, what, **_: log.append(what))
    monkeypatch.setattr(cache_recovery, "clock_s", lambda: next(later))
    monkeypatch.setattr(cache_recovery, "EXPIRY_S", 0.001)
    monkeypatch.setattr(cache_recovery, "COMPARED_MAX", most)
    world = await World().with_nodes()
    world.binder.answers["resolve"] = SILENCE
    await world.assume("p", "q")

    await until(lambda: log.count("the binder was not reached") >= 3)
    world.cache.release()

    assert ("compared with a rebuilt cache" in log) == compares


async def test_a_crashed_cache_sends_nothing_any_more(monkeypatch):
    monkeypatch.setattr(refill, "PAUSE_S", 0.001)
    monkeypatch.setattr(cache_recovery, "EXPIRY_S", 0.001)
    ended = []

    async def hangs(message):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(type(message).__name__)
            raise

    world = await World().with_nodes()
    world.worker.answers |= {"apply": SILENCE, "restore": hangs}
    await world.assume("p")
    await world.assume("q")
    await until(lambda: world.worker.received("restore"))
    world.scheduler.answers["apply"] = hangs
    world.cache.stream.send(world.cache.core.add_node(node("n3")))
    await turns()

    world.cache.release()
    await turns()

    assert sorted(set(ended)) == ["PackedChanges", "Restore"]
    assert {"cache expiry", "refill worker-0"}.isdisjoint(
        task.get_name() for task in asyncio.all_tasks()
    )
    assert world.cache.core.state_of("uid-p") is CacheState.ASSUMED

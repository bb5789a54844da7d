"""Versions of rows on their way, from the binder's answers to the next bind."""

import asyncio
from dataclasses import replace

import pytest

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.cache.row_versions import KnownVersions, version_batch
from roadstead.actors.messages import Settle, node_batch
from roadstead.actors.seam import NOTHING
from roadstead.actors.worker.actor import WorkerActor
from roadstead.cycle.messages import ClassAsk, EvaluateRequest, ShardAnswer
from roadstead.facts.wire import facts_out
from tests.actors.test_scheduler_actor import World, answers_to
from tests.actors.world import NOBODY, Fake, Fakes, bind_answers, plan_of, until
from tests.builders import node, pod

EVALUATE = EvaluateRequest(2, 9, 0, (ClassAsk(facts_out(pod(cpu=100)), (), ()),))


def test_only_what_is_newer_is_news():
    known = KnownVersions()

    assert known.take([("n1", 3), ("n2", 0)]) == [("n1", 3)]
    assert known.take([("n1", 3), ("n1", 5), ("n1", 4)]) == [("n1", 5)]
    assert (known.of("n1"), known.of("n2")) == (5, 0)
    assert known.among(["n2", "n1"]) == [("n1", 5)]


def test_a_node_that_is_gone_has_no_version():
    known = KnownVersions()
    known.take([("n1", 3)])
    known.drop("n1")
    known.drop("n2")

    assert known.of("n1") == 0


def test_an_answer_without_candidates_has_no_versions():
    assert KnownVersions().tell(ShardAnswer(0, 0, ())).row_versions == ()


def shard(**settings):
    """A worker that a cache feeds."""
    plan = plan_of(shards=1, **settings)
    worker = WorkerActor("worker-0", plan, NOBODY)
    return worker, CacheActor(plan, Fakes(Fake("worker-0", apply=worker.apply)))


@pytest.mark.parametrize(
    ("settings", "told"), [({"conflicts": "version"}, (0, 7)), ({"conflicts": "fit"}, ())]
)
async def test_what_the_cache_is_told_of_rows_comes_with_the_workers_candidates(settings, told):
    worker, cache = shard(**settings)
    await cache.add_nodes(node_batch((node("n1"), node("n2"))))

    answer = await cache.settle(Settle((), (), (), rows=(("n2", 7), ("gone", 9))))
    await asyncio.gather(*cache._streams)

    found = await worker.evaluate(EVALUATE)
    assert found.row_versions == told
    assert answer.worker_seqs == (worker.applied,)


async def test_a_new_worker_learns_the_versions_with_its_rows():
    worker, cache = shard(conflicts="version")
    await cache.add_nodes(node_batch((node("n1"), node("n2"))))
    await cache.settle(Settle((), (), (), rows=(("n2", 7),)))
    await asyncio.gather(*cache._streams)
    seq = worker.applied

    parts = cache._parts(0)

    assert parts[-1] == version_batch(seq, [("n2", 7)])
    assert parts[0].first_seq == seq - 2


async def test_a_bind_names_the_version_that_was_read_and_the_next_one_what_it_learned():
    world = World(["a"], ["b"], conflicts="version")
    versions = {"n1": 4}
    told = []

    def settle(message):
        versions.update(message.rows)
        told.extend(message.rows)
        return world.reached(message)

    async def evaluate(request):
        world.worker._versions.take(versions.items())
        return await world.worker.evaluate(request)

    def refuse(batch):
        found = answers_to(batch, "version", "the node changed")
        return bind_answers([_at(each, 9) for each in found.answers])

    world.cache.answers["settle"] = settle
    world.shard.answers["evaluate"] = evaluate
    world.binder.answers["bind"] = refuse
    async with world:
        await until(lambda: len(world.binder.told("bind")) == 2)
        await world.reports(1)

    first = world.binder.told("bind")[0]
    assert first.read_versions == (4,)
    assert ("n1", 9) in told
    assert world.queue.told("report")[0].given_back[0].reason == "conflict"
    figures = dict((await world.scheduler.status(NOTHING)).figures)
    assert figures["refused version"] >= 1


def _at(answer, row_version):
    return replace(answer, row_version=row_version)


async def test_where_only_fit_counts_nothing_is_told_of_versions():
    async with World(["a"]) as world:
        await world.reports()

    (bind,) = world.binder.told("bind")
    assert (bind.read_versions, bind.transactions) == ((), ())
    assert all(each.rows == () for each in world.cache.told("settle"))

"""Changes sent to a worker: immediately before a request to it, otherwise several per message."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.cache import worker_feed
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.cache.encoding import storage_batch, version_batch
from roadstead.actors.cache.worker_feed import WAIT_S, Joiner, WorkerFeed, join_batches
from roadstead.actors.messages import (
    CHANGES_APPLIED,
    STORAGE,
    ChangesApplied,
    PackedChanges,
    RunningPods,
    node_batch,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import PodRemoval
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.worker.actor import ACTIVE_S, WorkerActor
from roadstead.actors.worker.table_follower import TableFollower
from roadstead.cycle.messages import ScoreRequest
from roadstead.nodes.table import NodeTable
from roadstead.storage import StorageChange
from tests.actors.world import NOBODY, Fake, Fakes, batch_of, lines, plan_of
from tests.builders import GPU, node, pod
from tests.storage.world import claim


async def changes_of(steps):
    """Return the batches that a cache sends to a worker, and the final table.

    steps: pairs of numbers: which change, and of which node. The batches are those sent to a
    scheduler, one for each change, with the contents that schedulers do not get.
    """
    stored = []
    sink = Fake("scheduler-0", apply=CHANGES_APPLIED)
    cache = CacheActor(plan_of(), Fakes(sink, Fake("queue", observe=CHANGES_APPLIED)))
    await cache.add_nodes(node_batch([node(f"n{n}") for n in range(3)]))
    for number, (kind, where) in enumerate(steps):
        name = f"n{where}"
        facts = pod(others={GPU: 1}) if number % 2 else pod(cpu=10 + where)
        if kind == 0 and name in cache.core.placements.nodes:
            batch = batch_of(f"p{number}", f"q{number}", facts=facts)
            await cache.add_running(RunningPods(batch, (name, name)))
        elif kind == 1:
            await cache.remove_pods(PodRemoval((f"uid-p{where}",)))
        elif kind == 2:
            await cache.add_nodes(node_batch([node(name, cpu=1000 * number)]))
        elif kind == 3:
            await cache.remove_nodes(NodeNames((name,)))
        elif kind == 4:
            cache.stream.send_versions([(name, number)])
        elif kind == 5:
            stored.append(StorageChange((claim(f"c{number}"),)))
            cache.stream.send_storage(stored[-1:])
    await cache.stream.flush()
    contents = iter(stored)
    batches = [
        replace(each, changes=(next(contents),)) if STORAGE in each.kinds else each
        for each in sink.received("apply")
    ]
    return batches, cache.core.placements.store.table


@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=12),
    cuts=st.sets(st.integers(1, 14)),
)
def test_changes_applied_together_leave_the_table_of_single_changes(steps, cuts):
    async def follow():
        (nodes, *batches), table = await changes_of(steps)
        # New nodes are sent in a message of their own.
        cuts.update(n for place, b in enumerate(batches) if b.new_nodes for n in (place, place + 1))
        bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(batches)), len(batches)]
        held = TableFollower("worker-0", NodeTable(), 30.0)
        await held.receive(nodes)
        for start, stop in pairwise(bounds):
            if start < stop:
                await held.receive(join_batches(batches[start:stop]))
        assert lines(held.table) == lines(table)
        seq = (nodes, *batches)[-1]
        assert held.applied == seq.first_seq + seq.count - 1

    run_virtual(follow)


def test_a_class_used_in_several_batches_is_sent_once():
    async def joined():
        batches, _ = await changes_of([(0, 1), (4, 2), (5, 0), (0, 1), (0, 2), (0, 1)])
        batches[4] = replace(batches[4], started_s=((1, 7.0),))
        return join_batches(batches[1:])

    batch = run_virtual(joined)

    assert len(batch.classes) == 3
    assert batch.uids[:3] == ("uid-p0", "uid-q0", "")
    assert batch.pods[:4] == (0, 0, -1, -1)
    assert batch.started_s == ((5, 7.0),)
    assert (batch.versions, len(batch.changes)) == ((1,), 1)


def versions(*numbers):
    return [version_batch(n, [(f"n{n}", n)]) for n in numbers]


def sent_by(work):
    """Return the messages of a feed during some work, as (time, numbers of changes)."""
    sent = []

    async def run():
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        feed = WorkerFeed(
            lambda batch: sent.append(
                (round(loop.time() - began_s, 3), batch.first_seq, batch.count)
            ),
            join_batches,
        )
        await work(feed)
        await asyncio.sleep(10)

    run_virtual(run)
    return sent


def test_changes_for_an_unused_worker_wait_for_further_changes():
    async def work(feed):
        for batch in versions(1, 2, 3):
            feed.add(batch)
            await asyncio.sleep(WAIT_S / 4)
        await asyncio.sleep(WAIT_S)
        feed.add(storage_batch(4, [StorageChange()]))

    assert sent_by(work) == [(WAIT_S, 1, 3), (round(2.75 * WAIT_S, 3), 4, 1)]


def test_a_worker_in_use_gets_each_change_immediately():
    async def work(feed):
        one, two, three = versions(1, 2, 3)
        feed.add(one)
        feed.receives_requests = True
        feed.add(two)
        feed.add(three)

    assert sent_by(work) == [(0.0, 1, 2), (0.0, 3, 1)]


def test_a_full_message_of_changes_is_sent_immediately(monkeypatch):
    monkeypatch.setattr(worker_feed, "MAX_WAITING", 2)

    async def work(feed):
        for batch in versions(1, 2, 3):
            feed.add(batch)

    assert sent_by(work) == [(0.0, 1, 2), (WAIT_S, 3, 1)]


def test_dropped_changes_are_not_sent():
    async def work(feed):
        one, two, three = versions(1, 2, 3)
        feed.add(one)
        feed.add(two)
        feed.drop()
        await asyncio.sleep(WAIT_S / 2)
        feed.add(three)

    assert sent_by(work) == [(round(1.5 * WAIT_S, 3), 3, 1)]


def test_nodes_are_sent_immediately_after_the_waiting_changes():
    async def work(feed):
        batches, _ = await changes_of([(0, 1), (2, 4)])
        assert len(batches[2].new_nodes) == 1
        for batch in batches:
            feed.add(batch)

    assert sent_by(work) == [(0.0, 1, 3), (0.0, 4, 2), (0.0, 6, 1)]


def test_a_workers_answer_reports_whether_it_was_used_lately():
    async def run():
        worker = WorkerActor("worker-0", plan_of(workers=1), NOBODY)
        found = []
        for number in range(1, 4):
            if number == 2:
                await worker.score(ScoreRequest(0, 0, ()))
            if number == 3:
                await asyncio.sleep(ACTIVE_S)
            found.append(await worker.apply(PackedChanges.of(versions(number)[0])))
        return found

    assert run_virtual(run) == [
        ChangesApplied(),
        ChangesApplied(receives_requests=True),
        ChangesApplied(),
    ]


def test_changes_for_several_workers_are_joined_once():
    join = Joiner()

    first = join(versions(1, 2))

    assert first == join_batches(versions(1, 2))
    assert join(versions(1, 2)) is first
    assert join(versions(1, 2, 3)) == join_batches(versions(1, 2, 3))
    assert join(versions(2, 3)) == join_batches(versions(2, 3))

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.messages import RunningPods, ViewAsk, node_batch
from roadstead.actors.seam import NOTHING, ActorError, DeadlineError
from roadstead.actors.worker import actor as worker_module
from roadstead.actors.worker.actor import WorkerActor
from roadstead.config.settings import Deadlines
from roadstead.cycle.messages import ClassAsk, EvaluateRequest
from roadstead.facts.wire import facts_out
from tests.actors.world import NOBODY, Fake, Fakes, batch_of, lines, plan_of, turns
from tests.builders import GPU, node, pod
from tests.strategies import ZONE

LATE = Deadlines(call_s=0.02)
"""A deadline that is meant to pass."""


def worker_of(**settings):
    return WorkerActor("worker-0", plan_of(shards=1, **settings), NOBODY)


async def stream():
    """What a cache tells its only worker: (batches of deltas, the table it ends with)."""
    sink = Fake("worker-0", apply=NOTHING)
    cache = CacheActor(plan_of(shards=1), Fakes(sink))
    await cache.add_nodes(node_batch((node("n1"), node("n2", others={GPU: 2}))))
    await cache.add_running(RunningPods(batch_of("p", "q"), ("n1", "n2")))
    await cache.add_nodes(node_batch((node("n3"),)))
    await cache._deliver(cache.core.update_node(node("n1", cpu=9000)))
    await cache.add_running(RunningPods(batch_of("r", facts=pod(others={GPU: 1})), ("n2",)))
    await cache._deliver(cache.core.remove_pods(["uid-p"]))
    await cache._deliver(cache.core.remove_node("n3"))
    return sink.told("apply"), cache.core.placements.store.table


def evaluation(table_version, facts=None, node_count=2):
    ask = ClassAsk(facts_out(facts or pod(cpu=100)))
    return EvaluateRequest(node_count, 10, table_version, (ask,))


async def with_nodes(worker):
    batches, _ = await stream()
    await worker.apply(batches[0])
    return batches


async def test_deltas_in_order_bring_the_table_to_that_of_the_cache():
    worker, (batches, table) = worker_of(), await stream()

    for batch in batches:
        await worker.apply(batch)

    assert lines(worker.table) == lines(table)
    assert worker.applied == batches[-1].first_seq + batches[-1].count - 1


async def test_deltas_that_come_early_wait_for_those_before_them():
    worker, (batches, _) = worker_of(), await stream()

    await worker.apply(batches[1])
    assert (worker.applied, len(worker.table)) == (0, 0)

    await worker.apply(batches[0])
    assert worker.applied == 4


async def test_deltas_that_come_twice_count_once():
    worker, (batches, _) = worker_of(), await stream()
    for batch in (*batches[:2], *batches[:2]):
        await worker.apply(batch)

    worker.table.validate()
    assert worker.applied == 4
    assert lines(worker.table)["n1"]["pod_count"] == 1


async def test_of_deltas_that_are_known_in_part_only_the_news_counts():
    worker, (batches, _) = worker_of(), await stream()
    first, second = batches[:2]
    both = replace(
        second,
        first_seq=1,
        kinds=first.kinds + second.kinds,
        names=first.names + second.names,
        pods=first.pods + second.pods,
        uids=first.uids + second.uids,
        keys=first.keys + second.keys,
        came=first.came,
        came_at=first.came_at,
    )
    await worker.apply(first)

    await worker.apply(both)

    assert worker.applied == 4
    assert lines(worker.table)["n2"]["pod_count"] == 1


@given(st.data())
async def test_any_order_and_any_copies_of_the_deltas_give_one_table(data):
    worker, (batches, table) = worker_of(), await stream()
    copies = data.draw(st.lists(st.sampled_from(range(len(batches))), max_size=5))
    order = data.draw(st.permutations([*range(len(batches)), *copies]))

    for index in order:
        await worker.apply(batches[index])

    assert lines(worker.table) == lines(table)
    worker.table.validate()


async def test_a_gap_that_never_closes_is_an_error_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(worker_module, "MAX_WAITING_DELTAS", 2)
    worker, (batches, _) = worker_of(), await stream()
    await worker.apply(batches[1])
    await worker.apply(batches[2])

    with pytest.raises(ActorError, match="worker-0: delta 1 never came"):
        await worker.apply(batches[3])


async def test_an_evaluation_answers_at_once_where_the_table_is_far_enough():
    worker = worker_of()
    await with_nodes(worker)

    answer = await worker.evaluate(evaluation(2))

    assert answer.node_count == 2
    assert answer.classes[0].waits_for == ""
    assert sorted(answer.rows.names) == ["n1", "n2"]


async def test_an_evaluation_waits_for_the_change_it_asks_for():
    worker = worker_of()
    batches = await with_nodes(worker)
    waiting = asyncio.create_task(worker.evaluate(evaluation(4)))
    await turns()
    assert not waiting.done()

    await worker.apply(batches[1])

    answer = await waiting
    assert answer.node_count == 2


async def test_a_change_that_is_not_yet_enough_wakes_nobody():
    worker = worker_of()
    batches = await with_nodes(worker)
    waiting = asyncio.create_task(worker.evaluate(evaluation(5, node_count=3)))
    await worker.apply(batches[1])
    await turns()
    assert not waiting.done()

    await worker.apply(batches[2])

    assert (await waiting).node_count == 3


async def test_an_evaluation_whose_change_never_comes_ends_at_its_deadline():
    worker = worker_of(deadlines=LATE)
    await with_nodes(worker)

    with pytest.raises(DeadlineError, match=r"worker-0 waited 0\.02 s for change 9, has 2"):
        await worker.evaluate(evaluation(9))


async def test_a_view_waits_as_well():
    worker = worker_of(deadlines=LATE)
    await with_nodes(worker)
    ask = ClassAsk(facts_out(pod(cpu=4001)), (), ())

    view = await worker.view(ViewAsk(2, 2, ask))

    assert sorted(view.names) == ["n1", "n2"]
    assert {each.plugin for each in view.statuses} == {"NodeResourcesFit"}
    with pytest.raises(DeadlineError):
        await worker.view(ViewAsk(2, 3, ask))


async def test_nodes_keep_their_place_in_the_order_of_the_whole_cluster():
    sinks = [Fake(f"worker-{index}", apply=NOTHING) for index in range(2)]
    cache = CacheActor(plan_of(shards=2), Fakes(*sinks))
    nodes = [node(f"n{number}", labels={ZONE: "ab"[number % 2]}) for number in range(6)]
    await cache.add_nodes(node_batch(tuple(nodes[:4])))
    await cache.add_nodes(node_batch(tuple(nodes[4:])))
    worker = worker_of()

    for batch in sinks[1].told("apply"):
        await worker.apply(batch)

    arrivals = dict(zip(worker.table.names, worker.table.arrivals.tolist(), strict=True))
    assert arrivals == {"n1": 1, "n3": 3, "n5": 5}


async def test_a_delta_that_does_not_fit_the_table_is_an_error():
    worker, (batches, _) = worker_of(), await stream()
    for batch in batches[:2]:
        await worker.apply(batch)

    with pytest.raises(KeyError):
        await worker.apply(replace(batches[5], first_seq=5, names=("n9",)))

    assert worker.applied == 4


async def test_status_says_what_the_shard_holds_and_did():
    worker = worker_of()
    await with_nodes(worker)
    await worker.evaluate(evaluation(2))

    status = await worker.status(NOTHING)

    assert status.text == (
        "held 2 nodes of (no zone); had applied 2 changes and answered 1 evaluations"
    )
    assert dict(status.counts) == {"nodes": 2, "evaluations": 1}
    assert [what for what, _ in status.timings_s] == ["evaluate"]


async def test_status_names_a_few_zones():
    sink = Fake("worker-0", apply=NOTHING)
    cache = CacheActor(plan_of(shards=1), Fakes(sink))
    zoned = [node(f"n{zone}", labels={ZONE: f"zone-{zone}"}) for zone in range(6)]
    await cache.add_nodes(node_batch(tuple(zoned)))
    worker = worker_of()
    await worker.apply(sink.told("apply")[0])

    status = await worker.status(NOTHING)

    assert "of zone-0, zone-1, zone-2, zone-3 and 2 more;" in status.text

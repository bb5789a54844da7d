import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import ActorError
from roadstead.actors.messages import CHANGES_APPLIED, PackedChanges, RunningPods, node_batch
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.actors.worker import table_follower
from roadstead.actors.worker.table_follower import TableFollower
from roadstead.cycle.needs import CatchUpTimeoutError
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from tests.actors.world import Fake, Fakes, batch_of, lines, plan_of, turns
from tests.builders import GPU, node, pod


def follower(call_s=30.0):
    return TableFollower("scheduler-0", NodeTable(), call_s)


def scheduler_nodes(call_s=30.0):
    plan = plan_of(deadlines={"call_s": call_s})
    return SchedulerNodes("scheduler-0", plan, PodClasses(), is_new=False, epoch=1)


async def stream():
    """Return what a cache sends to its only follower: (batches of deltas, the final table)."""
    sink = Fake("scheduler-0", apply=CHANGES_APPLIED)
    cache = CacheActor(plan_of(), Fakes(sink))
    await cache.add_nodes(node_batch((node("n1"), node("n2", others={GPU: 2}))))
    await cache.add_running(RunningPods(batch_of("p", "q"), ("n1", "n2")))
    await cache.add_nodes(node_batch((node("n3"),)))
    cache.stream.send(cache.core.update_node(node("n1", cpu=9000)))
    await cache.stream.flush()
    await cache.add_running(RunningPods(batch_of("r", facts=pod(others={GPU: 1})), ("n2",)))
    cache.stream.send(cache.core.remove_pods(["uid-p"]))
    await cache.stream.flush()
    cache.stream.send(cache.core.remove_node("n3"))
    await cache.stream.flush()
    return sink.received("apply"), cache.core.placements.store.table


async def with_nodes(held):
    batches, _ = await stream()
    await held.receive(batches[0])
    return batches


async def test_deltas_in_order_reproduce_the_table_of_the_cache():
    held, (batches, table) = follower(), await stream()

    for batch in batches:
        await held.receive(batch)

    assert lines(held.table) == lines(table)
    assert held.applied == batches[-1].first_seq + batches[-1].count - 1


async def test_early_deltas_wait_for_earlier_ones():
    held, (batches, _) = follower(), await stream()

    await held.receive(batches[1])
    assert (held.applied, len(held.table)) == (0, 0)

    await held.receive(batches[0])
    assert held.applied == 4


async def test_deltas_for_an_earlier_epoch_do_not_wait_for_earlier_ones():
    held = TableFollower("scheduler-0", NodeTable(), 30.0, epoch=2)
    batches, _ = await stream()

    await held.apply(PackedChanges.of(batches[1], epoch=1))
    await held.apply(PackedChanges.of(batches[0], epoch=2))
    assert held.applied == 2

    await held.apply(PackedChanges.of(batches[1], epoch=2))
    assert held.applied == 4


async def test_repeated_deltas_count_once():
    held, (batches, _) = follower(), await stream()
    for batch in (*batches[:2], *batches[:2]):
        await held.receive(batch)

    held.table.validate()
    assert held.applied == 4
    assert lines(held.table)["n1"]["pod_count"] == 1


async def test_a_late_copy_does_not_hide_later_changes():
    held, (batches, _) = follower(), await stream()
    for batch in batches:
        await held.receive(batch)
    numbers = [0, *(batch.first_seq + batch.count - 1 for batch in batches)]
    before = [held.touched.since(number) for number in numbers]
    assert before[-2:] == [{"n3"}, set()]

    for batch in batches:
        await held.receive(batch)
        assert [held.touched.since(number) for number in numbers] == before


async def test_only_the_new_part_of_a_partly_known_batch_is_applied():
    held, (batches, _) = follower(), await stream()
    first, second = batches[:2]
    both = replace(
        second,
        first_seq=1,
        kinds=first.kinds + second.kinds,
        names=first.names + second.names,
        pods=first.pods + second.pods,
        uids=first.uids + second.uids,
        keys=first.keys + second.keys,
        new_nodes=first.new_nodes,
        new_arrivals=first.new_arrivals,
    )
    await held.receive(first)

    await held.receive(both)

    assert held.applied == 4
    assert lines(held.table)["n2"]["pod_count"] == 1


@given(st.data())
async def test_any_order_and_repetition_of_the_deltas_gives_one_table(data):
    held, (batches, table) = follower(), await stream()
    copies = data.draw(st.lists(st.sampled_from(range(len(batches))), max_size=5))
    order = data.draw(st.permutations([*range(len(batches)), *copies]))

    for index in order:
        await held.receive(batches[index])

    assert lines(held.table) == lines(table)
    held.table.validate()


async def test_a_gap_that_never_closes_is_an_error_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(table_follower, "MAX_WAITING_BATCHES", 2)
    held, (batches, _) = follower(), await stream()
    await held.receive(batches[1])
    await held.receive(batches[2])

    with pytest.raises(ActorError, match="scheduler-0: delta 1 never came"):
        await held.receive(batches[3])


async def test_a_caller_that_needs_a_change_waits_until_it_is_applied():
    held = scheduler_nodes()
    batches = await with_nodes(held)
    waiting = asyncio.create_task(held.catch_up(4))
    await turns()
    assert not waiting.done()

    await held.receive(batches[1])

    await waiting


async def test_a_caller_waits_for_a_missing_change_until_the_deadline():
    held = scheduler_nodes(call_s=0.02)
    await with_nodes(held)

    late = r"scheduler-0 waited 0\.02 s for change 9, has 2"
    with pytest.raises(CatchUpTimeoutError, match=late):
        await held.catch_up(9)


async def test_a_delta_that_contradicts_the_table_is_an_error():
    held, (batches, _) = follower(), await stream()
    for batch in batches[:2]:
        await held.receive(batch)

    with pytest.raises(KeyError):
        await held.receive(replace(batches[5], first_seq=5, names=("n9",)))

    assert held.applied == 4

import asyncio

import pytest

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING, ActorLostError
from roadstead.actors.messages import (
    CHANGES_APPLIED,
    AssumeBatch,
    ChangesApplied,
    NominateBatch,
    RunningPods,
    UpdateAssumptions,
    node_batch,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.worker.table_follower import TableFollower
from roadstead.cache import CacheState
from roadstead.nodes.table import NodeTable
from roadstead.placements import DeltaKind
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.plain_data import pack, unpack
from tests.actors.world import NOBODY, Fake, Fakes, batch_of, lines, plan_of, turns, until
from tests.builders import node, pod
from tests.strategies import ZONE

ZONED = [node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"})]

ASKED = ChangesApplied(receives_requests=True)


class World:
    """A cache with a fake scheduler and a fake worker."""

    def __init__(self, answer=ASKED, **settings):
        self.followers = [Fake("scheduler-0", apply=answer), Fake("worker-0", apply=answer)]
        others = (*self.followers, Fake("queue", observe=NOTHING))
        self.cache = CacheActor(plan_of(workers=1, **settings), Fakes(*others))

    async def with_nodes(self, *nodes):
        await self.cache.add_nodes(node_batch(nodes or tuple(ZONED)))
        return self

    def streamed(self, follower=0):
        """Return (number, kind, node) of every delta that was sent to a follower."""
        return [
            (seq, kind, name)
            for batch in self.followers[follower].received("apply")
            for seq, (kind, name) in enumerate(
                [
                    *(("add_node", name) for name in batch.new_nodes.names),
                    *zip(batch.kinds, batch.names, strict=True),
                ],
                start=batch.first_seq,
            )
        ]

    async def assume(self, *names, on="a1"):
        tokens = tuple(f"t-{name}" for name in names)
        answer = await self.cache.assume(AssumeBatch(batch_of(*names), (on,) * len(names), tokens))
        await turns()
        return answer

    async def update(self, *, forget=(), finish=(), confirm=()):
        def pairs(names):
            return tuple((f"uid-{name}", f"t-{name}") for name in names)

        message = UpdateAssumptions(
            pairs(forget), pairs(finish), tuple(f"uid-{name}" for name in confirm)
        )
        answer = await self.cache.update_assumptions(message)
        await turns()
        self.cache.core.validate()
        return answer

    def state_of(self, name):
        return self.cache.core.state_of(f"uid-{name}")


async def test_every_follower_is_sent_every_change_under_the_same_numbers():
    world = await World().with_nodes()
    await world.assume("p", on="b1")

    assert world.streamed(0) == world.streamed(1)
    assert world.streamed(0) == [(1, "add_node", "a1"), (2, "add_node", "b1"), (3, "add_pod", "b1")]


async def test_nodes_of_a_partition_are_sent_with_its_number():
    scheduler = Fake("scheduler-0", apply=CHANGES_APPLIED)
    cache = CacheActor(plan_of(mode="partitioned"), Fakes(scheduler))
    await cache.add_nodes(node_batch(tuple(ZONED)))

    await cache.add_nodes(node_batch((node("b2", labels={ZONE: "b"}),)))

    first, second = scheduler.received("apply")
    assert sorted(first.partitions) == [0, 1]
    assert second.partitions == first.partitions[1:]


async def test_adding_nodes_waits_until_the_schedulers_have_applied_them():
    gate = asyncio.Event()

    async def apply(batch):
        await gate.wait()
        return NOTHING

    world = World(answer=apply)
    adding = asyncio.create_task(world.with_nodes())
    await turns()
    assert not adding.done()

    gate.set()

    await adding


async def test_nodes_added_twice_are_streamed_once():
    world = await (await World().with_nodes()).with_nodes()

    assert len(world.streamed()) == 2


async def test_running_pods_are_counted_where_they_run():
    world = await World().with_nodes()

    await world.cache.add_running(RunningPods(batch_of("p", "q"), ("a1", "b1")))

    assert world.state_of("p") is CacheState.ADDED
    assert world.streamed()[2:] == [(3, "add_pod", "a1"), (4, "add_pod", "b1")]


async def test_assumed_pods_are_streamed_and_the_answer_has_the_change_number():
    world = await World().with_nodes()

    answer = await world.assume("p", "q")

    assert (answer.refused, answer.seq) == ((), 4)
    assert world.streamed()[2:] == [(3, "add_pod", "a1"), (4, "add_pod", "a1")]


async def test_an_answer_does_not_wait_for_followers():
    world = await World().with_nodes()
    world.followers[0].answers["apply"] = lambda batch: asyncio.Event().wait()

    answer = await asyncio.wait_for(world.assume("p"), 30)

    assert answer.seq == 3
    world.cache.release()


async def test_a_repeated_assumption_is_accepted_and_streamed_once():
    world = await World().with_nodes()

    first, second = await world.assume("p"), await world.assume("p")

    assert first == second
    assert len(world.streamed()) == 3


async def test_an_assumption_of_another_attempt_is_refused_by_its_token():
    world = await World().with_nodes()
    await world.assume("p")

    answer = await world.cache.assume(
        AssumeBatch(batch_of("p", "q"), ("b1", "b1"), ("t-other", "t-q"))
    )

    ((token, why),) = answer.refused
    assert token == "t-other"
    assert "assumed" in why
    assert world.cache.core.node_of("uid-p") == "a1"
    assert world.cache.core.node_of("uid-q") == "b1"


async def test_a_forgotten_pod_is_removed_from_the_tables():
    world = await World().with_nodes()
    await world.assume("p")

    answer = await world.update(forget=["p"])

    assert world.streamed()[-1] == (4, "remove_pod", "a1")
    assert answer.seq == 4
    assert world.state_of("p") is CacheState.INITIAL


async def test_a_repeated_forget_is_streamed_once():
    world = await World().with_nodes()
    await world.assume("p")

    first, second = await world.update(forget=["p"]), await world.update(forget=["p"])

    assert first == second


async def test_a_confirmed_pod_stays_and_changes_nothing_for_the_followers():
    world = await World().with_nodes()
    await world.assume("p")
    await world.update(finish=["p"])

    answer = await world.update(confirm=["p"])

    assert world.state_of("p") is CacheState.ADDED
    assert answer.seq == 3


async def test_a_confirmed_pod_can_not_be_forgotten():
    world = await World().with_nodes()
    await world.assume("p")
    await world.update(confirm=["p"])

    await world.update(forget=["p"])

    assert world.state_of("p") is CacheState.ADDED


async def test_confirming_nothing_returns_the_number_of_the_last_change():
    world = await World().with_nodes()

    assert (await world.update()).seq == 2


async def test_deltas_encode_each_class_once_and_pods_by_its_index():
    world = await World().with_nodes()
    big = pod(cpu=2000)
    await world.cache.add_running(RunningPods(batch_of("x", facts=big), ("a1",)))

    await world.assume("p", "q")

    batch = world.followers[0].received("apply")[-1]
    assert (len(batch.classes), batch.pods, batch.nodes) == (1, (0, 0), ())


async def test_a_removed_node_removes_its_pods_and_leaves_its_partition():
    world = World(mode="partitioned")
    await world.with_nodes()
    await world.assume("p")

    await world.cache.remove_nodes(NodeNames(("a1",)))

    assert [kind for _, kind, _ in world.streamed()[3:]] == ["remove_pod", "remove_node"]
    with pytest.raises(KeyError):
        world.cache.state.partitioning.partition_of("a1")


async def test_every_type_of_delta_updates_a_follower_to_the_state_of_the_cache():
    follower = TableFollower("scheduler-0", NodeTable(), 1.0)
    crossing = Fake("scheduler-0", apply=lambda batch: follower.apply(crossed(batch)))
    cache = CacheActor(plan_of(), Fakes(crossing))
    await cache.add_nodes(node_batch(tuple(ZONED)))
    await cache.add_running(RunningPods(batch_of("p", "q"), ("a1", "b1")))
    cache.stream.send(cache.core.update_node(node("a1", cpu=9000, labels={ZONE: "a"})))
    await cache.stream.flush()
    urgent = pod(cpu=100, priority=3)
    for nodes in (("a1",), ("",), ("b1",)):
        await cache.nominate(NominateBatch(batch_of("u", facts=urgent), nodes, (True,)))
    cache.stream.send(cache.core.remove_node("b1"))
    await cache.stream.flush()
    await cache.add_nodes(node_batch(ZONED))
    cache.stream.send(cache.core.remove_node("b1"))
    await cache.stream.flush()
    await cache.nominate(NominateBatch(batch_of("u", facts=urgent), ("a1",), (False,), ("uid-p",)))
    await cache.stream.flush()

    assert follower.table.nominations.to("a1") == {follower.table.classes.pod_class(urgent): 1}
    assert [*lines(follower.table)] == ["a1"]
    assert lines(follower.table) == lines(cache.core.placements.store.table)
    assert {DeltaKind(kind) for batch in crossing.received("apply") for kind in batch.kinds} == set(
        DeltaKind
    )


def crossed(batch):
    return from_wire(type(batch), unpack(pack(to_wire(batch))))


async def test_a_scheduler_that_misses_changes_is_in_the_status_and_stops_the_cache():
    world = await World().with_nodes()
    world.followers[0].answers["apply"] = ActorLostError("scheduler-0 is gone")
    await world.assume("p")

    status = await world.cache.status(NOTHING)

    assert status.error == "scheduler-0 no longer applies changes: scheduler-0 is gone"
    with pytest.raises(RoadsteadError, match="scheduler-0 is gone"):
        await world.assume("q", on="b1")


async def test_a_worker_that_rejects_changes_gets_no_more_and_stops_nothing():
    world = await World().with_nodes()
    world.followers[1].answers["apply"] = ActorLostError("worker-0 is gone")

    await world.assume("p")
    await until(lambda: "worker-0" in world.cache.stream.unfilled)
    await world.assume("q", on="b1")

    assert (await world.cache.status(NOTHING)).error == ""
    assert [seq for seq, _, _ in world.streamed(0)] == [1, 2, 3, 4]
    assert {seq for seq, _, _ in world.streamed(1)} == {1, 2, 3}


async def test_a_scheduler_that_never_started_is_in_the_status():
    cache = CacheActor(plan_of(), NOBODY)

    await cache.add_nodes(node_batch((ZONED[0],)))

    error = (await cache.status(NOTHING)).error
    assert error == "scheduler-0 no longer applies changes: there is no actor scheduler-0"


async def test_status_reports_the_contents_of_the_cache():
    world = await World().with_nodes()
    await world.cache.add_running(RunningPods(batch_of("p"), ("a1",)))
    await world.assume("q")

    status = await world.cache.status(NOTHING)

    assert status.text == "held 2 nodes, 1 assumed and 1 confirmed pods; had streamed 4 changes"
    assert status.error == ""

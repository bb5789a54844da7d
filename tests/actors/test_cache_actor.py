import asyncio

import pytest

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.messages import (
    AssumeBatch,
    Nominations,
    RunningPods,
    Settle,
    node_batch,
)
from roadstead.actors.seam import NOTHING, ActorLostError
from roadstead.actors.worker.actor import WorkerActor
from roadstead.cache import PodState
from roadstead.placements import DeltaKind
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from roadstead.protocol.errors import RoadsteadError
from tests.actors.world import NOBODY, Fake, Fakes, batch_of, lines, plan_of, turns
from tests.builders import node, pod
from tests.strategies import ZONE

ZONED = [node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"})]


class World:
    """A cache over fake workers, one zone each."""

    def __init__(self, shards=2, answer=NOTHING):
        self.workers = [Fake(f"worker-{index}", apply=answer) for index in range(shards)]
        self.cache = CacheActor(plan_of(shards=shards), Fakes(*self.workers))

    async def with_nodes(self, *nodes):
        await self.cache.add_nodes(node_batch(nodes or tuple(ZONED)))
        return self

    def streamed(self, worker):
        """(number, kind, node) of every delta that a worker was told."""
        return [
            (seq, kind, name)
            for batch in self.workers[worker].told("apply")
            for seq, (kind, name) in enumerate(
                [
                    *(("add_node", name) for name in batch.came.names),
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

    async def settle(self, *, forget=(), finish=(), confirm=()):
        def pairs(names):
            return tuple((f"uid-{name}", f"t-{name}") for name in names)

        message = Settle(pairs(forget), pairs(finish), tuple(f"uid-{name}" for name in confirm))
        answer = await self.cache.settle(message)
        await turns()
        self.cache.core.validate()
        return answer

    def state_of(self, name):
        return self.cache.core.state_of(f"uid-{name}")


async def test_every_zone_goes_to_a_worker_with_its_own_numbers():
    world = await World().with_nodes()

    assert world.streamed(0) == [(1, "add_node", "a1")]
    assert world.streamed(1) == [(1, "add_node", "b1")]


async def test_adding_nodes_waits_until_the_workers_have_them():
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


async def test_nodes_that_come_twice_are_told_once():
    world = await (await World().with_nodes()).with_nodes()

    assert len(world.streamed(0)) == len(world.streamed(1)) == 1


async def test_a_late_node_joins_the_worker_of_its_zone():
    world = await World().with_nodes(*ZONED, node("a2", labels={ZONE: "a"}))
    late = node("b2", labels={ZONE: "b"})

    await world.with_nodes(late)

    assert [name for _, _, name in world.streamed(1)] == ["b1", "b2"]


async def test_running_pods_are_counted_where_they_run():
    world = await World().with_nodes()

    await world.cache.add_running(RunningPods(batch_of("p", "q"), ("a1", "b1")))

    assert world.state_of("p") is PodState.ADDED
    assert world.streamed(0)[-1] == (2, "add_pod", "a1")
    assert world.streamed(1)[-1] == (2, "add_pod", "b1")


async def test_assumed_pods_go_to_their_worker_only_and_the_answer_says_how_far_each_is():
    world = await World().with_nodes()

    answer = await world.assume("p", "q")

    assert (answer.refused, answer.worker_seqs) == ((), (3, 1))
    assert world.streamed(0)[1:] == [(2, "add_pod", "a1"), (3, "add_pod", "a1")]
    assert len(world.streamed(1)) == 1


async def test_an_answer_does_not_wait_for_workers():
    world = await World().with_nodes()
    world.workers[0].answers["apply"] = lambda batch: asyncio.Event().wait()

    answer = await asyncio.wait_for(world.assume("p"), 30)

    assert answer.worker_seqs == (2, 1)
    for task in world.cache._streams:
        task.cancel()


async def test_the_same_assumption_again_is_accepted_and_told_once():
    world = await World().with_nodes()

    first, second = await world.assume("p"), await world.assume("p")

    assert first == second
    assert len(world.streamed(0)) == 2


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


async def test_a_forgotten_pod_leaves_its_worker_again():
    world = await World().with_nodes()
    await world.assume("p")

    answer = await world.settle(forget=["p"])

    assert world.streamed(0)[-1] == (3, "remove_pod", "a1")
    assert answer.worker_seqs == (3, 1)
    assert world.state_of("p") is PodState.INITIAL


async def test_what_is_forgotten_twice_is_told_once():
    world = await World().with_nodes()
    await world.assume("p")

    first, second = await world.settle(forget=["p"]), await world.settle(forget=["p"])

    assert first == second


async def test_a_confirmed_pod_stays_and_changes_nothing_for_the_workers():
    world = await World().with_nodes()
    await world.assume("p")
    await world.settle(finish=["p"])

    answer = await world.settle(confirm=["p"])

    assert world.state_of("p") is PodState.ADDED
    assert answer.worker_seqs == (2, 1)


async def test_a_confirmed_pod_is_not_forgotten_any_more():
    world = await World().with_nodes()
    await world.assume("p")
    await world.settle(confirm=["p"])

    await world.settle(forget=["p"])

    assert world.state_of("p") is PodState.ADDED


async def test_settling_nothing_says_how_far_each_worker_is():
    world = await World().with_nodes()

    assert (await world.settle()).worker_seqs == (1, 1)


async def test_deltas_keep_classes_once_and_pods_by_their_place():
    world = await World().with_nodes()
    big = pod(cpu=2000)
    await world.cache.add_running(RunningPods(batch_of("x", facts=big), ("a1",)))

    await world.assume("p", "q")

    batch = world.workers[0].told("apply")[-1]
    assert (len(batch.classes), batch.pods, batch.nodes) == (1, (0, 0), ())


async def test_a_removed_node_takes_its_pods_along_and_leaves_its_shard():
    world = await World().with_nodes()
    await world.assume("p")
    deltas = world.cache.core.remove_node("a1")

    await world.cache._deliver(deltas)

    assert [kind for _, kind, _ in world.streamed(0)[2:]] == ["remove_pod", "remove_node"]
    with pytest.raises(KeyError):
        world.cache.sharding.shard_of("a1")


async def test_every_kind_of_delta_brings_a_worker_to_the_state_of_the_cache():
    worker = WorkerActor("worker-0", plan_of(shards=1), NOBODY)
    crossing = Fake("worker-0", apply=lambda batch: worker.apply(crossed(batch)))
    cache = CacheActor(plan_of(shards=1), Fakes(crossing))
    await cache.add_nodes(node_batch(tuple(ZONED)))
    await cache.add_running(RunningPods(batch_of("p", "q"), ("a1", "b1")))
    await cache._deliver(cache.core.update_node(node("a1", cpu=9000, labels={ZONE: "a"})))
    urgent = pod(cpu=100, priority=3)
    for nodes in (("a1",), ("",), ("b1",)):
        await cache.nominate(Nominations(batch_of("u", facts=urgent), nodes, (True,)))
    await cache._deliver(cache.core.remove_node("b1"))
    await cache.add_nodes(node_batch(ZONED))
    await cache._deliver(cache.core.remove_node("b1"))
    await cache.nominate(Nominations(batch_of("u", facts=urgent), ("a1",), (False,), ("uid-p",)))
    await cache._deliver(())

    assert worker.table.nominations.to("a1") == {worker.table.classes.info(urgent): 1}
    assert [*lines(worker.table)] == ["a1"]
    assert lines(worker.table) == lines(cache.core.placements.store.table)
    assert {DeltaKind(kind) for batch in crossing.told("apply") for kind in batch.kinds} == set(
        DeltaKind
    )


def crossed(batch):
    return from_wire(type(batch), unpack(pack(to_wire(batch))))


async def test_a_worker_that_takes_no_more_changes_is_told_in_status_and_stops_the_cache():
    world = await World().with_nodes()
    world.workers[0].answers["apply"] = ActorLostError("worker-0 is gone")
    await world.assume("p")

    status = await world.cache.status(NOTHING)

    assert status.error == "worker-0 no longer takes changes: worker-0 is gone"
    with pytest.raises(RoadsteadError, match="worker-0 is gone"):
        await world.assume("q", on="b1")


async def test_a_worker_that_was_never_there_is_told_in_status():
    cache = CacheActor(plan_of(shards=1), NOBODY)

    await cache.add_nodes(node_batch((ZONED[0],)))

    error = (await cache.status(NOTHING)).error
    assert error == "worker-0 no longer takes changes: there is no actor worker-0"


async def test_status_says_what_the_cache_holds():
    world = await World().with_nodes()
    await world.cache.add_running(RunningPods(batch_of("p"), ("a1",)))
    await world.assume("q")

    status = await world.cache.status(NOTHING)

    assert status.text == "held 2 nodes, 1 assumed and 1 confirmed pods; had streamed 4 changes"
    assert status.error == ""

"""Concurrent schedulers each hold all nodes: one stream of changes, and states of any age."""

import pytest

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.cache.encoding import version_batch
from roadstead.actors.drive import drive
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import CHANGES_APPLIED, AssumeBatch, node_batch
from roadstead.actors.messages.recovery import Restream
from roadstead.actors.scheduler import scheduler_nodes
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.needs import ApplyWaiting, CatchUpTimeoutError, YieldToMessages
from roadstead.cycle.scheduling_cycle import decide_batch, with_locked_table
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_class import PodClasses
from roadstead.run import build_profiles
from tests.actors.world import Fake, Fakes, batch_of, identity, lines, plan_of, turns
from tests.builders import node, pod
from tests.strategies import ZONE

ZONED = [node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"})]
STALE = {"schedulers": 2, "staleness_s": 5.0}


class World:
    """A cache with two schedulers, of which the first one stores nodes as in a run."""

    def __init__(self, *, is_new=False, **settings):
        self.plan = plan_of(**({"schedulers": 2} | settings))
        self.fakes = [
            Fake(f"scheduler-{n}", apply=CHANGES_APPLIED, restore=NOTHING) for n in range(2)
        ]
        self.cache = CacheActor(self.plan, Fakes(*self.fakes))
        self.classes = PodClasses()
        self.profiles = build_profiles(self.plan, self.classes)
        self.nodes = SchedulerNodes("scheduler-0", self.plan, self.classes, is_new=is_new, epoch=1)
        self.cycle = BatchBuilder(self.nodes.table, self.profiles, TieBreak("first"))
        self._passed_on = 0

    async def with_nodes(self, *nodes):
        await self.cache.add_nodes(node_batch(nodes or tuple(ZONED)))
        return self

    async def assume(self, name, on="a1"):
        await self.cache.assume(AssumeBatch(batch_of(name), (on,), (f"t-{name}",)))
        await turns()

    async def pass_on(self):
        """Deliver the first scheduler's changes to its table, or queue them there."""
        batches = self.fakes[0].received("apply")
        for batch in batches[self._passed_on :]:
            await self.nodes.receive(batch)
        self._passed_on = len(batches)

    def waiting(self, name):
        pod_class, who = self.classes.pod_class(pod(cpu=100)), identity(name)
        signature = self.profiles["default-scheduler"].signature_of(pod_class, who.uid)
        return PodInCycle(who.uid, who.key, pod_class, signature)

    async def decide(self, mine):
        """Decide a batch of one pod on the first scheduler's table."""

        def decide(batch):
            yield YieldToMessages()
            return [batch.decide(mine)], 1

        async def handle(need):
            if need == ApplyWaiting():
                await self.nodes.apply_waiting()
            return 0.0

        def batch():
            decisions, _ = yield from decide_batch(self.nodes, self.cycle, [mine], decide)
            self.row_versions = self.nodes.row_versions(decisions)
            return decisions

        return await drive(with_locked_table(self.nodes, batch()), handle)

    def counted(self):
        return sum(self.nodes.table.row_facts(name)["pod_count"] for name in ("a1", "b1"))


async def test_every_scheduler_is_sent_every_change_under_the_same_numbers():
    world = await World().with_nodes()
    await world.assume("p")

    first, second = (fake.received("apply") for fake in world.fakes)

    assert first == second
    assert [batch.first_seq for batch in first] == [1, 3]
    assert world.cache.stream.seq == 3


async def test_a_new_scheduler_gets_the_whole_state_and_the_others_nothing():
    world = await World(is_new=True).with_nodes()
    await world.assume("p")

    await world.cache.restream(Restream("scheduler-0", 1))

    for part in world.fakes[0].received("restore"):
        await world.nodes.restore(part)
    assert lines(world.nodes.table) == lines(world.cache.core.placements.store.table)
    assert world.fakes[1].received("restore") == []


async def test_the_partition_of_a_node_is_sent_with_the_node():
    world = await World(mode="partitioned").with_nodes()
    await world.with_nodes(node("a2", labels={ZONE: "a"}))
    await world.pass_on()

    of = world.nodes.partition_of
    assert of == {
        name: world.cache.state.partitioning.partition_of(name) for name in ("a1", "b1", "a2")
    }
    assert of["a1"] != of["b1"]


async def test_shards_of_removed_nodes_are_forgotten(monkeypatch):
    monkeypatch.setattr(scheduler_nodes, "SPARE_NAMES", 0)
    world = await World(mode="partitioned").with_nodes()
    await world.pass_on()
    world.nodes.partition_of |= dict.fromkeys(("c1", "c2", "c3"), 0)

    await world.nodes.catch_up(2)

    assert sorted(world.nodes.partition_of) == ["a1", "b1"]


async def test_without_staleness_changes_are_applied_on_arrival():
    world = await World().with_nodes()
    await world.pass_on()
    await world.nodes.catch_up(2)

    await world.assume("p")
    await world.pass_on()

    assert world.counted() == 1


async def test_a_stale_state_stays_as_read_until_it_is_read_again():
    world = await World(**STALE).with_nodes()
    await world.pass_on()
    await world.nodes.catch_up(2)

    await world.assume("p")
    await world.pass_on()
    assert world.counted() == 0

    await world.nodes.catch_up(3)
    assert world.counted() == 1


async def test_decisions_on_a_stale_state_stay_on_it_beside_waiting_changes():
    world = await World(**STALE).with_nodes()
    await world.pass_on()
    await world.nodes.catch_up(2)
    mine = world.waiting("mine")
    await world.assume("other")
    await world.pass_on()

    decisions = await world.decide(mine)
    await world.assume("mine", on=decisions[0].node_name)
    await world.pass_on()
    assert world.counted() == 1

    await world.nodes.catch_up(4)
    assert world.counted() == 2
    assert not world.nodes.tentative


async def test_a_stale_state_is_updated_if_too_many_changes_wait(monkeypatch):
    monkeypatch.setattr(scheduler_nodes, "MAX_WAITING_BATCHES", 4)
    world = await World(**STALE).with_nodes()
    await world.pass_on()
    await world.nodes.catch_up(2)

    for name in "pqr":
        await world.assume(name)
    await world.pass_on()

    assert world.counted() == 3


async def test_a_table_that_misses_its_required_change_is_not_ready():
    world = await World(deadlines={"call_s": 0.01}).with_nodes()

    with pytest.raises(CatchUpTimeoutError, match="scheduler-0 waited"):
        await world.nodes.catch_up(2)


async def test_a_row_version_is_that_of_the_state_used_for_the_decision():
    world = await World(**STALE, conflicts="version").with_nodes()
    await world.pass_on()
    versions = version_batch(world.nodes.applied + 1, [("a1", 7), ("b1", 8)])
    await world.nodes.receive(versions)
    await world.nodes.catch_up(2)
    mine = world.waiting("mine")

    decisions = await world.decide(mine)

    assert decisions[0].node_name == "a1"
    assert world.row_versions == {"a1": 7}

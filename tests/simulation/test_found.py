"""Bugs that simulated runs found, each as the smallest history that shows it."""

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import AssumeBatch, UpdateAssumptions, node_batch
from roadstead.actors.messages.changes import ClusterChanges, NodeNames
from roadstead.actors.messages.recovery import EndOwner, OwnerEpoch, PodRemoval
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.nodes.pod_class import PodClasses
from tests.actors.world import Fake, Fakes, batch_of, plan_of
from tests.builders import node


class Cluster:
    """A cache that feeds one scheduler's table and sends messages to a queue."""

    def __init__(self, **settings):
        plan = plan_of(**settings)
        self.nodes = SchedulerNodes("scheduler-0", plan, PodClasses(), is_new=False, epoch=1)
        self.queue = Fake("queue", observe=NOTHING)
        feeds = Fake("scheduler-0", apply=self.nodes.apply)
        self.cache = CacheActor(plan, Fakes(feeds, self.queue))

    async def with_nodes(self, *names):
        for name in names:
            await self.cache.add_nodes(node_batch((node(name),)))
        return self

    async def update(self, **what):
        parts = {"finish": (), "confirm": (), "forget": ()} | what
        await self.cache.update_assumptions(UpdateAssumptions(**parts))
        await self.cache.stream.flush()

    async def assume(self, name, token):
        await self.cache.assume(AssumeBatch(batch_of(name), ("n1",), (token,)))


async def test_a_version_reported_while_its_node_was_removed_is_sent_when_the_node_returns():
    cluster = await Cluster(conflicts="version").with_nodes("n1", "n2")
    await cluster.cache.remove_nodes(NodeNames(("n2",)))
    await cluster.update(rows=(("n2", 7),))
    await cluster.with_nodes("n2")

    await cluster.update(rows=(("n2", 7),))

    assert cluster.nodes._versions.of(["n2"]) == [("n2", 7)]


async def deleted_and_then_assumed():
    """A pod that was deleted before the cache got the scheduler's assumption."""
    cluster = await Cluster().with_nodes("n1")
    await cluster.cache.remove_pods(PodRemoval(("uid-a",), revision=1))
    await cluster.assume("a", "scheduler-0/1/1")
    assert cluster.cache.core.node_of("uid-a") == "n1"
    return cluster


async def test_resources_of_a_deleted_pod_are_reported_when_it_is_forgotten():
    cluster = await deleted_and_then_assumed()

    await cluster.update(forget=(("uid-a", "scheduler-0/1/1"),))
    await cluster.update(forget=(("uid-a", "scheduler-0/1/1"),))

    assert cluster.queue.received("observe") == [ClusterChanges(gone=batch_of("a"))]
    cluster.cache.release()


async def test_resources_of_a_deleted_pod_are_reported_when_its_scheduler_ends():
    cluster = await deleted_and_then_assumed()
    owner = OwnerEpoch("scheduler-0", 2)

    await cluster.cache.end_owner(EndOwner(owner, ("uid-a",), (None,)))

    assert cluster.queue.received("observe") == [ClusterChanges(gone=batch_of("a"))]
    cluster.cache.release()


async def test_the_cache_does_not_report_forgotten_pods_that_are_not_deleted():
    cluster = await Cluster().with_nodes("n1")
    await cluster.assume("a", "scheduler-0/1/1")

    await cluster.update(forget=(("uid-a", "scheduler-0/1/1"),))

    assert cluster.queue.calls == []
    cluster.cache.release()

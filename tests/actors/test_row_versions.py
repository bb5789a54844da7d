"""Row versions in messages, from the binder's answers to the next bind."""

from dataclasses import replace

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.cache.encoding import version_batch
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import CHANGES_APPLIED, UpdateAssumptions, node_batch
from tests.actors.test_scheduler_actor import World, answers_to
from tests.actors.world import Fake, Fakes, bind_answers, plan_of, until
from tests.builders import node


async def test_row_versions_are_streamed_as_numbered_changes():
    scheduler = Fake("scheduler-0", apply=CHANGES_APPLIED)
    cache = CacheActor(plan_of(conflicts="version"), Fakes(scheduler))
    await cache.add_nodes(node_batch((node("n1"), node("n2"))))

    answer = await cache.update_assumptions(
        UpdateAssumptions((), (), (), rows=(("n2", 7), ("gone", 9)))
    )
    await cache.stream.flush()

    assert scheduler.received("apply")[-1] == version_batch(3, [("n2", 7)])
    assert answer.seq == 3


async def test_a_new_scheduler_gets_the_versions_after_its_rows():
    cache = CacheActor(
        plan_of(conflicts="version"), Fakes(Fake("scheduler-0", apply=CHANGES_APPLIED))
    )
    await cache.add_nodes(node_batch((node("n1"), node("n2"))))
    await cache.update_assumptions(UpdateAssumptions((), (), (), rows=(("n2", 7),)))
    await cache.stream.flush()

    parts = cache.encoder.cluster_state(cache.stream.seq)

    assert parts[-1] == version_batch(3, [("n2", 7)])
    assert parts[0].first_seq == 1


async def test_a_bind_names_the_read_version_and_the_next_one_the_updated_version():
    world = World(["a"], ["b"], conflicts="version")
    read_versions = []

    def update_once(message):
        read_versions.extend(message.rows)
        return world.counts.update_assumptions(message)

    def refuse(batch):
        found = answers_to(batch, "version", "the node changed")
        return bind_answers([_at(each, 9) for each in found.answers])

    world.cache.answers["update_assumptions"] = update_once
    world.binder.answers["bind"] = refuse
    await world.counts.add_nodes(node_batch(world.nodes))
    await world.counts.update_assumptions(UpdateAssumptions((), (), (), rows=(("n1", 4),)))
    async with world:
        await until(lambda: len(world.binder.received("bind")) == 2)
        await world.reports(1)

    first, *_ = world.binder.received("bind")
    assert first.read_versions == (4,)
    assert ("n1", 9) in read_versions
    assert world.queue.received("report")[0].returned[0].reason == "conflict"
    metrics = dict((await world.scheduler.status(NOTHING)).metrics)
    assert metrics["refused version"] >= 1, "a bind was refused for its version"


def _at(answer, row_version):
    return replace(answer, row_version=row_version)


async def test_without_version_conflicts_no_versions_are_sent():
    async with World(["a"]) as world:
        await world.reports()

    (bind,) = world.binder.received("bind")
    assert (bind.read_versions, bind.transactions) == ((), ())
    assert all(each.rows == () for each in world.cache.received("update_assumptions"))

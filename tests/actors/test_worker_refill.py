"""Workers that missed a change of the cache's stream are refilled, a limited number of times."""

import asyncio

import pytest

from roadstead.actors.cache import encoding, refill
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING, DeadlineError
from roadstead.actors.messages import CHANGES_APPLIED, node_batch
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import Restream
from roadstead.actors.worker.actor import WorkerActor
from tests.actors.world import NOBODY, Fake, Fakes, lines, plan_of, turns, until
from tests.builders import node

SILENCE = DeadlineError("worker-0 did not answer")


class World:
    """A cache that streams to a scheduler, which accepts everything, and to a worker."""

    def __init__(self):
        plan = plan_of(workers=1)
        self.worker = WorkerActor("worker-0", plan, NOBODY)
        self.way = Fake("worker-0", apply=self.worker.apply, restore=self.worker.restore)
        scheduler = Fake("scheduler-0", apply=CHANGES_APPLIED)
        self.cache = CacheActor(plan, Fakes(scheduler, self.way))
        self.stream = self.cache.stream

    async def with_nodes(self, *names):
        await self.cache.add_nodes(node_batch([node(name) for name in names]))

    async def missing(self, *names):
        """Add nodes in messages that the worker does not receive."""
        self.way.answers["apply"] = SILENCE
        await self.with_nodes(*names)
        await until(lambda: "worker-0" in self.stream.unfilled)
        self.way.answers["apply"] = self.worker.apply

    async def end_of_refill(self):
        await until(lambda: not self.stream.refill.is_under_way("worker-0"))

    def is_up_to_date(self):
        return lines(self.worker.table) == lines(self.cache.core.placements.store.table)


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(refill, "PAUSE_S", 0.001)


async def test_a_worker_that_missed_a_change_gets_the_whole_state_and_later_changes():
    """Without a refill the worker receives nothing for the rest of the run."""
    world = World()
    await world.with_nodes("n1", "n2")
    await world.missing("n3")
    await world.end_of_refill()

    assert world.is_up_to_date()
    assert world.worker.applied == 3

    await world.cache.remove_nodes(NodeNames(("n1",)))
    await until(lambda: world.worker.applied == 4)

    assert world.is_up_to_date()
    assert world.stream.unfilled == set()


async def test_a_worker_that_stays_silent_is_abandoned_after_a_few_tries(monkeypatch):
    """No cache refills a dead worker forever; the log has each try, and marks the last one."""
    log = []
    monkeypatch.setattr(refill, "log", lambda who, what, **_: log.append(what))
    world = World()
    world.way.answers["restore"] = SILENCE
    await world.missing("n1")
    await world.end_of_refill()

    assert log == ["worker not filled again"] * refill.FILLS + ["worker left behind"]
    assert world.stream.unfilled == {"worker-0"}


async def test_a_failed_part_ends_the_sends_of_the_other_parts(monkeypatch):
    monkeypatch.setattr(encoding, "PAGE", 1)
    world, ended = World(), []
    await world.with_nodes("n1", "n2")

    async def restore(message):
        if message.part == 0:
            raise SILENCE
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(message.part)

    world.way.answers["restore"] = restore
    with pytest.raises(DeadlineError):
        await world.stream.fill(Restream("worker-0", 1))
    await turns()

    assert ended == [1, 2, 3]


async def test_a_refilled_worker_is_filled_once_and_the_log_reports_it(monkeypatch):
    log = []
    monkeypatch.setattr(refill, "log", lambda who, what, **_: log.append(what))
    world = World()

    await world.missing("n1")
    await world.end_of_refill()

    assert log == ["worker filled again"]


async def test_a_worker_with_a_planned_fill_is_not_filled_a_second_time():
    fills = []

    async def fails(name):
        fills.append(name)
        raise SILENCE

    filling = refill.WorkerRefill(fails, lambda name: True)
    for name in ("worker-0", "worker-1", "worker-0"):
        filling.begin(name)
    await until(lambda: not any(map(filling.is_under_way, ("worker-0", "worker-1"))))

    assert sorted(fills) == ["worker-0"] * refill.FILLS + ["worker-1"] * refill.FILLS


async def test_a_worker_whose_new_epoch_was_filled_is_not_filled_again(monkeypatch):
    """The supervisor fills restarted workers: the cache does not send their contents again."""
    monkeypatch.setattr(refill, "PAUSE_S", 0.05)
    world = World()
    await world.missing("n1")

    await world.cache.restream(Restream("worker-0", 2))
    before = len(world.way.received("restore"))
    await world.end_of_refill()

    assert {part.epoch for part in world.way.received("restore")} == {2}
    assert len(world.way.received("restore")) == before


async def test_a_change_that_a_fill_contained_is_not_missed():
    """The call of a change may fail long after the same or another epoch was filled."""
    world, others = World(), asyncio.all_tasks()
    await world.with_nodes("n1")
    answered = asyncio.Event()

    async def late(batch):
        await answered.wait()
        raise SILENCE

    world.way.answers["apply"] = late
    await world.with_nodes("n2")
    await world.cache.restream(Restream("worker-0", 1))
    answered.set()
    await until(lambda: asyncio.all_tasks() <= others)

    assert world.stream.unfilled == set()
    assert world.is_up_to_date()


async def test_changes_sent_during_the_last_failed_try_start_no_more_tries(monkeypatch):
    """Under a steady stream of changes a dead worker was refilled forever."""
    log, changes = [], iter(["last"])
    monkeypatch.setattr(refill, "log", lambda who, what, **_: log.append(what))
    world, over, others = World(), asyncio.Event(), asyncio.all_tasks()

    async def late(batch):
        await over.wait()
        raise SILENCE

    async def fails_after_a_change(part):
        if len(log) == refill.FILLS - 1:
            await world.with_nodes(*changes)
        raise SILENCE

    await world.missing("n1")
    world.way.answers |= {"apply": late, "restore": fails_after_a_change}
    await world.end_of_refill()
    over.set()
    await until(lambda: asyncio.all_tasks() <= others)
    await world.end_of_refill()

    assert [*changes] == []
    assert log == ["worker not filled again"] * refill.FILLS + ["worker left behind"]


async def test_a_fill_that_fails_after_another_epoch_was_filled_has_no_effect():
    """The old epoch's answers never arrive; the new one is complete, and receives later changes."""
    world, over = World(), asyncio.Event()

    async def hangs_for_the_old_life(part):
        if part.epoch == 1:
            await over.wait()
            raise SILENCE

    world.way.answers["restore"] = hangs_for_the_old_life
    await world.missing("n1")
    await until(lambda: world.way.received("restore"))
    await world.cache.restream(Restream("worker-0", 2))
    before = len(world.way.received("restore"))
    over.set()
    await world.end_of_refill()

    assert {part.epoch for part in world.way.received("restore")[before:]} <= {1}
    assert world.stream.unfilled == set()


async def test_two_interleaved_fills_lose_nothing(monkeypatch):
    """Two requests for a restream: the second fill has the changes that follow the first one."""
    monkeypatch.setattr(encoding, "PAGE", 2)
    world = World()
    world.way.answers["restore"] = NOTHING
    await world.with_nodes("n1", "n2", "n3")
    await world.cache.restream(Restream("worker-0", 2))
    await world.with_nodes("n4")
    await world.cache.restream(Restream("worker-0", 2))
    earlier, later = (
        [part for part in world.way.received("restore") if part.seq == seq] for seq in (3, 4)
    )
    world.worker = WorkerActor("worker-0", plan_of(workers=1), NOBODY, is_new=True, epoch=2)

    for part in (*later[:-1], *earlier, later[-1]):
        await world.worker.restore(part)

    assert world.worker.applied == 4
    assert world.is_up_to_date()

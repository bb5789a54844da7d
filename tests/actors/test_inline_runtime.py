import asyncio

import pytest

from roadstead.actors.interface import NOTHING, ActorError, ActorLostError, DeadlineError
from roadstead.actors.messages import (
    ADD_NODES,
    BOUND,
    STATUS,
    ActorStatus,
    BoundPage,
    PageRequest,
    node_batch,
)
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.protocol.plain_data import CodecError, DecodeLimits
from tests.actors.world import GENEROUS_S, turns, until
from tests.builders import node

SOON_S = 0.02
"""A deadline that is expected to pass."""


class Waiter:
    """An actor that answers `status` after a release, and logs the requested pages in order."""

    def __init__(self, directory):
        self.directory = directory
        self.go = asyncio.Event()
        self.begun = 0
        self.asked = []
        self.nodes = ()
        self.released = 0

    def release(self):
        self.released += 1

    async def status(self, _):
        self.begun += 1
        await self.go.wait()
        return ActorStatus("is well")

    async def bound(self, ask):
        self.asked.append(ask)
        return BoundPage((), (), ask.start)

    async def add_nodes(self, batch):
        self.nodes = batch.nodes
        return NOTHING


class World:
    """One actor on a runtime."""

    def __init__(self, mailbox=10, max_bytes=100_000):
        limits = DecodeLimits(max_bytes=max_bytes)
        self.runtime = InlineRuntime(mailbox_max_messages=mailbox, limits=limits)

    async def __aenter__(self):
        self.ref = (await self.runtime.start({"host": {"w": self.build}}, timeout_s=1.0))["w"]
        return self

    async def __aexit__(self, *_):
        await self.runtime.stop()

    def build(self, directory):
        self.actor = Waiter(directory)
        return self.actor

    def status(self, timeout_s=GENEROUS_S):
        """Call `status`, which is answered after a release."""
        return asyncio.create_task(self.ref.call(STATUS, NOTHING, timeout_s=timeout_s))

    async def bound(self, start=0):
        return await self.ref.call(BOUND, PageRequest(start, 1), timeout_s=GENEROUS_S)


async def test_a_call_reaches_the_actor_and_returns():
    async with World() as world:
        assert (await world.bound(7)).total == 7
        assert world.ref.name == "w"


async def test_actors_are_built_with_references_to_each_other():
    async with World() as world:
        assert world.actor.directory.find("w") == world.ref


async def test_messages_arrive_in_the_order_of_sending():
    async with World() as world:
        await asyncio.gather(*(world.bound(number) for number in range(30)))

        assert [ask.start for ask in world.actor.asked] == list(range(30))


async def test_the_next_message_is_handled_while_a_handler_waits():
    async with World() as world:
        waiting = world.status()

        await world.bound()

        assert not waiting.done()
        world.actor.go.set()
        assert (await waiting).text == "is well"


async def test_messages_are_packed_so_that_actors_share_no_objects():
    async with World() as world:
        batch = node_batch((node("n1", labels={"disk": "ssd"}),))

        await world.ref.call(ADD_NODES, batch, timeout_s=GENEROUS_S)

        assert world.actor.nodes == batch.nodes
        assert world.actor.nodes[0] is not batch.nodes[0]


async def test_a_message_above_the_size_limit_is_refused():
    async with World(max_bytes=2_000) as world:
        batch = node_batch(node(f"a-node-{number}") for number in range(1000))

        with pytest.raises(ActorError, match="are more than 2000"):
            await world.ref.call(ADD_NODES, batch, timeout_s=GENEROUS_S)


async def test_a_message_that_can_not_be_packed_is_refused_before_sending():
    async with World() as world:
        with pytest.raises(CodecError, match="cannot be packed"):
            await world.ref.call(BOUND, PageRequest(1 << 64, 1), timeout_s=GENEROUS_S)

        assert world.actor.asked == []


async def test_a_missed_deadline_names_the_actor():
    async with World() as world:
        with pytest.raises(DeadlineError, match=r"w did not answer status within 0\.02 s"):
            await world.status(SOON_S)


async def test_an_answer_after_the_deadline_is_ignored():
    async with World() as world:
        with pytest.raises(DeadlineError):
            await world.status(SOON_S)

        world.actor.go.set()
        await turns()

        assert (await world.bound(3)).total == 3


async def test_a_sender_waits_at_a_full_mailbox_until_its_deadline():
    async with World(mailbox=2) as world:
        first, second = world.status(), world.status()

        with pytest.raises(DeadlineError):
            await world.status(SOON_S)

        assert world.actor.begun == 2
        world.actor.go.set()
        await asyncio.gather(first, second)


async def test_a_sender_at_a_full_mailbox_continues_when_a_slot_is_free():
    async with World(mailbox=1) as world:
        calls = [world.status() for _ in range(4)]
        await turns()
        assert world.actor.begun == 1

        world.actor.go.set()

        assert len(await asyncio.gather(*calls)) == 4


async def test_a_call_after_its_deadline_keeps_its_slot_until_it_is_done():
    async with World(mailbox=1) as world:
        with pytest.raises(DeadlineError):
            await world.status(SOON_S)
        with pytest.raises(DeadlineError):
            await world.status(SOON_S)

        assert world.actor.begun == 1
        world.actor.go.set()
        await world.bound()


async def test_all_callers_of_a_killed_actor_get_an_error_immediately():
    async with World(mailbox=2) as world:
        calls = [world.status() for _ in range(6)]
        await until(lambda: world.actor.begun == 2)

        await world.runtime.kill("w")

        outcomes = await asyncio.wait_for(
            asyncio.gather(*calls, return_exceptions=True), GENEROUS_S / 2
        )
        assert [str(each) for each in outcomes] == ["w is gone"] * 6
        assert {type(each) for each in outcomes} == {ActorLostError}


async def test_messages_that_an_actor_never_handled_fail_when_it_ends():
    async with World() as world:
        call = world.status()
        await asyncio.sleep(0)
        await world.runtime.kill("w")

        with pytest.raises(ActorLostError):
            await call
        assert world.actor.begun == 0


async def test_an_ended_actor_refuses_messages():
    async with World() as world:
        await world.runtime.kill("w")

        with pytest.raises(ActorLostError, match="w is gone"):
            await world.bound()


async def test_an_actor_is_released_once_and_an_unknown_name_can_be_killed():
    async with World() as world:
        await world.runtime.kill("w")
        await world.runtime.kill("unknown")

    assert world.actor.released == 1


async def test_a_name_is_unique_while_its_actor_runs():
    async with World() as world:
        with pytest.raises(AssertionError, match="w is running"):
            await world.runtime.start({"host": {"w": Waiter}}, timeout_s=1.0)


async def test_an_unknown_name_is_no_actor():
    async with World() as world:
        with pytest.raises(ActorLostError, match="there is no actor nobody"):
            world.runtime.find("nobody")


async def test_stop_ends_all_actors_and_leaves_no_task_behind():
    before = asyncio.all_tasks()
    async with World() as world:
        call = world.status()
        await until(lambda: world.actor.begun == 1)

    with pytest.raises(ActorLostError):
        await call
    await turns()
    assert asyncio.all_tasks() == before
    with pytest.raises(ActorLostError):
        world.runtime.find("w")

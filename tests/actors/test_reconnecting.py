"""Messages of earlier epochs are refused; references lead to the current actor."""

import pytest

from roadstead.actors.interface import NOTHING, ActorLostError, FencedError, Stamp
from roadstead.actors.messages import STATUS, ActorStatus
from roadstead.actors.messages.process import FENCE, Fences
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.runtime.reconnecting import IncarnationFactory
from roadstead.protocol.plain_data import DecodeLimits
from tests.actors.world import GENEROUS_S


class Restored:
    """An actor that returns its number of calls and its epoch."""

    def __init__(self, directory, life=1):
        self.directory, self.life, self.is_free = directory, life, False

    async def status(self, _):
        return ActorStatus(f"life {self.life}")

    def release(self):
        self.is_free = True


@pytest.fixture
def runtime():
    return InlineRuntime(mailbox_max_messages=10, limits=DecodeLimits())


async def begin(runtime, name, life=1):
    made = []

    def build(directory):
        made.append(Restored(directory, life))
        return made[0]

    await runtime.start({name: {name: IncarnationFactory(build, name, life)}}, timeout_s=GENEROUS_S)
    return made[0]


async def ask(ref):
    return (await ref.call(STATUS, NOTHING, timeout_s=GENEROUS_S)).text


async def test_messages_of_an_earlier_epoch_are_refused(runtime):
    await begin(runtime, "target")
    fences = Fences((("sender", 2),))
    await runtime.find("target").call(FENCE, fences, timeout_s=GENEROUS_S)

    with pytest.raises(FencedError, match="sender of epoch 1 is over"):
        await ask(runtime.find("target", Stamp("sender", 1)))
    for stamp in (Stamp("sender", 2), Stamp("other", 1), Stamp()):
        assert await ask(runtime.find("target", stamp)) == "life 1"


async def test_a_late_copy_of_an_older_message_lowers_no_fence(runtime):
    await begin(runtime, "target")
    for epoch in (3, 2):
        fences = Fences((("sender", epoch),))
        await runtime.find("target").call(FENCE, fences, timeout_s=GENEROUS_S)

    with pytest.raises(FencedError):
        await ask(runtime.find("target", Stamp("sender", 2)))


async def test_a_reference_leads_to_the_replacement_of_an_actor(runtime):
    sender = await begin(runtime, "sender")
    first = await begin(runtime, "target")
    way = sender.directory.find("target")
    assert await ask(way) == "life 1"

    await runtime.kill("target")
    await begin(runtime, "target", life=2)

    assert first.is_free
    assert await ask(way) == "life 2"


async def test_a_reference_without_an_actor_fails_at_the_deadline(runtime):
    sender = await begin(runtime, "sender")

    with pytest.raises(ActorLostError):
        await sender.directory.find("target").call(STATUS, NOTHING, timeout_s=0.01)

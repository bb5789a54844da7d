import asyncio
import contextlib

import pytest

from roadstead.actors.interface import (
    NOTHING,
    ActorError,
    ActorLostError,
    DeadlineError,
    ResendingRef,
)
from roadstead.actors.messages import STATUS, ActorStatus
from roadstead.actors.runtime.simulated import SimulatedRuntime
from roadstead.actors.runtime.simulated_network import NO_FAULTS, SELDOM, Faults, Network
from roadstead.actors.runtime.virtual_time import VIRTUAL_START_S, StalledError, run_virtual
from roadstead.protocol.plain_data import DecodeLimits

LONG_S = 3600.0


class Echo:
    """Counts its calls; may take long, or call another actor."""

    def __init__(self, directory, takes_s=0.0, other=None):
        self.directory, self.takes_s, self.other = directory, takes_s, other
        self.asked = 0
        self.ended = []

    async def status(self, _):
        self.asked += 1
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.ended.append(self.asked)
            raise
        if self.other:
            return await self.directory.find(self.other).call(STATUS, NOTHING, timeout_s=1.0)
        return ActorStatus(f"asked {self.asked} times")


def in_world(work, *, seed=0, faults=NO_FAULTS, takes_s=0.0, asks_other=False):
    """Return the result of `work(runtime)`; "a" and "b" share a process, "a" may call "b"."""

    async def run():
        runtime = SimulatedRuntime(Network(seed, faults), DecodeLimits())
        a = {"a": lambda d: Echo(d, takes_s, "c" if asks_other else None), "b": Echo}
        await runtime.start({"both": a, "c": {"c": Echo}}, timeout_s=1.0)
        found = await work(runtime)
        await runtime.stop()
        return found

    return run_virtual(run)


def ask(runtime, name="a", timeout_s=1.0):
    return runtime.find_from(name, "client").call(STATUS, NOTHING, timeout_s=timeout_s)


def test_time_jumps_to_the_next_timer():
    async def work():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(LONG_S)
        return loop.time()

    assert run_virtual(work) == pytest.approx(VIRTUAL_START_S + LONG_S)


def test_a_run_without_anything_to_wait_for_raises_an_error():
    with pytest.raises(StalledError, match="stalled"):
        run_virtual(lambda: asyncio.Event().wait())


def test_a_call_takes_a_little_virtual_time_and_is_answered():
    async def work(runtime):
        return (await ask(runtime)).text, runtime.network.spent_s

    text, spent_s = in_world(work)
    assert text == "asked 1 times"
    assert 0.0 < spent_s < 0.01, "a call takes some milliseconds of virtual time"


def test_a_lost_message_ends_the_call_at_its_deadline():
    async def work(runtime):
        with pytest.raises(DeadlineError, match="did not answer status within 5 s"):
            await ask(runtime, timeout_s=5.0)
        return runtime.network.spent_s

    assert in_world(work, faults=Faults(lost=1.0)) == pytest.approx(5.0)


def test_a_patient_caller_repeats_a_call_until_the_network_recovers():
    async def work(runtime):
        ref = ResendingRef(runtime.find_from("a", "client"))
        return (await ref.call(STATUS, NOTHING, timeout_s=1.0)).text, ref.name

    assert in_world(work, faults=Faults(lost=1.0, until_s=3.5)) == ("asked 1 times", "a")


def test_a_duplicated_request_is_handled_twice():
    async def work(runtime):
        await ask(runtime)
        await asyncio.sleep(1.0)
        return runtime.incarnations["a"].actor.asked

    assert in_world(work, faults=Faults(duplicated=1.0)) == 2


def test_rare_messages_have_the_faults_of_the_run():
    async def work(runtime):
        with pytest.raises(DeadlineError):
            await ask(runtime)
        for _ in range(10):
            with contextlib.suppress(DeadlineError):
                await ask(runtime)
        return runtime.network.happened

    seldom = in_world(work, faults=Faults(seldom=1.0, lost=1e-9))
    assert seldom == {"lost": 2 * SELDOM}, "requests and replies are lost"
    cut = in_world(work, faults=Faults(seldom=1.0, partition_every_s=1e9))
    assert cut["partition"] >= 1
    assert cut["cut off"] >= cut["partition"]


def test_slow_messages_arrive_late():
    async def work(runtime):
        await ask(runtime, timeout_s=LONG_S)
        return runtime.network.spent_s

    assert in_world(work, faults=Faults(slow=1.0, slow_max_s=100.0)) > 1.0, (
        "a message is slow by more than a second"
    )


def test_a_partition_cuts_two_actors_for_a_while_and_no_others():
    async def work(runtime):
        runtime.network.cut("a", "client", 3.0)
        assert (await ask(runtime, "b")).text == "asked 1 times"
        with pytest.raises(DeadlineError):
            await ask(runtime)
        await asyncio.sleep(3.0)
        return (await ask(runtime)).text, runtime.network.happened["cut off"]

    assert in_world(work) == ("asked 1 times", 1)


def test_a_paused_actor_answers_later():
    async def work(runtime):
        runtime.network.pause("a", 4.0)
        runtime.network.pause("a", 400.0)
        await ask(runtime, timeout_s=LONG_S)
        return runtime.network.spent_s

    assert in_world(work) == pytest.approx(4.0, abs=0.1)


def test_calls_pending_at_a_crash_are_never_answered():
    async def work(runtime):
        asking = asyncio.create_task(ask(runtime, timeout_s=LONG_S))
        await asyncio.sleep(1.0)
        echo = runtime.incarnations["a"].actor
        await runtime.crash("a")
        with pytest.raises(ActorLostError, match="a is gone"):
            await asking
        with pytest.raises(ActorLostError, match="a is gone"):
            await ask(runtime)
        return echo.ended

    assert in_world(work, takes_s=10.0) == [1]


def test_a_crash_ends_all_actors_of_its_process():
    async def work(runtime):
        await runtime.crash("a")
        alive = [name for name, life in runtime.incarnations.items() if life.is_alive]
        await runtime.start({"both": {"a": Echo, "b": Echo}}, timeout_s=1.0)
        return alive, (await ask(runtime, "b")).text, runtime.network.happened["crash"]

    assert in_world(work) == (["c"], "asked 1 times", 1)


def test_actors_call_each_other_under_their_own_names():
    async def work(runtime):
        runtime.network.cut("a", "c", LONG_S)
        with pytest.raises((ActorError, DeadlineError)):
            await ask(runtime, timeout_s=5.0)
        return (await ask(runtime, "c")).text

    assert in_world(work, asks_other=True) == "asked 1 times"


def test_the_seed_alone_determines_the_history():
    async def work(runtime):
        for _ in range(20):
            await asyncio.gather(*(ask(runtime, name) for name in "abc"), return_exceptions=True)
        return runtime.network.trace

    faults = Faults(lost=0.2, duplicated=0.2, slow=0.2)
    assert in_world(work, seed=1, faults=faults) == in_world(work, seed=1, faults=faults)
    assert in_world(work, seed=1, faults=faults) != in_world(work, seed=2, faults=faults)


def test_timers_of_actors_may_be_late_and_other_timers_are_not():
    """The sleep in the handler lasts longer; the client's sleep does not."""

    async def work(runtime):
        await ask(runtime, timeout_s=10.0)
        answered_s = runtime.network.spent_s
        await asyncio.sleep(1.0)
        return answered_s, runtime.network.spent_s - answered_s, runtime.network.happened["late"]

    late = Faults(late=1.0, late_max_s=2.0)
    answered_s, slept_s, count = in_world(work, faults=late, takes_s=1.0)
    assert 1.0 + 2 * 0.004 < answered_s < 3.0 + 2 * 0.004
    assert slept_s == pytest.approx(1.0)
    assert count == 1

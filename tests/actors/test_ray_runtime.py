import asyncio
import os
import platform
import signal
import time
from functools import partial

import pytest

from roadstead.actors.interface import (
    NOTHING,
    ActorError,
    ActorLostError,
    DeadlineError,
    RunFailedError,
)
from roadstead.actors.messages import BOUND, STATUS, ActorStatus, BoundPage, PageRequest
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_runtime import RayRuntime
from roadstead.actors.runtime.ray_session import SYSTEM_CONFIG, RaySession
from roadstead.actors.runtime.ray_target import RayTarget
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.run import RunPlan
from tests.actors.world import GENEROUS_S, inputs_of, ray_left

pytestmark = pytest.mark.ray

LIMITS = DecodeLimits(max_bytes=1_000_000)

OWN = RayTarget("local", "by the test")


def fleet(nodes=20, pods=300):
    trace = generate_fleet(nodes, pods, 1)
    return inputs_of(trace.nodes(), trace.pods())


def ray_plan(**settings):
    return RunPlan(Settings(runtime="ray", **settings))


@pytest.fixture(scope="module", autouse=True)
def _one_ray():
    """One Ray for all tests of this module: initialized by this process, so that runs use it."""
    session = RaySession(
        OWN,
        120.0,
        num_cpus=16,
        include_dashboard=False,
        object_store_memory=100 << 20,
        _node_ip_address="127.0.0.1",
        _system_config=SYSTEM_CONFIG,
    )
    yield
    session.leave()
    ray_left()


@pytest.fixture
def runtime():
    found = RayRuntime(processes=1, limits=LIMITS)
    yield found
    asyncio.run(found.stop())


class Speaker:
    """An actor that answers with its constructor's argument, and never answers a negative page."""

    def __init__(self, text, directory):
        self.text = text
        self.directory = directory

    async def status(self, _):
        if self.text == "broken":
            raise KeyError("n1")
        return ActorStatus(f"{self.text} in {os.getpid()}")

    async def bound(self, ask):
        if ask.start < 0:
            await asyncio.Event().wait()
        other = self.directory.find("other")
        status = await other.call(STATUS, NOTHING, timeout_s=GENEROUS_S)
        return BoundPage((status.text,), ("",), ask.start)


async def test_the_logs_of_all_lives_are_gathered_also_where_no_process_is_left(tmp_path):
    lines = []
    runtime = RayRuntime(processes=1, limits=LIMITS, log_dir=str(tmp_path / "logs"))
    runtime.report_to(lines.append)
    try:
        refs = await started(runtime, one=partial(Speaker, "one"))
        await runtime.kill("one")
        await loss_of(refs["one"])
        await started(runtime, one=partial(Speaker, "one"))
        await runtime.kill("one")

        await runtime.gather_logs(timeout_s=GENEROUS_S)
    finally:
        await runtime.stop()

    host = platform.node()
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == [f"one.2@{host}.jsonl", f"one@{host}.jsonl"]
    assert not any(text.startswith("Not all logs") for text in lines)


def unbuildable(directory):
    raise RuntimeError("no such plan")


def slow_to_build(directory):
    time.sleep(GENEROUS_S)


async def loss_of(ref):
    """Return the error of an ending actor, which may still answer for a moment."""
    async with asyncio.timeout(GENEROUS_S):
        while True:
            try:
                await ref.call(STATUS, NOTHING, timeout_s=GENEROUS_S)
            except ActorLostError as lost:
                return str(lost)


async def started(runtime, **builds):
    """Start actors in processes of their own."""
    groups = {name: {name: build} for name, build in builds.items()}
    return await runtime.start(groups, timeout_s=GENEROUS_S)


async def test_actors_have_processes_of_their_own_and_find_each_other(runtime):
    refs = await started(runtime, one=partial(Speaker, "one"), other=partial(Speaker, "other"))

    page = await refs["one"].call(BOUND, PageRequest(4, 1), timeout_s=GENEROUS_S)

    assert page == BoundPage((f"other in {runtime.pids['other']}",), ("",), 4)
    assert len({os.getpid(), *runtime.pids.values()}) == 3
    assert (refs["one"].name, runtime.find("other").name) == ("one", "other")


async def test_a_group_shares_a_process_and_ends_with_it(runtime):
    builds = {name: partial(Speaker, name) for name in ("one", "other")}
    refs = await runtime.start({"host": builds}, timeout_s=GENEROUS_S)
    replies = [(await refs[name].call(STATUS, NOTHING, timeout_s=GENEROUS_S)).text for name in refs]
    assert replies == [f"{name} in {runtime.pids['host']}" for name in ("one", "other")]

    await runtime.kill("one")

    for name in ("one", "other"):
        assert f"{name} is gone" in await loss_of(refs[name])


async def test_the_process_of_a_retired_actor_is_kept_for_the_next_one(runtime):
    refs = await started(runtime, one=partial(Speaker, "one"))
    pid = runtime.pids["one"]
    waiting = asyncio.create_task(refs["one"].call(BOUND, PageRequest(-1, 1), timeout_s=GENEROUS_S))
    await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)

    await runtime.retire("one")
    refs = await started(runtime, one=partial(Speaker, "the next one"))

    status = await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)
    assert status.text == f"the next one in {pid}"
    with pytest.raises(ActorLostError, match="one is gone"):
        await waiting


async def test_a_retired_actor_whose_process_was_lost_gets_a_new_one(runtime):
    refs = await started(runtime, one=partial(Speaker, "one"))
    pid = runtime.pids["one"]
    os.kill(pid, signal.SIGKILL)
    await loss_of(refs["one"])

    await runtime.retire("one")
    refs = await started(runtime, one=partial(Speaker, "the next one"))

    status = await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)
    assert status.text == f"the next one in {runtime.pids['one']}"
    assert runtime.pids["one"] != pid


async def test_a_retired_actor_that_computes_for_long_gets_a_new_process(runtime, monkeypatch):
    monkeypatch.setattr("roadstead.actors.runtime.ray_runtime.REBUILD_S", 0.1)
    await started(runtime, one=partial(Speaker, "one"))
    pid = runtime.pids["one"]
    os.kill(pid, signal.SIGSTOP)

    await runtime.retire("one")
    await started(runtime, one=partial(Speaker, "the next one"))

    assert runtime.pids["one"] != pid


async def test_failures_and_deadlines_are_as_on_the_inline_runtime(runtime):
    refs = await started(runtime, one=partial(Speaker, "broken"))

    with pytest.raises(ActorError, match=r"one: KeyError: 'n1' at status:\d+"):
        await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)
    with pytest.raises(DeadlineError, match=r"one did not answer bound within 0\.05 s"):
        await refs["one"].call(BOUND, PageRequest(-1, 1), timeout_s=0.05)
    with pytest.raises(ActorLostError, match="there is no actor nobody"):
        runtime.find("nobody")


async def test_all_callers_of_an_actor_whose_process_ends_get_an_error(runtime):
    refs = await started(runtime, one=partial(Speaker, "one"))
    waits = [refs["one"].call(BOUND, PageRequest(-1, 1), timeout_s=GENEROUS_S) for _ in range(3)]
    calls = [asyncio.create_task(wait) for wait in waits]
    await refs["one"].call(STATUS, NOTHING, timeout_s=GENEROUS_S)

    os.kill(runtime.pids["one"], signal.SIGKILL)

    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in outcomes} == {ActorLostError}
    assert all(str(each).startswith("one is gone: ") for each in outcomes)


async def test_an_actor_whose_constructor_fails_is_reported(runtime):
    with pytest.raises(ActorLostError, match="one did not start"):
        await started(runtime, one=unbuildable)


async def test_a_late_actor_is_reported(runtime):
    with pytest.raises(DeadlineError, match=r"one did not answer its start within 0\.1 s"):
        await runtime.start({"one": {"one": slow_to_build}}, timeout_s=0.1)


def killed_in_the_middle(monkeypatch, name, **settings):
    """Run, and kill one process once some pods are placed, and not all."""
    runtimes, killed = [], []

    def open_runtime(plan):
        runtimes.append(RayRuntime(processes=6, limits=plan.limits))
        return runtimes[0]

    def kill_in_the_middle(progress):
        # Once: the process that replaces it has the same name.
        if 0 < progress.placed < progress.total and not killed:
            killed.append(runtimes[0].pids[name])
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(launch, "open_runtime", open_runtime)
    try:
        return ActorLauncher().run(fleet(), ray_plan(batch=1, **settings), kill_in_the_middle)
    finally:
        assert killed, f"the run ended before {name} was killed"


def test_killing_a_binder_without_a_journal_ends_the_run_with_its_name(monkeypatch):
    with pytest.raises(RunFailedError) as failure:
        killed_in_the_middle(monkeypatch, "binder", control="apart")

    assert str(failure.value).startswith("binder is gone: ")
    assert " It h" in str(failure.value)


def test_a_killed_worker_loses_no_pod(monkeypatch):
    outcome = killed_in_the_middle(monkeypatch, "worker-1", workers=2)

    decided = [each.pod for each in (*outcome.placements, *outcome.pending)]
    assert sorted(decided) == sorted(who.key for who, _ in fleet().pending)

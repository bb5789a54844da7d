"""Deadlines for stopping actors and gathering logs: shorter if the run is interrupted."""

import asyncio

import pytest

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import INTERRUPTED_LOGS_S, INTERRUPTED_STOP_S, ActorLauncher
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.supervisor.supervisor import LOGS_S
from roadstead.fleet.generate import generate_fleet
from tests.actors.world import inputs_of, plan_of


class Runtime(InlineRuntime):
    """An inline runtime that notes how long actors may take to stop, and logs to be gathered."""

    noted = ()
    stops = ()

    async def start(self, groups, *, timeout_s):
        refs = await super().start(groups, timeout_s=timeout_s)
        return {name: Noting(ref, name, self) for name, ref in refs.items()}

    async def gather_logs(self, *, timeout_s):
        self.noted = (*self.noted, timeout_s)


class Noting:
    """A Ref that notes the deadlines of requests to stop."""

    def __init__(self, ref, name, runtime):
        self._ref, self._name, self._runtime = ref, name, runtime

    def __getattr__(self, name):
        return getattr(self._ref, name)

    async def call(self, method, message, *, timeout_s):
        if method.name == "stop":
            self._runtime.stops = (*self._runtime.stops, (self._name, timeout_s))
        return await self._ref.call(method, message, timeout_s=timeout_s)


@pytest.fixture
def runtime(monkeypatch):
    made = Runtime(mailbox_max_messages=100, limits=plan_of().limits)
    monkeypatch.setattr(launch, "open_runtime", lambda plan: made)
    return made


def run(on_progress):
    trace = generate_fleet(4, 20, 1)
    inputs = inputs_of(trace.nodes(), trace.pods())
    return ActorLauncher().run(inputs, plan_of(), on_progress)


def raising(failure):
    """Return a receiver of progress that raises once the actors have started."""

    def on_progress(progress):
        if progress.phase != "starting actors":
            raise failure

    return on_progress


def test_a_run_that_ends_has_the_whole_time(runtime):
    run(lambda progress: None)

    assert runtime.noted == (LOGS_S,)
    assert runtime.stops[-2:] == (("scheduler-0", 10.0), ("binder", 10.0)), "deadlines.stop_s"


def test_so_does_a_run_that_fails(runtime):
    with pytest.raises(RunFailedError):
        run(raising(RunFailedError("the binder is lost")))

    assert runtime.noted == (LOGS_S,)


def test_an_interrupted_run_hurries(runtime):
    with pytest.raises(asyncio.CancelledError):
        run(raising(asyncio.CancelledError()))

    assert runtime.noted == (INTERRUPTED_LOGS_S,)
    assert INTERRUPTED_LOGS_S < 1.0, "ray job stop waits 3 s for the whole end"
    # The binder closes the journal after the schedulers stopped, or did not answer in time.
    assert runtime.stops == (
        ("scheduler-0", INTERRUPTED_STOP_S),
        ("binder", INTERRUPTED_STOP_S),
    )
    assert 2 * INTERRUPTED_STOP_S < 2.0, "both actors stop within 2 s"
    assert 2 * INTERRUPTED_STOP_S + INTERRUPTED_LOGS_S < 2.5, (
        "and the logs are there within 2.5 of the 3 s"
    )

"""How long a run may gather logs at its end: less if it is interrupted."""

import asyncio

import pytest

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runs import launch
from roadstead.actors.runs.launch import INTERRUPTED_LOGS_S, ActorLauncher
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.supervisor.supervisor import LOGS_S
from roadstead.fleet.generate import generate_fleet
from tests.actors.world import inputs_of, plan_of


class Runtime(InlineRuntime):
    """An inline runtime that notes how long logs may be gathered."""

    noted = ()

    async def gather_logs(self, *, timeout_s):
        self.noted = (*self.noted, timeout_s)


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


def test_so_does_a_run_that_fails(runtime):
    with pytest.raises(RunFailedError):
        run(raising(RunFailedError("the binder is lost")))

    assert runtime.noted == (LOGS_S,)


def test_an_interrupted_run_hurries(runtime):
    with pytest.raises(asyncio.CancelledError):
        run(raising(asyncio.CancelledError()))

    assert runtime.noted == (INTERRUPTED_LOGS_S,)
    assert INTERRUPTED_LOGS_S < 1.0, "ray job stop waits 3 s for the whole end"

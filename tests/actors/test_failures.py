import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import ActorError, ActorLostError, DeadlineError, RunFailedError
from roadstead.actors.names import process_names
from roadstead.actors.runs import client, launch
from roadstead.actors.runs.launch import ActorLauncher, first_of, open_runtime
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.scheduler.actor import SchedulerActor
from roadstead.actors.supervisor import supervisor
from roadstead.attempts.core import AttemptsCore
from roadstead.binder import BinderCore
from roadstead.cache import CacheCore
from roadstead.config.settings import Settings
from roadstead.fleet.generate import generate_fleet
from roadstead.journal import JournalError, NullJournal
from roadstead.protocol.errors import IllegalTransitionError, InputError
from roadstead.queue import QueueCore
from tests.actors.world import GENEROUS_S, inputs_of, plan_of, pods_of, record_actors, turns
from tests.builders import node

WITHOUT_A_JOURNAL = ("queue", "cache", "binder")


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)
    monkeypatch.setattr(supervisor, "WATCH_S", 0.01)


def fleet(nodes=20, pods=300):
    trace = generate_fleet(nodes, pods, 1)
    return inputs_of(trace.nodes(), trace.pods())


class Run:
    """A run of the launcher on a runtime that a test can access."""

    def __init__(self, monkeypatch, **settings):
        self.plan = plan_of(**({"workers": 2} | settings))
        self.runtime = None
        self.progress_events = []
        monkeypatch.setattr(launch, "open_runtime", self.open)

    def open(self, plan):
        self.runtime = open_runtime(plan)
        self.actors = record_actors(self.runtime)
        return self.runtime

    def fails(self, on_progress=lambda progress: None, inputs=None):
        """Run, and return the error with which the run failed."""

        def record(progress):
            self.progress_events.append(progress)
            on_progress(progress)

        with pytest.raises(RunFailedError) as failure:
            ActorLauncher().run(inputs or fleet(), self.plan, record)
        return str(failure.value)

    def kill_in_the_middle(self, name):
        """End an actor once some pods are placed, and not all."""
        killed = []

        def on_progress(progress):
            if not killed and 0 < progress.placed < progress.total:
                killed.append(asyncio.ensure_future(self.runtime.kill(name)))

        return on_progress


@pytest.mark.parametrize("name", WITHOUT_A_JOURNAL)
def test_killing_an_actor_in_the_binders_process_ends_the_run_with_its_name(monkeypatch, name):
    run = Run(monkeypatch, batch=1, workers=2)

    why = run.fails(run.kill_in_the_middle(name))

    assert why.startswith(f"{name} is gone. It h")
    assert why.endswith("The run ends here; there is no journal of what was bound.")
    assert {name, "cache", "worker-1"} <= run.actors.keys()
    for each in run.actors:
        with pytest.raises(ActorLostError, match="there is no actor"):
            run.runtime.find(each)
    assert max(progress.placed for progress in run.progress_events) < 300, (
        "the actor was killed before the end of the run"
    )


@pytest.mark.parametrize("name", ["cache", "binder"])
def test_killing_an_actor_while_the_cluster_is_loaded_ends_the_run(monkeypatch, name):
    run = Run(monkeypatch, workers=2)

    def on_progress(progress):
        if progress.phase == "loading the cluster":
            run.runtime.find(name).actor.end()

    assert f"{name} is gone" in run.fails(on_progress)


def test_a_scheduler_that_rejects_changes_ends_the_run_with_the_position(monkeypatch):
    apply = SchedulerActor.apply

    async def apply_nodes_only(self, batch):
        if "add_pod" in batch.unpacked().kinds:
            raise MemoryError("no room")
        return await apply(self, batch)

    monkeypatch.setattr(SchedulerActor, "apply", apply_nodes_only)

    why = Run(monkeypatch).fails()

    assert "MemoryError: no room" in why
    assert "no longer applies changes" in why


@pytest.mark.parametrize(
    ("core", "method", "actor", "asks"),
    [
        (BinderCore, "bind", "binder", "bind"),
        (CacheCore, "assume", "cache", "assume"),
        (QueueCore, "lease", "queue", "lease"),
    ],
)
def test_a_bug_in_a_core_ends_the_run_with_the_last_messages_of_its_actor(
    monkeypatch, core, method, actor, asks
):
    def broken(self, *args):
        raise AssertionError("is in two places")

    monkeypatch.setattr(core, method, broken)

    what, head, *lines = Run(monkeypatch).fails().splitlines()

    assert f"{actor}: AssertionError: is in two places at broken:" in what
    assert what.endswith("The run ends here; there is no journal of what was bound.")
    assert head.startswith(f"The last messages of {actor}, ")
    assert f"  {asks} " in lines[-1]
    assert "from scheduler-0 (epoch 1)" in lines[-1]


def test_a_bug_in_a_schedulers_own_task_ends_the_run_with_its_last_messages(monkeypatch):
    def broken(self, *args):
        raise IllegalTransitionError("attempt: default/p: place is not allowed in state bound")

    monkeypatch.setattr(AttemptsCore, "decided", broken)

    what, head, *lines = Run(monkeypatch).fails().splitlines()

    assert what.startswith("scheduler-0 cannot continue: attempt: default/p: place is not allowed")
    assert what.endswith("The run ends here; there is no journal of what was bound.")
    assert head.startswith("The last messages of scheduler-0, ")
    assert any(line.startswith("  run from the driver, ") for line in lines)


def test_a_failing_journal_ends_the_run(monkeypatch):
    def flush(self):
        raise JournalError("journal: no space left on device")

    monkeypatch.setattr(NullJournal, "flush", flush)

    why = Run(monkeypatch).fails()

    assert why.startswith(
        "binder cannot continue: journal: no space left on device; records 1 to 0 of "
    )


def test_an_unreachable_actor_is_named_even_if_no_watch_reports_it(monkeypatch):
    monkeypatch.setattr(launch, "WATCH_ERROR_S", 0.01)

    async def watch(self):
        await asyncio.Event().wait()

    async def bound(self, ask):
        raise KeyError("page")

    monkeypatch.setattr(supervisor.Supervisor, "watch", watch)
    monkeypatch.setattr(BinderActor, "bound", bound)

    why = Run(monkeypatch).fails(inputs=inputs_of([node("n1")], pods_of("p")))

    assert "binder: KeyError: 'page' at bound:" in why


def test_a_failed_run_does_not_affect_the_next_one(monkeypatch):
    run = Run(monkeypatch, batch=1, workers=2)
    run.fails(run.kill_in_the_middle("binder"))

    outcome = ActorLauncher().run(fleet(pods=20), plan_of(), lambda progress: None)

    assert len(outcome.placements) + len(outcome.pending) == 20


async def never():
    await asyncio.Event().wait()


async def failing(failure, after=0):
    await turns(after)
    raise failure


async def answer():
    return "done"


async def test_the_work_ends_the_watch():
    before = asyncio.all_tasks()

    assert await first_of(answer(), never()) == "done"

    assert asyncio.all_tasks() == before


async def test_the_watch_ends_the_work():
    before = asyncio.all_tasks()

    with pytest.raises(RunFailedError, match="queue is gone"):
        await first_of(never(), failing(RunFailedError("queue is gone")))

    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("symptom", [ActorLostError, DeadlineError, ActorError])
async def test_work_that_lost_an_actor_waits_for_the_report_of_the_watch(symptom):
    work = failing(symptom("queue is gone"))

    with pytest.raises(RunFailedError, match="it held 3 pods"):
        await first_of(work, failing(RunFailedError("queue is gone: it held 3 pods"), after=10))


async def test_work_that_lost_an_actor_does_not_wait_forever(monkeypatch):
    monkeypatch.setattr(launch, "WATCH_ERROR_S", 0.01)

    with pytest.raises(ActorLostError, match="queue is gone"):
        await first_of(failing(ActorLostError("queue is gone")), never())


async def test_bad_input_is_reported_without_waiting():
    with pytest.raises(InputError):
        await asyncio.wait_for(first_of(failing(InputError("is wrong")), never()), GENEROUS_S)


@pytest.mark.parametrize(
    "given",
    [{"workers": 3, "schedulers": 2}, {"control": "apart"}, {"journal_copy": "copy"}],
)
def test_the_processes_of_a_run_are_those_that_its_supervisor_starts(given, tmp_path):
    settings = Settings(journal=tmp_path / "journal", **given)
    plan = replace(plan_of(), settings=settings)
    runtime = InlineRuntime(mailbox_max_messages=64, limits=plan.limits)

    started = supervisor.Supervisor(runtime, plan).groups()

    assert process_names(settings) == list(started)


def test_room_for_workers_is_counted_beside_all_other_processes_of_the_run(monkeypatch):
    class Joined:
        async def room_for_workers(self, others):
            self.others = others
            return 7

    joined = Joined()
    monkeypatch.setattr(launch, "open_runtime", lambda plan: joined)
    settings = Settings(workers=2, schedulers=2, control="apart", journal_copy=Path("copy"))
    launcher = ActorLauncher()

    assert launcher.room_for_workers(settings) is None, "nothing was started"
    launcher.prepare(settings, "")

    assert launcher.room_for_workers(settings) == 7
    assert joined.others == [
        *("queue", "cache", "binder", "journal-copy"),
        *("scheduler-0", "scheduler-1"),
    ]

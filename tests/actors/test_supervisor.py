import asyncio
from pathlib import Path

import pytest

from roadstead.actors.interface import NOTHING, ActorLostError, DeadlineError, NoNodeError
from roadstead.actors.messages import ActorStatus
from roadstead.actors.supervisor import supervisor as supervisor_module
from roadstead.actors.supervisor.replacing import Budget
from roadstead.actors.supervisor.statuses import SILENT_POLLS, ActorGoneError
from roadstead.actors.supervisor.supervisor import RunFailedError, Supervisor
from roadstead.config.settings import ActorDeadlines
from roadstead.protocol.errors import InputError, UnsupportedError
from tests.actors.world import GENEROUS_S, Fake, plan_of, until

WELL = ActorStatus("held 3 nodes")


class Runtime:
    """A runtime that starts healthy fakes, or fails as a test sets."""

    def __init__(self, failure=None):
        self.failure = failure
        self.refs = {}
        self.groups = {}
        self.stopped = False
        self.gone = ""
        self.killed = []
        self.order = []
        self.nodes = {}

    def report_to(self, announce):
        pass

    def node_of(self, name):
        return self.nodes.get(name, "")

    def lost(self):
        return self.gone

    async def kill(self, name):
        self.killed.append(name)

    async def start(self, groups, *, timeout_s):
        self.groups = {host: [*builds] for host, builds in groups.items()}
        if self.failure:
            raise self.failure
        names = [name for builds in groups.values() for name in builds]
        self.refs = {name: Fake(name, status=WELL, stop=NOTHING) for name in names}
        return self.refs

    async def gather_logs(self, *, timeout_s):
        self.order.append(f"logs {timeout_s}")

    async def stop(self):
        self.stopped = True
        self.order.append("stop")
        if self.failure:
            await asyncio.Event().wait()


async def started(**settings):
    runtime = Runtime()
    supervisor = Supervisor(runtime, plan_of(**({"workers": 2} | settings)))
    await supervisor.start()
    return supervisor, runtime


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(supervisor_module, "WATCH_S", 0.002)


async def watched(supervisor):
    """Return the error that ends the watch."""
    with pytest.raises(Exception) as ended:  # noqa: PT011
        await asyncio.wait_for(supervisor.watch(), GENEROUS_S)
    return ended.value


async def test_a_plan_names_its_actors_and_their_processes():
    supervisor, runtime = await started(workers=2, schedulers=2)

    assert runtime.groups == {
        "control": ["queue", "cache", "binder"],
        "worker-0": ["worker-0"],
        "worker-1": ["worker-1"],
        "scheduler-0": ["scheduler-0"],
        "scheduler-1": ["scheduler-1"],
    }
    assert supervisor.refs.keys() == runtime.refs.keys()


async def test_logs_are_gathered_before_the_processes_end():
    supervisor, runtime = await started()

    await supervisor.stop(logs_s=0.5)

    assert runtime.order == ["logs 0.5", "stop"]


async def test_no_logs_are_gathered_once_ray_is_lost():
    supervisor, runtime = await started()
    runtime.gone = "Ray's raylet (process 4) ended"

    await supervisor.stop()

    assert runtime.order == ["stop"]


async def test_queue_cache_and_binder_may_have_processes_of_their_own():
    _, runtime = await started(workers=1, control="apart")

    assert [*runtime.groups] == ["queue", "cache", "binder", "scheduler-0", "worker-0"]


@pytest.mark.parametrize("kind", [ActorLostError, DeadlineError])
async def test_an_actor_that_does_not_start_fails_the_run(kind):
    supervisor = Supervisor(Runtime(kind("worker-0 did not answer its start")), plan_of())

    with pytest.raises(RunFailedError, match="the run did not start: worker-0 did not answer"):
        await supervisor.start()


@pytest.mark.parametrize(("journal", "how"), [(None, "again"), (Path("j"), "with --resume")])
async def test_a_loss_during_the_start_ends_the_run_with_cause_and_remedy(journal, how):
    runtime = Runtime(ActorLostError("binder is gone: its Ray node h2 (10.0.0.2) does not answer"))

    with pytest.raises(RunFailedError) as failure:
        await Supervisor(runtime, plan_of(journal=journal)).start()

    assert str(failure.value) == (
        "the run did not start: binder is gone: its Ray node h2 (10.0.0.2) does not answer. "
        f"Nothing was placed; start it {how}: lost nodes are then left out."
    )


async def test_a_poll_records_the_status_of_an_actor():
    supervisor, _ = await started()

    assert await supervisor.statuses.of("worker-0") == WELL
    assert supervisor.statuses.last == {"worker-0": WELL}


@pytest.mark.parametrize(
    "failure", [ActorLostError("binder is gone"), DeadlineError("binder did not answer")]
)
async def test_a_lost_or_silent_binder_without_a_journal_is_reported_with_its_last_status(failure):
    supervisor, runtime = await started()
    await supervisor.statuses.of("binder")
    runtime.refs["binder"].answers["status"] = failure

    gone = await watched(supervisor)

    assert type(gone) is ActorGoneError
    assert str(gone) == (
        f"{failure}. It held 3 nodes. The run ends here; there is no journal of what was bound."
    )


async def test_an_actor_that_never_answered_is_reported_without_a_last_status():
    supervisor, runtime = await started()
    runtime.refs["queue"].answers["status"] = ActorLostError("queue is gone")

    with pytest.raises(ActorGoneError, match=r"^queue is gone\. The run ends here"):
        await supervisor.statuses.of("queue")


async def test_the_last_status_of_an_actor_lost_during_collection_counts():
    supervisor, runtime = await started()
    await supervisor.statuses.last_of("worker-0")
    for name in ("worker-0", "queue"):
        runtime.refs[name].answers["status"] = ActorLostError(f"{name} is gone")

    assert await supervisor.statuses.last_of("worker-0") == WELL
    assert (await supervisor.statuses.last_of("queue")).text == "has not answered yet"


async def test_an_actor_that_can_not_continue_ends_the_run_with_its_reason():
    supervisor, runtime = await started()
    runtime.refs["binder"].answers["status"] = ActorStatus("had committed 7 binds", "disk full")

    failure = await watched(supervisor)

    assert type(failure) is RunFailedError
    assert str(failure).startswith("binder cannot continue: disk full. It had committed 7 binds.")


async def test_an_actor_that_can_not_continue_is_named_with_its_node():
    supervisor, runtime = await started()
    runtime.nodes["binder"] = "h2 (10.0.0.2)"
    runtime.refs["binder"].answers["status"] = ActorStatus("", "disk full")

    failure = await watched(supervisor)

    assert str(failure).startswith("binder on h2 (10.0.0.2) cannot continue: disk full.")


async def test_input_errors_are_raised_unchanged():
    supervisor, runtime = await started()
    answers = runtime.refs["scheduler-0"].answers
    answers["status"] = ActorStatus("", "text", "UnsupportedError", ("P", 'Pod "a/b"', "spec.x"))

    failure = await watched(supervisor)

    assert type(failure) is UnsupportedError
    assert (failure.plugin, failure.obj, failure.field) == ("P", 'Pod "a/b"', "spec.x")
    answers["status"] = ActorStatus("", "text", "InputError", ("rule", "a.yaml", "", "", ""))
    assert type(await watched(supervisor)) is InputError


async def test_the_lost_actor_is_named_before_other_failures():
    supervisor, runtime = await started(workers=2)
    binder = runtime.refs["binder"]

    def fails_for_want_of(_):
        binder.answers["status"] = ActorLostError("binder is gone")
        return ActorStatus("had decided 3 batches", "binder is gone", "ActorLostError")

    runtime.refs["queue"].answers["status"] = fails_for_want_of
    runtime.refs["cache"].answers["status"] = ActorStatus("", "a worker no longer applies changes")

    failure = await watched(supervisor)

    assert type(failure) is ActorGoneError
    assert str(failure).startswith("binder is gone. ")


async def test_a_silent_actor_does_not_hide_the_failure_of_another(monkeypatch):
    monkeypatch.setattr(supervisor_module, "FURTHER_FAILURES_S", 0.01)
    supervisor, runtime = await started()
    runtime.refs["worker-0"].answers["status"] = lambda _: asyncio.Event().wait()
    runtime.refs["scheduler-0"].answers["status"] = ActorStatus("", "it broke", "ActorError")

    failure = await watched(supervisor)

    assert str(failure).startswith("scheduler-0 cannot continue: it broke. ")


async def test_the_watch_polls_all_actors_repeatedly():
    supervisor, runtime = await started()
    looks = []

    def well(_):
        looks.append(1)
        return WELL if len(looks) < 3 else ActorLostError("queue is gone")

    runtime.refs["queue"].answers["status"] = well

    assert type(await watched(supervisor)) is ActorGoneError
    assert len(runtime.refs["binder"].received("status")) >= 2, "the binder was polled again"


async def test_a_silent_worker_has_extra_time_before_it_counts_as_lost():
    supervisor, runtime = await started(workers=1)
    await supervisor.statuses.of("worker-0")
    runtime.refs["worker-0"].answers["status"] = DeadlineError("worker-0 did not answer")

    given = [await supervisor.statuses.of("worker-0") for _ in range(SILENT_POLLS - 1)]
    with pytest.raises(ActorGoneError, match="worker-0 did not answer"):
        await supervisor.statuses.of("worker-0")

    assert given == [WELL] * (SILENT_POLLS - 1)


async def test_a_worker_that_answers_again_is_kept():
    supervisor, runtime = await started(workers=1)
    answers = runtime.refs["worker-0"].answers
    for _ in range(2 * SILENT_POLLS):
        answers["status"] = DeadlineError("worker-0 did not answer")
        assert (await supervisor.statuses.of("worker-0")).error == ""
        answers["status"] = WELL
        await supervisor.statuses.of("worker-0")


async def without_worker_1(slow):
    """Return a supervisor that replaces worker-1, while another actor does not answer `fence`."""
    supervisor, runtime = await started(workers=2, control="apart")
    for ref in runtime.refs.values():
        ref.answers["fence"] = NOTHING
    runtime.refs[slow].answers["fence"] = DeadlineError(f"{slow} did not answer")
    runtime.refs["cache"].answers["restream"] = NOTHING
    runtime.refs["worker-1"].answers["status"] = ActorLostError("worker-1 is gone")

    async def start(groups, *, timeout_s):
        assert [*groups] == ["worker-1"]
        return {"worker-1": Fake("worker-1", status=WELL, fence=NOTHING, stop=NOTHING)}

    runtime.start = start
    return supervisor


async def test_a_slow_worker_does_not_delay_the_replacement_of_others():
    supervisor = await without_worker_1("worker-0")

    watching = asyncio.create_task(supervisor.watch())
    await until(lambda: supervisor.restarts)
    watching.cancel()

    assert supervisor.epochs["worker-1"] == 2


async def test_an_actor_that_does_not_answer_fences_fails_each_replacement():
    supervisor = await without_worker_1("queue")

    failure = await watched(supervisor)

    assert str(failure).endswith(f"It was replaced {Budget.TIMES} times in a minute.")
    assert supervisor.restarts == []


async def test_a_new_actor_that_ends_while_it_is_filled_is_replaced_immediately():
    supervisor, runtime = await started(workers=1)
    lives = []

    async def start(groups, *, timeout_s):
        (name,) = groups
        lives.append(name)
        is_last = len(lives) == 3
        status = WELL if is_last else ActorLostError(f"{name} is gone")
        runtime.refs["cache"].answers["restream"] = NOTHING if is_last else never
        return {name: Fake(name, status=status, fence=NOTHING, stop=NOTHING)}

    async def never(_):
        await asyncio.Event().wait()

    for ref in runtime.refs.values():
        ref.answers["fence"] = NOTHING
    runtime.start = start
    runtime.refs["worker-0"].answers["status"] = ActorLostError("worker-0 is gone")

    watching = asyncio.create_task(supervisor.watch())
    await until(lambda: supervisor.restarts)
    watching.cancel()

    assert lives == ["worker-0"] * 3
    assert supervisor.epochs["worker-0"] == 4


async def test_stop_stops_the_schedulers_first_and_then_all_actors():
    supervisor, runtime = await started(schedulers=2)

    await supervisor.stop()

    assert runtime.stopped
    assert [name for name, ref in runtime.refs.items() if ref.received("stop")] == [
        "binder",
        "scheduler-0",
        "scheduler-1",
    ]


async def test_a_lost_scheduler_does_not_keep_other_actors_from_being_stopped():
    supervisor, runtime = await started()
    runtime.refs["scheduler-0"].answers["stop"] = ActorLostError("scheduler-0 is gone")

    await supervisor.stop()

    assert runtime.stopped


async def test_a_runtime_that_does_not_end_is_abandoned_at_the_deadline():
    runtime = Runtime(DeadlineError("late"))
    supervisor = Supervisor(runtime, plan_of(deadlines=ActorDeadlines(stop_s=0.01)))

    with pytest.raises(TimeoutError):
        await supervisor.stop()


LOST = "Ray's gcs_server (process 7) ended: killed by signal 9"


async def test_a_run_that_loses_ray_ends_with_that_error_despite_other_reports():
    supervisor, runtime = await started(journal=Path("j"))
    runtime.refs["queue"].answers["status"] = ActorLostError("queue is gone")
    runtime.gone = LOST

    failure = await watched(supervisor)

    assert type(failure) is RunFailedError
    assert str(failure) == (
        f"{LOST}. The run ends here; what the binder acknowledged is in j, "
        "and --resume continues the run."
    )


async def test_without_a_journal_no_run_is_continued():
    supervisor, runtime = await started()
    runtime.gone = LOST

    failure = await watched(supervisor)

    assert str(failure).endswith("there is no journal of what was bound.")


async def test_no_actor_is_replaced_after_ray_is_lost():
    supervisor, runtime = await started(journal=Path("j"))
    runtime.gone = LOST

    with pytest.raises(RunFailedError, match="gcs_server"):
        await supervisor._replace([ActorGoneError("queue is gone", "queue")])

    assert runtime.killed == []


async def test_a_run_that_can_not_start_without_ray_reports_it():
    runtime = Runtime(ActorLostError("worker-0 did not start"))
    runtime.gone = LOST

    with pytest.raises(RunFailedError, match="gcs_server"):
        await Supervisor(runtime, plan_of()).start()


async def test_a_run_that_loses_ray_at_its_start_does_not_wait_for_its_deadline():
    class Waiting(Runtime):
        """A runtime that loses its Ray and waits for actors that never start."""

        async def start(self, groups, *, timeout_s):
            self.gone = LOST
            await asyncio.Event().wait()

    with pytest.raises(RunFailedError, match="gcs_server"):
        await asyncio.wait_for(Supervisor(Waiting(), plan_of()).start(), GENEROUS_S)


async def test_no_actor_is_asked_to_stop_after_ray_is_lost():
    supervisor, runtime = await started()
    runtime.gone = LOST

    await supervisor.stop()

    assert runtime.stopped
    assert not [name for name, ref in runtime.refs.items() if ref.received("stop")]


async def test_a_run_whose_actors_fit_on_no_other_node_ends_with_the_reason():
    runtime = Runtime()
    supervisor = Supervisor(runtime, plan_of(), has_journal=True)
    await supervisor.start()
    for ref in runtime.refs.values():
        ref.answers["fence"] = NOTHING
    lost = ActorLostError("scheduler-0 is gone: its Ray node h2 (10.0.0.2) does not answer")
    runtime.refs["scheduler-0"].answers["status"] = lost
    runtime.failure = NoNodeError("the scheduler wants 1 CPU on one node. Waited 30 s")

    with pytest.raises(RunFailedError) as ended:
        async with asyncio.timeout(GENEROUS_S):
            await supervisor.watch()

    reason = (
        "scheduler-0 is gone: its Ray node h2 (10.0.0.2) does not answer. No other node can run "
        "scheduler-0: the scheduler wants 1 CPU on one node. Waited 30 s. The run ends here;"
    )
    assert str(ended.value).startswith(reason)
    assert "--resume continues the run" in str(ended.value)

"""ActorLauncher: executes runs on actors, on either runtime, and ends all that it started.

open_runtime ─► supervisor.start ─► work of the run, while the supervisor watches ─► stop
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from roadstead.actors.interface import (
    ActorError,
    ActorLostError,
    DeadlineError,
    RunFailedError,
    Runtime,
)
from roadstead.actors.logs import close_logs, open_log
from roadstead.actors.names import process_names
from roadstead.actors.runs.bench_run import BenchRun
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.event_loops import canceller, in_thread, run_on_new_loop
from roadstead.actors.runs.explainer import explain_pending, explain_pod
from roadstead.actors.runs.journals import (
    close_journal,
    mark_finished,
    open_journal,
    with_journal,
)
from roadstead.actors.runs.profiling import Profiler
from roadstead.actors.runs.session import RunSession
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.supervisor.plugin_processes import plugins_watched
from roadstead.actors.supervisor.supervisor import LOGS_S, Supervisor
from roadstead.bench.metrics import BenchResult
from roadstead.bench.script import Script
from roadstead.config.settings import Settings
from roadstead.cycle.explain import Explained, Explanation
from roadstead.facts.pod import Pod
from roadstead.garbage_collection import gc_tuned, tuning_of
from roadstead.interruption import cancelling_on_signal
from roadstead.journal import JournalError
from roadstead.kernel.compile_process import detach_compilations
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan, check_schedulers

if TYPE_CHECKING:
    from roadstead.lab.lab_run import LabRun, LabSetup
    from roadstead.report.ray_nodes import CheckedNode
    from roadstead.sweeps.drivers import TaskDriver
    from roadstead.sweeps.tasks import Work

T = TypeVar("T")
"""Result of the work of a run."""

ReportProgress = Callable[[Progress], None]

_CALL_ERRORS = (ActorError, ActorLostError, DeadlineError)
"""Errors of calls to a failed actor; `Supervisor.watch` raises one that names its cause."""

WATCH_ERROR_S = 5.0
"""How long to wait for the error of `Supervisor.watch` after a call has failed."""

CLOSE_TRIES, CLOSE_PAUSE_S = 50, 0.1
"""Number of attempts to close a journal that is still in use, and the pause between them."""

INTERRUPTED_LOGS_S = 0.8
"""How long logs are gathered after an interrupt: within 3 s of `ray job stop` all must end."""

INTERRUPTED_STOP_S = 0.6
"""How long the schedulers may take to stop after an interrupt, and then the binder, which closes
the journal: within 2 s, even if a scheduler is in a plugin's call or its node is lost."""


class ActorLauncher:
    """Launcher of runs on Ray or inline, by the plan's settings.

    _starting: future of the runtime that `prepare` began to start, for the next run.
    """

    def __init__(self) -> None:
        self._starting: Future[Runtime] | None = None

    def prepare(self, settings: Settings, log_dir: str) -> None:
        """Start Ray in the background if the settings need it, while the inputs are read."""
        if settings.runtime == "ray" and self._starting is None:
            plan = RunPlan(settings, log_dir=log_dir)
            self._starting = in_thread(lambda: open_runtime(plan), "start-ray")

    def room_for_workers(self, settings: Settings) -> int | None:
        """Return how many workers fit on the cluster that `prepare` joined; None on one machine.

        None also if it cannot be joined: the run that follows reports why.
        """
        if self._starting is None or self._starting.exception() is not None:
            return None
        others = process_names(settings.model_copy(update={"workers": 0}))
        try:
            return run_on_new_loop(self._starting.result().room_for_workers(others))
        except _CALL_ERRORS:
            return None

    def _runtime(self, plan: RunPlan) -> Runtime:
        starting, self._starting = self._starting, None
        return open_runtime(plan) if starting is None else starting.result()

    def run(self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress) -> RunOutcome:
        """Schedule all inputs and return the outcome. RoadsteadError if the run fails.

        With `resume`, a run in the journal that ended is not repeated: its outcome is read.
        """
        opened = open_journal(plan, inputs)
        for note in opened.notes:
            progress(Progress(note=note))
        if opened.outcome is not None:
            self._stop_started()
            return opened.outcome
        plan = opened.plan

        async def work(client: Client, supervisor: Supervisor) -> RunOutcome:
            outcome = await client.run(inputs)
            await client.end(outcome)
            return outcome

        return run_on_new_loop(_with_actors(partial(self._runtime, plan), plan, progress, work))

    def finish(self, plan: RunPlan) -> None:
        """Mark that the output of a run is written or shown: the run need not be resumed."""
        mark_finished(plan)

    def _stop_started(self) -> None:
        """End the runtime that `prepare` started, for a run that needs no actors."""
        starting, self._starting = self._starting, None
        # A failure to start Ray does not matter to a run without actors.
        with contextlib.suppress(*_CALL_ERRORS):
            if starting is not None:
                run_on_new_loop(starting.result().stop())

    def explain(
        self, inputs: RunInputs, plan: RunPlan, pod: Pod, progress: ReportProgress
    ) -> Explanation:
        """Schedule the pending pods of the inputs, then explain `pod` on the free resources."""
        return explain_pod(inputs, self._run_first(inputs, plan, progress), plan, pod)

    def explain_pending(
        self, inputs: RunInputs, plan: RunPlan, pods: Sequence[Pod], progress: ReportProgress
    ) -> tuple[Explained, ...]:
        """Schedule the pending pods of the inputs, then explain those of `pods` without a node."""
        return explain_pending(inputs, self._run_first(inputs, plan, progress), plan, pods)

    def _run_first(
        self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress
    ) -> RunOutcome | None:
        """Schedule the inputs and return the outcome; None if nothing is pending."""
        if not inputs.pending:
            self._stop_started()
            return None
        outcome = self.run(inputs, plan, progress)
        self.finish(plan)
        return outcome

    def run_lab(self, inputs: RunInputs, plan: RunPlan, lab: LabSetup) -> LabRun:
        """Schedule all inputs on a lab's actors and measure the run. RoadsteadError if it fails."""
        from roadstead.actors.runs.lab_run import measure_run, supervisor_for, virtual_runtime

        plan = with_journal(plan, inputs)

        async def work(client: Client, supervisor: Supervisor) -> LabRun:
            return await measure_run(client, supervisor, plan, inputs)

        def whole_run(make_runtime: Callable[[], Runtime]) -> Coroutine[Any, Any, LabRun]:
            return _with_actors(
                make_runtime, plan, lambda progress: None, work, supervisor_for(lab)
            )

        if lab.is_virtual:
            lab_run = run_virtual(lambda: whole_run(partial(virtual_runtime, plan)))
        else:
            lab_run = run_on_new_loop(whole_run(partial(self._runtime, plan)))
        mark_finished(plan)
        return lab_run

    def open_tasks(
        self, work: Work, settings: Settings, jobs: int | None, announce: Callable[[str], None]
    ) -> TaskDriver:
        """Start processes that run tasks of a sweep, on the Ray of the settings."""
        from roadstead.actors.sweeps.ray_tasks import RayTasks

        try:
            return RayTasks(work, settings, jobs, announce)
        except _CALL_ERRORS as failure:
            raise RunFailedError(str(failure)) from failure

    def bench(
        self,
        script: Script,
        plan: RunPlan,
        progress: ReportProgress,
        *,
        timeout_s: float,
        profiles: bool = False,
    ) -> BenchResult:
        """Execute a benchmark's script and measure it. RoadsteadError if it fails."""
        plan = with_journal(plan, RunInputs(()))
        profiler = Profiler() if profiles else None

        async def work(client: Client, supervisor: Supervisor) -> BenchResult:
            session = RunSession(supervisor, plan)
            run = BenchRun(session, script, progress, timeout_s=timeout_s, profiler=profiler)
            measured = tuple(await run.run())
            return BenchResult(measured, {} if profiler is None else profiler.samples)

        benched = run_on_new_loop(_with_actors(partial(self._runtime, plan), plan, progress, work))
        mark_finished(plan)
        return benched

    def check_cluster(self, settings: Settings) -> tuple[str, tuple[CheckedNode, ...]]:
        """Check each node of a Ray cluster. RunFailedError if it cannot be joined."""
        from roadstead.actors.runs.cluster_check import check_cluster

        try:
            return run_on_new_loop(check_cluster(settings))
        except _CALL_ERRORS as failure:
            raise RunFailedError(str(failure)) from failure


async def _with_actors(
    make_runtime: Callable[[], Runtime],
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    supervise: Callable[[Runtime, RunPlan], Supervisor] = Supervisor,
) -> T:
    """Start the actors of a plan, do the work while they are watched, and end them.

    supervise: makes the supervisor.
    """
    # The process of an actor in which a plugin's call does not return is ended; inline, this one.
    with plugins_watched(plan) as watched_plan, gc_tuned(tuning_of(plan.settings.batch)):
        return await _with_runtime(make_runtime, watched_plan, progress, work, supervise)


async def _with_runtime(
    make_runtime: Callable[[], Runtime],
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    supervise: Callable[[Runtime, RunPlan], Supervisor],
) -> T:
    check_schedulers(plan)
    progress(Progress("starting actors"))
    started_s = asyncio.get_running_loop().time()
    open_log(plan.log_dir, "driver")
    try:
        runtime = make_runtime()
    except _CALL_ERRORS as failure:
        close_logs()
        raise RunFailedError(str(failure)) from failure
    supervisor = supervise(runtime, plan)
    supervisor.report_to(lambda text: progress(Progress(note=text)))
    with cancelling_on_signal(canceller()):
        return await _run_supervised(supervisor, plan, progress, work, started_s)


async def _run_supervised(
    supervisor: Supervisor,
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    started_s: float,
) -> T:
    """Start all actors, do the work, and end the actors."""
    is_over, logs_s, request_s = False, LOGS_S, math.inf
    try:
        await supervisor.start()
        client = Client(supervisor, plan, progress)
        client.timings_s["start actors"] = asyncio.get_running_loop().time() - started_s
        _compare_on_signal(supervisor)
        done = await first_of(work(client, supervisor), supervisor.watch())
        is_over = True
        return done
    except _CALL_ERRORS as failure:
        raise RunFailedError(str(failure)) from failure
    except asyncio.CancelledError:
        logs_s, request_s = INTERRUPTED_LOGS_S, INTERRUPTED_STOP_S
        raise
    finally:
        with contextlib.suppress(TimeoutError):
            await supervisor.stop(logs_s=logs_s, request_s=request_s)
        close_logs()
        if is_over:
            await _close(plan)
            # The kernel may still be compiling in processes of its own, for the next run.
            detach_compilations()


async def _close(plan: RunPlan) -> None:
    """Write the end of the journal of a run that succeeded, unless the binder did.

    A binder that ends without a `stop`, as after the loss of Ray, releases the folder a moment
    later, so closing is repeated. If it does not end, `roadstead check` reports the missing end.
    """
    for _ in range(CLOSE_TRIES):
        with contextlib.suppress(JournalError):
            close_journal(plan)
            return
        await asyncio.sleep(CLOSE_PAUSE_S)


def _compare_on_signal(supervisor: Supervisor) -> None:
    """Let SIGUSR2 start a comparison of the cache, as upstream; only in the main thread."""
    loop = asyncio.get_running_loop()
    # The loop has only weak references to tasks.
    comparisons: set[asyncio.Task[tuple[str, ...]]] = set()

    def compare() -> None:
        task = loop.create_task(supervisor.compare())
        comparisons.add(task)
        task.add_done_callback(comparisons.discard)

    if threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGUSR2, compare)


async def first_of(work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, None]) -> T:
    """Return the result of the work, unless the watch raises first."""
    working, watching = asyncio.create_task(work), asyncio.create_task(watch)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        # A failed call may be the consequence of a lost actor; the watch then names this actor.
        if working.done() and isinstance(working.exception(), _CALL_ERRORS):
            await asyncio.wait({watching}, timeout=WATCH_ERROR_S)
        if watching.done() and (failure := watching.exception()) is not None:
            raise failure
        return await working
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def open_runtime(plan: RunPlan) -> Runtime:
    """Open the runtime that the settings name. Ray is imported only if it is used."""
    settings = plan.settings
    if settings.runtime == "inline":
        max_messages = settings.bounds.mailbox_max_messages
        return InlineRuntime(mailbox_max_messages=max_messages, limits=plan.limits)
    from roadstead.actors.runtime.ray_runtime import RayRuntime

    return RayRuntime(
        processes=len(process_names(settings)),
        options=settings.ray,
        journal=None if settings.journal is None else settings.journal.resolve(),
        has_copy=settings.journal_copy is not None,
        limits=plan.limits,
        log_dir=plan.log_dir,
        start_s=settings.deadlines.start_s,
    )

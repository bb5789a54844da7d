"""ActorLauncher: executes runs on actors, on either runtime, and ends all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

import uvloop

from roadstead.actors.interface import (
    ActorError,
    ActorLostError,
    DeadlineError,
    RunFailedError,
    Runtime,
)
from roadstead.actors.logs import close_logs, open_log
from roadstead.actors.runs.bench_run import BenchRun
from roadstead.actors.runs.client import Client
from roadstead.actors.runs.explainer import explain_pending, explain_pod
from roadstead.actors.runs.journals import (
    close_journal,
    mark_finished,
    open_journal,
    with_journal,
)
from roadstead.actors.runs.profiling import Profiler
from roadstead.actors.runs.session import RunSession
from roadstead.actors.runtime.gc_tuning import raised_gc_thresholds, thresholds_of
from roadstead.actors.runtime.inline import InlineRuntime
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.actors.supervisor.plugin_processes import plugins_watched
from roadstead.actors.supervisor.supervisor import LOGS_S, Supervisor
from roadstead.bench.metrics import BenchResult
from roadstead.bench.script import Script
from roadstead.config.settings import Settings
from roadstead.cycle.explain import Explained, Explanation
from roadstead.facts.pod import Pod
from roadstead.interruption import cancelling_on_signal
from roadstead.journal import JournalError
from roadstead.kernel.compile_process import detach_compilations
from roadstead.lab.lab_run import LabRun, LabSetup
from roadstead.report.ray_nodes import CheckedNode
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan, check_schedulers
from roadstead.sweeps.drivers import TaskDriver
from roadstead.sweeps.tasks import Work

T = TypeVar("T")
ReportProgress = Callable[[Progress], None]

_SYMPTOMS = (ActorError, ActorLostError, DeadlineError)
"""Errors of calls to a failed actor; the supervisor's watch has a more precise one."""

WATCH_ERROR_S = 5.0
"""How long to wait for the watch's error."""

CLOSE_TRIES, CLOSE_PAUSE_S = 50, 0.1
"""Number of attempts to close a journal that is still in use, and the pause between them."""

INTERRUPTED_LOGS_S = 0.8
"""How long logs are gathered after an interrupt: `ray job stop` waits 3 s for the whole end."""


class ActorLauncher:
    """Launcher of runs on Ray or inline, as the plan's settings say.

    _starting: the runtime that `prepare` began to start, for the next run.
    """

    def __init__(self) -> None:
        self._starting: Future[Runtime] | None = None

    def prepare(self, settings: Settings, log_dir: str) -> None:
        """Start Ray in the background if the settings need it, before the inputs are read."""
        if settings.runtime == "ray" and self._starting is None:
            self._starting = in_thread(lambda: open_runtime(RunPlan(settings, log_dir=log_dir)))

    def free_cpus(self) -> float | None:
        """Return the free CPUs of the cluster that `prepare` joined; None on one machine.

        None also if it cannot be joined: the run that follows reports why.
        """
        if self._starting is None or self._starting.exception() is not None:
            return None
        return self._starting.result().free_cpus()

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

        return _run(_with_actors(partial(self._runtime, plan), plan, progress, work))

    def finish(self, plan: RunPlan) -> None:
        """Mark that the outcome of a run is written or shown: it need not be resumed any more."""
        mark_finished(plan)

    def _stop_started(self) -> None:
        """End the runtime that `prepare` started, for a run that needs no actors."""
        starting, self._starting = self._starting, None
        if starting is not None:
            _run(starting.result().stop())

    def explain(
        self, inputs: RunInputs, plan: RunPlan, pod: Pod, progress: ReportProgress
    ) -> Explanation:
        """Schedule the pending pods of the inputs, then explain `pod` on the free resources."""
        return explain_pod(inputs, self._run_first(inputs, plan, progress), plan, pod)

    def explain_pending(
        self, inputs: RunInputs, plan: RunPlan, pods: Sequence[Pod], progress: ReportProgress
    ) -> tuple[Explained, ...]:
        """Schedule the pending pods of the inputs, then explain those of `pods` not placed."""
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
        """Schedule all inputs and measure the run. RoadsteadError if it fails."""
        from roadstead.actors.runs.stress import measure_run, supervisor_for, virtual_runtime

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
            lab_run = _run(whole_run(partial(self._runtime, plan)))
        mark_finished(plan)
        return lab_run

    def open_tasks(
        self, work: Work, settings: Settings, jobs: int | None, announce: Callable[[str], None]
    ) -> TaskDriver:
        """Start processes that run tasks of a sweep, on the Ray of the settings."""
        from roadstead.actors.sweeps.ray_tasks import RayTasks

        try:
            return RayTasks(work, settings, jobs, announce)
        except _SYMPTOMS as failure:
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

        benched = _run(_with_actors(partial(self._runtime, plan), plan, progress, work))
        mark_finished(plan)
        return benched

    def check_cluster(self, settings: Settings) -> tuple[str, tuple[CheckedNode, ...]]:
        """Check each node of a Ray cluster. RunFailedError if it cannot be joined."""
        from roadstead.actors.runs.cluster_check import check_cluster

        try:
            return _run(check_cluster(settings))
        except _SYMPTOMS as failure:
            raise RunFailedError(str(failure)) from failure


async def _with_actors(
    make_runtime: Callable[[], Runtime],
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    supervise: Callable[[Runtime, RunPlan], Supervisor] = Supervisor,
) -> T:
    """Start the actors of a plan, do the work while they are watched, and end them."""
    collecting = raised_gc_thresholds(thresholds_of(plan.settings.batch))
    with plugins_watched(plan) as watched_plan, collecting:
        return await _with_watched(make_runtime, watched_plan, progress, work, supervise)


async def _with_watched(
    make_runtime: Callable[[], Runtime],
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    supervise: Callable[[Runtime, RunPlan], Supervisor],
) -> T:
    check_schedulers(plan)
    progress(Progress("starting actors"))
    started = asyncio.get_running_loop().time()
    open_log(plan.log_dir, "driver")
    try:
        runtime = make_runtime()
    except _SYMPTOMS as failure:
        close_logs()
        raise RunFailedError(str(failure)) from failure
    runtime.report_to(lambda text: progress(Progress(note=text)))
    supervisor = supervise(runtime, plan)
    with cancelling_on_signal(_cancelling()):
        return await _run_supervised(supervisor, plan, progress, work, started)


def _cancelling() -> Callable[[], None]:
    """Return a function that cancels the present task; it may be called in a signal handler."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "work of a task"

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    return cancel


async def _run_supervised(
    supervisor: Supervisor,
    plan: RunPlan,
    progress: ReportProgress,
    work: Callable[[Client, Supervisor], Coroutine[Any, Any, T]],
    started_s: float,
) -> T:
    """Start all actors, do the work, and end the actors."""
    is_over, logs_s = False, LOGS_S
    try:
        await supervisor.start()
        client = Client(supervisor, plan, progress)
        client.timings_s["start actors"] = asyncio.get_running_loop().time() - started_s
        _compare_on_signal(supervisor)
        done = await first_of(work(client, supervisor), supervisor.watch())
        is_over = True
        return done
    except _SYMPTOMS as failure:
        raise RunFailedError(str(failure)) from failure
    except asyncio.CancelledError:
        logs_s = INTERRUPTED_LOGS_S
        raise
    finally:
        with contextlib.suppress(TimeoutError):
            await supervisor.stop(logs_s=logs_s)
        close_logs()
        if is_over:
            await _close(plan)
            detach_compilations()


async def _close(plan: RunPlan) -> None:
    """Write the end of the journal of a run that succeeded, unless the binder did.

    A binder that was not asked to stop, as after the loss of Ray, keeps the folder a moment longer,
    so closing is repeated. One that does not end keeps it, and `check` reports the missing end.
    """
    for _ in range(CLOSE_TRIES):
        with contextlib.suppress(JournalError):
            close_journal(plan)
            return
        await asyncio.sleep(CLOSE_PAUSE_S)


def _compare_on_signal(supervisor: Supervisor) -> None:
    """Let SIGUSR2 start a comparison of the cache, as upstream; only in the main thread."""
    loop = asyncio.get_running_loop()
    asked: set[asyncio.Task[tuple[str, ...]]] = set()

    def ask() -> None:
        task = loop.create_task(supervisor.compare())
        asked.add(task)
        task.add_done_callback(asked.discard)

    if threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGUSR2, ask)


async def first_of(work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, None]) -> T:
    """Return the result of the work, unless the watch raises first."""
    working, watching = asyncio.create_task(work), asyncio.create_task(watch)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        # The error of a call may only follow from a lost actor, which the watch names.
        if working.done() and isinstance(working.exception(), _SYMPTOMS):
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
        bound = settings.bounds.mailbox_max_messages
        return InlineRuntime(mailbox_max_messages=bound, limits=plan.limits)
    from roadstead.actors.runtime.ray_runtime import RayRuntime

    return RayRuntime(
        processes=processes(settings),
        options=settings.ray,
        journal=None if settings.journal is None else settings.journal.resolve(),
        has_copy=settings.journal_copy is not None,
        limits=plan.limits,
        log_dir=plan.log_dir,
        start_s=settings.deadlines.start_s,
    )


def processes(settings: Settings) -> int:
    """Return how many processes the actors of a run need on Ray."""
    control = 1 if settings.control == "together" else 3
    copies = settings.journal_copy is not None
    return control + copies + settings.workers + settings.scheduler_count


def in_thread(
    work: Callable[[], T], name: str = "start-ray", future: Future[T] | None = None
) -> Future[T]:
    """Run work in a thread and return its future; the process waits for it before it ends."""
    result: Future[T] = Future() if future is None else future

    def set_result_of_work() -> None:
        try:
            result.set_result(work())
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=set_result_of_work, name=name).start()
    return result


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run the work on its own event loop and return the result."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_on_loop(work)
    # In a notebook this thread runs a loop already, and a second one cannot run in it.
    return run_in_thread(work)


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run the work in a thread and return the result; an interrupt of the wait cancels it."""
    cancels: list[Callable[[], None]] = []
    is_interrupted = threading.Event()

    async def cancellable() -> T:
        with contextlib.closing(work):
            cancels.append(_cancelling())
            if is_interrupted.is_set():
                raise asyncio.CancelledError
            return await work

    future: Future[T] = Future()
    try:
        # Inside the `try`: the interrupt may be raised as soon as the thread runs.
        return in_thread(lambda: _run_on_loop(cancellable()), "run", future).result()
    except KeyboardInterrupt:
        is_interrupted.set()
        for cancel in cancels:
            # The loop is closed where the work has ended meanwhile.
            with contextlib.suppress(RuntimeError):
                cancel()
        wait([future])
        raise


def _run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    loops = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    # Close the work: if no loop can be made it never starts, and Python would warn of that.
    with raised_gc_thresholds(), contextlib.closing(work), loops as runner:
        return runner.run(work)

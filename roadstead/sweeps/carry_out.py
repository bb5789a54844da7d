"""Carrying out a sweep: its core, a driver, and a file of its results.

Where a task ran changes no result, and results are used in the order of the tasks. So a sweep may
begin in this process and continue in others, whose start takes seconds, if that saves time
(`pays`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from roadstead.interruption import cancelling_on_signal
from roadstead.protocol.errors import RoadsteadError
from roadstead.sweeps.core import SweepCore
from roadstead.sweeps.drivers import Failed, Finished, InProcess, TaskDriver
from roadstead.sweeps.functions import read_result
from roadstead.sweeps.tasks import Plain, TaskCounts, Work

PAYS_S = 15.0
"""Other processes are started if they save this time by the estimate: they take 4 to 8 s to start,
and import the same modules again."""

MEASURED_TASKS = 2
"""Tasks after which there is an estimate. It leaves out the first one, which imports and compiles
for all."""


class ResultStore(Protocol):
    """Storage of the results of a sweep."""

    def stored(self) -> Mapping[int, Plain]:
        """Return the results that are stored."""
        ...

    def add(self, task: int, result: Plain) -> None:
        """Store the result of a task that has none."""
        ...


class NoStore:
    """Store nothing."""

    def stored(self) -> Mapping[int, Plain]:
        """Return nothing."""
        return {}

    def add(self, task: int, result: Plain) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Other processes that can run tasks.

    open: starts them and returns their driver. jobs: how many tasks they run at a time; None if
    that is not known, and then the estimate is that they save no time. starts_at_once: they are
    started before the first task; if False, when the estimate after some tasks in this process is
    that they save enough time (`pays`).
    """

    open: Callable[[], TaskDriver]
    jobs: int | None
    starts_at_once: bool


ReportCounts = Callable[[TaskCounts, int], None]
"""Called when counts change, with them and the number of the task that was started last."""


OnResult = Callable[[int, Plain], None]
"""Called with each result, stored ones first: the number of its task, and the result."""


def ignore_result(_: int, __: Plain) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """The end of a sweep. results: task → result, in the order of their ends.

    stopped_by: why the sweep ended early; None if it is complete.
    """

    results: Mapping[int, Plain]
    stopped_by: RoadsteadError | KeyboardInterrupt | None = None


@dataclass(slots=True)
class _Sweep:
    """A sweep that is carried out. stopped: set by a signal. _last: the task started last."""

    work: Work
    core: SweepCore
    store: ResultStore
    report: ReportCounts
    on_result: OnResult = ignore_result
    stopped: threading.Event = field(default_factory=threading.Event)
    _last: int = 0

    def drive(self, driver: TaskDriver, until: Callable[[], bool] = lambda: False) -> None:
        """Run tasks until the sweep is over or stopped, or `until` returns True after a task."""
        core = self.core
        try:
            while not core.is_over and not self.stopped.is_set():
                for start in core.start(driver.max_running()):
                    driver.start(start)
                    self._last = start.task
                self.report(core.counts, self._last)
                if self._collect(driver) and until():
                    return
            if self.stopped.is_set():
                # Results that are there already are kept; the others would take too long.
                core.stop()
                self._collect(driver)
        finally:
            driver.stop()

    def _collect(self, driver: TaskDriver) -> int:
        """Record the tasks that ended; return their number."""
        ended_tasks = driver.wait()
        for ended in ended_tasks:
            if isinstance(ended, Finished):
                result = read_result(ended.result)
                if self.core.finish(ended.start, result):
                    self.store.add(ended.start.task, result)
                    self.on_result(ended.start.task, result)
            elif isinstance(ended, Failed):
                self.core.fail(ended.start, ended.error)
            else:
                self.core.lose(ended.start, ended.why)
        if self.core.failure is not None:
            self.core.abandon()
        return len(ended_tasks)


def carry_out(
    work: Work,
    processes: Processes | None,
    store: ResultStore,
    report: ReportCounts,
    clock: Callable[[], float],
    on_result: OnResult = ignore_result,
) -> SweepEnd:
    """Run all tasks whose results are not stored.

    processes: None to run all of them in this process. clock: seconds; decides only where tasks
    run. After the first failure, or a signal, no further task is started, and running ones are
    ended.
    """
    core = SweepCore(len(work.tasks))
    core.restore(store.stored())
    sweep = _Sweep(work, core, store, report, on_result)
    try:
        for task, result in store.stored().items():
            on_result(task, result)
        if processes is None or not processes.starts_at_once:
            sweep.drive(InProcess(work), _Estimate(core, processes, clock).count_task)
        if processes is not None and not core.is_over:
            # The start of the processes takes seconds, in which nothing is reported.
            report(core.counts, 0)
            driver = processes.open()
            with cancelling_on_signal(sweep.stopped.set):
                sweep.drive(driver)
        report(core.counts, len(work.tasks) - 1)
    except (KeyboardInterrupt, RoadsteadError) as cause:
        core.abandon()
        return SweepEnd(core.results, cause)
    return SweepEnd(core.results, core.failure)


class _Estimate:
    """The time that other processes would save, from the tasks that ran in this one."""

    def __init__(
        self, core: SweepCore, processes: Processes | None, clock: Callable[[], float]
    ) -> None:
        self._core, self._processes, self._clock = core, processes, clock
        self._ended = 0
        # When the first task ended, by the clock.
        self._first_s = 0.0

    def count_task(self) -> bool:
        """Count a task that ended; return whether to continue in other processes."""
        self._ended += 1
        if self._processes is None or self._core.is_over:
            return False
        now_s = self._clock()
        if self._ended == 1:
            self._first_s = now_s
        if self._ended < MEASURED_TASKS:
            return False
        counts = self._core.counts
        task_s = (now_s - self._first_s) / (self._ended - 1)
        return pays(task_s, counts.total - counts.done, self._processes.jobs or 1)


def pays(task_s: float, tasks: int, jobs: int) -> bool:
    """Whether `jobs` processes save enough on this many tasks of `task_s` each."""
    return task_s * (tasks - -(-tasks // jobs)) > PAYS_S

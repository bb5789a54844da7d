"""Omega: service and batch schedulers on one shared cell (Omega's word for a cluster).

      arrival ─► queue of a scheduler ─► view of the cell ─► decision time ─► placement on it
                     ▲                                                            │
                     └─ a second later, while tasks are left ◄─ conflicts ◄─ commit ─► end of tasks

After Schwarzkopf et al., EuroSys 2013, and its published simulator (OmegaSimulation.scala of
google/cluster-scheduler-simulator): a decision takes t_job + t_task · tasks; the schedulers of a
type receive jobs in turn; a job is abandoned if no task is placed after 100 attempts, or not all
after 1,000. Initially the cell is filled to `load` with tasks that do not end.
Additions to Omega: `batch` jobs may be decided on one view, and a view may be `staleness_s` old.

`tasks` in arguments and events are placed tasks of one job: int64[tasks], the machine of each.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, cycle
from typing import Final

import numpy as np

from roadstead.lab.arrays import Ints
from roadstead.lab.cell_types import EXAMPLE, CellType
from roadstead.lab.omega_cell import Cell, CellCopy, Detection, Transaction, has_room
from roadstead.lab.placement import (
    PLACEMENTS,
    Place,
    Score,
    first_fit,
    least_allocated,
    most_allocated,
    sampled,
)
from roadstead.lab.tally import Tally
from roadstead.lab.workload import JobType, LabJob, job_of, jobs_of

FRUITLESS_ATTEMPTS: Final = 100
"""Attempts after which a job of which no task is placed is abandoned."""

ATTEMPTS: Final = 1000
"""Attempts after which any job is abandoned."""

RETRY_S: Final = 1.0
"""Time between two attempts."""

REGRET_EVERY: Final = 8
"""Regret, which needs the scores of all machines, is computed once in this many transactions."""


@dataclass(frozen=True, slots=True)
class OmegaModel:
    """A cell and its schedulers. Times are in seconds.

    job_s, task_s: decision time of batch schedulers; service_job_s, service_task_s: of service
    schedulers; the defaults are the paper's (section 4). batch_rate, service_rate: factors of the
    arrival rates. load: see above. conflicts: a task conflicts if it no longer fits on its machine
    (`fit`), or if any task was placed there since the view was read (`version`). transaction:
    commit the tasks without a conflict (`incremental`), or all or none. placement: a key of
    `PLACEMENTS`. sample: number of machines scored for a task; 0 for all.
    """

    machines: int = 10_000
    cell: CellType = EXAMPLE
    load: float = 0.6
    batch_schedulers: int = 1
    service_schedulers: int = 1
    job_s: float = 0.1
    task_s: float = 0.005
    service_job_s: float = 0.1
    service_task_s: float = 0.005
    batch_rate: float = 1.0
    service_rate: float = 1.0
    conflicts: Detection = "fit"
    transaction: Transaction = "incremental"
    placement: str = "first-fit"
    staleness_s: float = 0.0
    sample: int = 0
    batch: int = 1
    horizon_s: float = 14_400.0

    @property
    def score(self) -> Score:
        """The score that the placement maximizes; for first-fit, it is used for regret alone."""
        return most_allocated if self.placement == "pack" else least_allocated

    def place(self) -> Place:
        """Return the function that places the tasks of a job."""
        if self.placement == "first-fit" or not self.sample:
            return PLACEMENTS[self.placement]
        return sampled(self.sample, self.score)


class _Scheduler:
    """One scheduler: its queue, the jobs that it is deciding, and its view.

    job_s, task_s: decision time for a job, and for each of its tasks. tally: of its type of jobs.
    """

    def __init__(
        self, job_s: float, task_s: float, tally: Tally, random: np.random.Generator
    ) -> None:
        self.job_s, self.task_s = job_s, task_s
        self.tally = tally
        self.random = random
        self.queue: deque[LabJob] = deque()
        self.deciding: list[LabJob] = []
        self.view: CellCopy | None = None

    def decision_s(self, job: LabJob) -> float:
        return self.job_s + self.task_s * job.left


@dataclass(frozen=True, slots=True, eq=False)
class _Arrival:
    """The first or repeated arrival of a job at a scheduler."""

    scheduler: _Scheduler
    job: LabJob


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """The end of the tasks of one transaction, which all have the same duration.

    request: int64[resources], of each task.
    """

    tasks: Ints
    request: Ints


class OmegaRun:
    """One run of a model; `run()` simulates it up to the horizon.

    The agenda is a heap of (time, order, event). An event is an arrival, the end of tasks, or a
    scheduler whose decision time has passed.
    """

    def __init__(self, model: OmegaModel, seed: int) -> None:
        schedulers = model.batch_schedulers + model.service_schedulers
        seeds = iter(np.random.SeedSequence(seed).spawn(3 + schedulers))
        self.model = model
        self.now_s = 0.0
        self.cell = Cell(model.machines, model.cell.capacity(model.machines))
        self._place = model.place()
        self._agenda: list[tuple[float, int, _Scheduler | _Arrival | _End]] = []
        self._order = count()
        # Integral of the used fraction over time.
        self._used_s = 0.0
        _prefill(self.cell, model, np.random.default_rng(next(seeds)))
        of_arrivals = [np.random.default_rng(next(seeds)) for _ in range(2)]
        self.tallies = {
            job_type.name: Tally() for job_type in (model.cell.batch, model.cell.service)
        }
        batch = self._schedulers_of(
            model.cell.batch, model.batch_schedulers, model.job_s, model.task_s
        )
        service = self._schedulers_of(
            model.cell.service, model.service_schedulers, model.service_job_s, model.service_task_s
        )
        self.schedulers = (*batch, *service)
        for each in self.schedulers:
            each.random = np.random.default_rng(next(seeds))
        self._schedule_arrivals(model.cell.batch, model.batch_rate, batch, of_arrivals[0])
        self._schedule_arrivals(model.cell.service, model.service_rate, service, of_arrivals[1])

    def _schedulers_of(
        self, job_type: JobType, number: int, job_s: float, task_s: float
    ) -> list[_Scheduler]:
        tally = self.tallies[job_type.name]
        # A placeholder: the constructor gives each scheduler a generator of its own.
        placeholder = np.random.default_rng(0)
        return [_Scheduler(job_s, task_s, tally, placeholder) for _ in range(number)]

    def _schedule_arrivals(
        self,
        job_type: JobType,
        rate: float,
        schedulers: Sequence[_Scheduler],
        random: np.random.Generator,
    ) -> None:
        for job, scheduler in zip(
            jobs_of(job_type, rate, self.model.horizon_s, random), cycle(schedulers), strict=False
        ):
            self._schedule(job.arrived_s, _Arrival(scheduler, job))

    def _schedule(self, when_s: float, event: _Scheduler | _Arrival | _End) -> None:
        heapq.heappush(self._agenda, (when_s, next(self._order), event))

    def run(self) -> dict[str, float]:
        """Simulate, and return `Tally.metrics` of each type of job and the mean `utilization`."""
        while self._agenda and self._agenda[0][0] <= self.model.horizon_s:
            when_s, _, event = heapq.heappop(self._agenda)
            self._advance(when_s)
            self._handle(event)
        self._advance(self.model.horizon_s)
        model = self.model
        metrics = {"utilization": self._used_s / model.horizon_s}
        scheduler_counts = {
            model.cell.batch.name: model.batch_schedulers,
            model.cell.service.name: model.service_schedulers,
        }
        for name, tally in self.tallies.items():
            metrics |= tally.metrics(
                name, scheduler_counts[name] * model.horizon_s, model.horizon_s
            )
        return metrics

    def _advance(self, when_s: float) -> None:
        self._used_s += (when_s - self.now_s) * self.cell.used_fraction()
        self.now_s = when_s

    def _handle(self, event: _Scheduler | _Arrival | _End) -> None:
        if isinstance(event, _Scheduler):
            self._finish_decision(event)
        elif isinstance(event, _Arrival):
            self._enqueue(event.scheduler, event.job)
        else:
            self.cell.release(event.tasks, event.request)

    def _enqueue(self, scheduler: _Scheduler, job: LabJob) -> None:
        if not job.attempts:
            scheduler.tally.arrived(job.tasks)
        job.queued_s = self.now_s
        scheduler.queue.append(job)
        if not scheduler.deciding:
            self._begin(scheduler)

    def _begin(self, scheduler: _Scheduler) -> None:
        """Start the next decision: pop jobs, renew the view if it is too old, schedule its end."""
        while scheduler.queue and len(scheduler.deciding) < self.model.batch:
            scheduler.deciding.append(scheduler.queue.popleft())
        for job in scheduler.deciding:
            if not job.attempts:
                scheduler.tally.waited(self.now_s - job.queued_s)
        view = scheduler.view
        if view is None or self.now_s - view.read_at_s >= self.model.staleness_s:
            scheduler.view = self.cell.view(self.now_s)
        decision_s = sum(scheduler.decision_s(job) for job in scheduler.deciding)
        self._schedule(self.now_s + decision_s, scheduler)

    def _finish_decision(self, scheduler: _Scheduler) -> None:
        jobs, scheduler.deciding = scheduler.deciding, []
        for job in jobs:
            self._attempt(scheduler, job)
        if scheduler.queue:
            self._begin(scheduler)

    def _attempt(self, scheduler: _Scheduler, job: LabJob) -> None:
        """Place a job on the scheduler's view, commit it, and schedule the following events."""
        assert scheduler.view is not None
        view, request, model = scheduler.view, job.request, self.model
        decision_s = scheduler.decision_s(job)
        job.attempts += 1
        tasks = self._place(view.free, self.cell.capacity, request, job.left, scheduler.random)
        if len(tasks):
            tally = scheduler.tally
            if tally.transactions % REGRET_EVERY == 0:
                tally.regrets.append(self._regret(tasks, request))
            accepted = self.cell.commit(tasks, request, view, model.conflicts, model.transaction)
            tally.transaction(accepted, decision_s, is_retry=job.attempts > 1)
            self._apply_commit(view, tasks[accepted], request, job)
        else:
            scheduler.tally.no_room += 1
        if job.left:
            self._retry(scheduler, job)
        else:
            scheduler.tally.complete += 1

    def _apply_commit(self, view: CellCopy, tasks: Ints, request: Ints, job: LabJob) -> None:
        job.left -= len(tasks)
        # A scheduler's own commits are applied to its view, however old the view is.
        np.subtract.at(view.free, tasks, request)
        np.add.at(view.version, tasks, 1)
        self._schedule(self.now_s + job.duration_s, _End(tasks, request))

    def _retry(self, scheduler: _Scheduler, job: LabJob) -> None:
        is_fruitless = job.attempts > FRUITLESS_ATTEMPTS and job.left == job.tasks
        if is_fruitless or job.attempts > ATTEMPTS:
            scheduler.tally.abandoned += 1
        else:
            self._schedule(self.now_s + RETRY_S, _Arrival(scheduler, job))

    def _regret(self, tasks: Ints, request: Ints) -> float:
        """Difference between the scores of the tasks' machines and of the best machine now.

        In points of 100, mean over tasks. The score is that of the placement (first-fit:
        LeastAllocated), as computed by a single scheduler that scores every machine.
        """
        fits = has_room(self.cell.free, request)
        tasks = tasks[fits[tasks]]
        if not tasks.size:
            return 0.0
        scores = self.model.score(self.cell.free - request, self.cell.capacity)
        return float(scores[fits].max() - scores[tasks].mean())


def _prefill(cell: Cell, model: OmegaModel, random: np.random.Generator) -> None:
    """Fill the cell to its load with tasks of service jobs, by randomized first fit."""
    wanted = model.load * int(cell.capacity[:, 0].sum())
    used = fruitless = 0
    while used < wanted and fruitless < FRUITLESS_ATTEMPTS:
        job = job_of(model.cell.service, 0.0, random)
        cpu_milli = int(job.request[0])
        count = min(job.tasks, math.ceil((wanted - used) / cpu_milli))
        tasks = first_fit(cell.free, cell.capacity, job.request, count, random)
        fruitless = 0 if len(tasks) else fruitless + 1
        cell.claim(tasks, job.request)
        used += len(tasks) * cpu_milli


def simulate(model: OmegaModel, seed: int) -> dict[str, float]:
    """Run a model once, and return the metrics; the same seed gives the same metrics."""
    return OmegaRun(model, seed).run()

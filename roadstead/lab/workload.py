"""Workload: the jobs that come to the schedulers of the model, drawn from a seed.

Exponential gaps, tasks and durations, as `ExpExpExpWorkloadGenerator` of the published simulator
(google/cluster-scheduler-simulator, CoreClusterSimulation.scala); the defaults are the figures of
its `exampleWorkloadDesc` (Workloads.scala), since Google's own are not public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from roadstead.lab.cell import Ints

RESOURCES: Final = 2
"""Resources of a task: milli-CPU and MiB of memory."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs: how often they come, how many tasks, how long those run, and their size."""

    name: str
    interarrival_s: float
    tasks_mean: float
    duration_mean_s: float
    cpu_milli: int = 1000
    memory_mib: int = 2048

    @property
    def request(self) -> Ints:
        """int64[resources] of one task."""
        return np.array([self.cpu_milli, self.memory_mib], dtype=np.int64)


BATCH: Final = JobKind("batch", 10.0, 100.0, 100.0)
SERVICE: Final = JobKind("service", 20.0, 10.0, 500.0)


@dataclass(slots=True, eq=False)
class Job:
    """A job on its way; `left` tasks have no machine yet."""

    kind: JobKind
    came_s: float
    tasks: int
    duration_s: float
    left: int = 0
    attempts: int = 0
    queued_s: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.left = self.tasks
        self.queued_s = self.came_s


def jobs_of(
    kind: JobKind, rate: float, horizon_s: float, random: np.random.Generator
) -> Iterator[Job]:
    """The jobs of a kind that come before the horizon, `rate` times as often as the kind says."""
    now_s = 0.0
    while True:
        now_s += random.exponential(kind.interarrival_s / rate)
        if now_s >= horizon_s:
            return
        tasks = int(np.ceil(random.exponential(kind.tasks_mean)))
        yield Job(kind, now_s, max(tasks, 1), random.exponential(kind.duration_mean_s))

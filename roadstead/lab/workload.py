"""Workload: the jobs that come to the schedulers of the model, drawn from a seed.

What a kind of jobs is like is drawn from distributions: how many tasks, how long they run, what
one asks for. Gaps are exponential, as in all generators of the published simulator
(google/cluster-scheduler-simulator, CoreClusterSimulation.scala) that need no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, log
from typing import Protocol

import numpy as np

from roadstead.lab.cell import Ints


class Draw(Protocol):
    """Something that is drawn anew for each job."""

    def one(self, random: np.random.Generator) -> float:
        """A value; never below zero."""


@dataclass(frozen=True, slots=True)
class Always:
    """The same for every job."""

    value: float

    def one(self, random: np.random.Generator) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponential with a mean."""

    mean: float

    def one(self, random: np.random.Generator) -> float:
        """A value."""
        return random.exponential(self.mean)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal with a median and the deviation of the logarithm; drawn again above `most`."""

    median: float
    sigma: float
    most: float

    def __post_init__(self) -> None:
        assert self.most >= self.median, "half of all draws would be drawn again, or more"

    def one(self, random: np.random.Generator) -> float:
        """A value up to `most`."""
        while (value := random.lognormal(log(self.median), self.sigma)) > self.most:
            pass
        return value


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs: how often they come, and what is drawn for each of them."""

    name: str
    interarrival_s: float
    tasks: Draw
    duration_s: Draw
    cpu_milli: Draw = Always(1000)
    memory_mib: Draw = Always(2048)

    def request(self, random: np.random.Generator) -> Ints:
        """int64[resources] of one task, of each at least 1."""
        asked = (self.cpu_milli.one(random), self.memory_mib.one(random))
        return np.array([max(1, round(each)) for each in asked], dtype=np.int64)


@dataclass(slots=True, eq=False)
class Job:
    """A job on its way; `left` tasks have no machine yet. request: int64[resources] of a task."""

    kind: JobKind
    came_s: float
    tasks: int
    duration_s: float
    request: Ints
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
        yield job_of(kind, now_s, random)


def job_of(kind: JobKind, came_s: float, random: np.random.Generator) -> Job:
    """A job of a kind; it has at least one task."""
    tasks = max(1, ceil(kind.tasks.one(random)))
    return Job(kind, came_s, tasks, kind.duration_s.one(random), kind.request(random))

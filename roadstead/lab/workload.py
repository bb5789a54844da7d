"""Workload: the jobs that arrive at the schedulers of the model, drawn from a seed.

A type of job is a set of distributions: number of tasks, duration, and requests. Intervals between
arrivals are exponential, as in all generators of the published simulator
(google/cluster-scheduler-simulator, CoreClusterSimulation.scala) that need no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, log
from typing import Protocol

import numpy as np

from roadstead.lab.arrays import Ints


class Distribution(Protocol):
    """A distribution from which one value is drawn for each job."""

    def sample(self, random: np.random.Generator) -> float:
        """Draw a value; never negative."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every job."""

    value: float

    def sample(self, random: np.random.Generator) -> float:
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponential distribution with a mean."""

    mean: float

    def sample(self, random: np.random.Generator) -> float:
        """Draw a value."""
        return random.exponential(self.mean)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal, by median and deviation of the logarithm; values above `most` are redrawn."""

    median: float
    sigma: float
    most: float

    def __post_init__(self) -> None:
        assert self.most >= self.median, "half of all draws would be drawn again, or more"

    def sample(self, random: np.random.Generator) -> float:
        """Draw a value up to `most`."""
        while (value := random.lognormal(log(self.median), self.sigma)) > self.most:
            pass
        return value


@dataclass(frozen=True, slots=True)
class JobType:
    """A type of job: mean time between arrivals, and the distributions of its properties."""

    name: str
    interarrival_s: float
    tasks: Distribution
    duration_s: Distribution
    cpu_milli: Distribution = Constant(1000)
    memory_mib: Distribution = Constant(2048)

    def request(self, random: np.random.Generator) -> Ints:
        """Draw the request of one task: int64[resources], each at least 1."""
        amounts = (self.cpu_milli.sample(random), self.memory_mib.sample(random))
        return np.array([max(1, round(each)) for each in amounts], dtype=np.int64)


@dataclass(slots=True, eq=False)
class LabJob:
    """A job in progress; `left` tasks have no machine yet. request: int64[resources] of a task."""

    job_type: JobType
    arrived_s: float
    tasks: int
    duration_s: float
    request: Ints
    left: int = 0
    attempts: int = 0
    queued_s: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.left = self.tasks
        self.queued_s = self.arrived_s


def jobs_of(
    job_type: JobType, rate: float, horizon_s: float, random: np.random.Generator
) -> Iterator[LabJob]:
    """The jobs of a type that arrive before the horizon. rate: factor of the arrival rate."""
    now_s = 0.0
    while True:
        now_s += random.exponential(job_type.interarrival_s / rate)
        if now_s >= horizon_s:
            return
        yield job_of(job_type, now_s, random)


def job_of(job_type: JobType, arrived_s: float, random: np.random.Generator) -> LabJob:
    """Draw a job; it has at least one task."""
    tasks = max(1, ceil(job_type.tasks.sample(random)))
    return LabJob(
        job_type, arrived_s, tasks, job_type.duration_s.sample(random), job_type.request(random)
    )

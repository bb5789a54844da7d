"""Cells: named fleets with their jobs, for the model of Omega.

example: the public example of the published simulator (google/cluster-scheduler-simulator,
Workloads.scala, `exampleWorkloadDesc`): equal machines, exponential jobs, tasks of 1 CPU and 2 GB.

trace: the cluster of Google's public trace of May 2011 (clusterdata-2011-2), which is cluster C of
the Omega paper (README.md of the simulator), from published statistics:
- machines: shapes and counts of Reiss et al., "Heterogeneity and Dynamicity of Clouds at Scale"
  (SoCC 2012), table 1; the largest is 100,000 milli-CPU and 100,000 MiB here;
- arrivals: 672,003 jobs in 29 days, 25.5 million tasks (same paper). 9.3% of the jobs that end have
  production priority; of the jobs of that priority that run when the trace begins, 57% are of
  scheduling classes 2 and 3 (the simulator's rule for service jobs): so 5.3% are service jobs;
- tasks per job, and usage per task: log-normal with the median and the 90th percentile of the 3,979
  jobs that run when the trace begins, truncated at their maximum. The resulting mean of 36 to 39
  tasks agrees with that of all jobs (37.9);
- durations: minutes for batch, hours for service, as in the figures of the Omega paper; not
  measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from roadstead.lab.arrays import Ints
from roadstead.lab.workload import Exponential, JobType, LogNormal


@dataclass(frozen=True, slots=True)
class CellType:
    """A named cell: machines and two types of jobs. shapes: (machines or share, milli-CPU, MiB)."""

    shapes: tuple[tuple[float, int, int], ...]
    batch: JobType
    service: JobType

    def capacity(self, machines: int) -> Ints:
        """Capacity of machines in the proportions of the shapes: int64[machines, resources]."""
        ends = np.cumsum([share for share, _, _ in self.shapes])
        indices = (np.arange(machines) + 0.5) * ends[-1] / machines
        sizes = np.array([shape[1:] for shape in self.shapes], dtype=np.int64)
        rows: Ints = sizes[np.searchsorted(ends, indices)]
        return rows


EXAMPLE: Final = CellType(
    ((1, 4000, 16_384),),
    JobType("batch", 10.0, Exponential(100.0), Exponential(100.0)),
    JobType("service", 20.0, Exponential(10.0), Exponential(500.0)),
)

_JOB_EVERY_S: Final = 29 * 86_400 / 672_003
_SERVICE_SHARE: Final = 0.053

# The distributions of a job type: tasks, duration in seconds, milli-CPU and MiB of a task.
TRACE: Final = CellType(
    (
        (6732, 50_000, 50_000),
        (3863, 50_000, 25_000),
        (1001, 50_000, 75_000),
        (795, 100_000, 100_000),
        (126, 25_000, 25_000),
        (52, 50_000, 12_000),
        (5, 50_000, 3000),
        (5, 50_000, 97_000),
        (3, 100_000, 50_000),
        (1, 50_000, 6000),
    ),
    JobType(
        "batch",
        _JOB_EVERY_S / (1 - _SERVICE_SHARE),
        LogNormal(1.0, 2.71, 20_010),
        LogNormal(180.0, 1.5, 86_400.0),
        LogNormal(40.0, 2.58, 34_000),
        LogNormal(70.0, 2.1, 37_600),
    ),
    JobType(
        "service",
        _JOB_EVERY_S / _SERVICE_SHARE,
        LogNormal(2.0, 2.39, 4440),
        LogNormal(3600.0, 2.0, 29 * 86_400.0),
        LogNormal(260.0, 2.19, 41_000),
        LogNormal(450.0, 1.6, 28_400),
    ),
)

CELLS: Final[Mapping[str, CellType]] = MappingProxyType({"example": EXAMPLE, "trace": TRACE})

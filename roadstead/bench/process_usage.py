"""The processor time and memory of the processes of a run, by process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Use of CPU and memory by a process since its start.

    pid: its id, unique on its machine. processor_s: user and system time, which unlike wall time is
    meaningful on a machine that also does other work. peak_bytes: largest memory, 0 if unknown.
    """

    pid: int
    processor_s: float
    peak_bytes: int


Usages = Mapping[tuple[str, int], ProcessUsage]
"""By name of the process and its id: a replaced process has the name of the one before."""


def processor_spent(before: Usages, after: Usages) -> dict[tuple[str, int], float]:
    """Processor time of each process between two readings; those that ended are left out."""
    return {
        key: usage.processor_s - (before[key].processor_s if key in before else 0.0)
        for key, usage in after.items()
    }


def by_name(spent_s: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Sum of the processor time by name, the largest first."""
    total: dict[str, float] = {}
    for (name, _), seconds in spent_s.items():
        total[name] = total.get(name, 0.0) + seconds
    return dict(sorted(total.items(), key=lambda item: -item[1]))

"""Rates, quantiles and shares, computed from the measurements of a benchmark."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.bench.speedscope import Samples
from roadstead.bench.tracking import SubmittedSeries

# Names of counters: pods that the kernel decided, and pods that it did not, with the reason.
KERNEL_PODS = "kernel: pods"
_BY_REFERENCE = "kernel: by reference: "
_NUMBERED = re.compile(r"-[0-9]+$")


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """The measurements of one measured interval of a run.

    pods: number of pods to be bound. bound_s, submitted_s: float64[bound pods], seconds on one
    clock. started_s: time of the first submission. spent_s: seconds in each phase, by
    `actor: phase`; counts: increases of counters, by `actor: counter`; both within the interval.
    peak_bytes: memory, summed over all `processes`. setup_s: from the start of the actors to the
    interval.
    processor_s: processor time of all processes in the interval; critical_s: that of the busiest
    one; process_s: that of each, by name, the busiest first. started_processor_s,
    bound_processor_s: processor time of the binder's process at the times started_s and bound_s.
    """

    name: str
    nodes: int
    pods: int
    started_s: float
    submitted_s: NDArray[np.float64]
    bound_s: NDArray[np.float64]
    started_processor_s: float
    bound_processor_s: NDArray[np.float64]
    spent_s: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    peak_bytes: int = 0
    processes: int = 1
    setup_s: float = 0.0
    processor_s: float = 0.0
    critical_s: float = 0.0
    process_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The measurements of one run of a script. samples: of a profile, by process; may be empty."""

    measured: tuple[Measurement, ...]
    samples: Mapping[str, Sequence[Samples]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The number of pods that the kernel decided, and why the reference path decided the others."""

    pods: int
    reference: Mapping[str, int]

    @property
    def share(self) -> float | None:
        """The kernel's share of the counted pods; None without counts."""
        total = self.pods + sum(self.reference.values())
        return self.pods / total if total else None


@dataclass(frozen=True, slots=True)
class BenchMetrics:
    """The metrics of one interval.

    bound: number of bound pods. longest_gap_s: the longest time without an acknowledged bind; with
    batches of one pod, an upper limit of the time for any pod. longest_gap_cpu_s: the same in
    processor time of the binder's process, so that other work of the machine does not count; with
    all actors in one process it is the time of all. processor_s: processor time of all processes.
    critical_us_per_pod: processor time of the busiest process per bound pod; with a core for each
    process no run can be faster. process_us_per_pod: that of each process, by name. shares: the
    part of the interval spent in each phase, by type of actor.
    """

    name: str
    nodes: int
    pods: int
    bound: int
    seconds: float
    pods_per_s: float
    latency_p50_s: float
    latency_p99_s: float
    longest_gap_s: float
    longest_gap_cpu_s: float
    peak_bytes: int
    processes: int
    setup_s: float
    processor_s: float
    critical_us_per_pod: float
    process_us_per_pod: Mapping[str, float]
    shares: Mapping[str, float]
    kernel: KernelShare


def metrics_of(measured: Measurement) -> BenchMetrics:
    """Compute the metrics from the first submitted pod to the last acknowledged bind."""
    bound = len(measured.bound_s)
    latencies = measured.bound_s - measured.submitted_s
    seconds = float(measured.bound_s.max() - measured.started_s) if bound else 0.0
    p50, p99 = np.quantile(latencies, [0.5, 0.99]).tolist() if bound else (0.0, 0.0)
    return BenchMetrics(
        measured.name,
        measured.nodes,
        measured.pods,
        bound,
        seconds,
        bound / seconds if seconds > 0 else 0.0,
        p50,
        p99,
        _longest_gap(measured.started_s, measured.bound_s),
        _longest_gap(measured.started_processor_s, measured.bound_processor_s),
        measured.peak_bytes,
        measured.processes,
        measured.setup_s,
        measured.processor_s,
        1e6 * measured.critical_s / bound if bound else 0.0,
        {name: 1e6 * spent / bound for name, spent in measured.process_s.items() if bound},
        _shares(measured.spent_s, seconds),
        _kernel(measured.counts),
    )


def _longest_gap(started_s: float, bound_s: NDArray[np.float64]) -> float:
    return float(np.diff(np.sort(bound_s), prepend=started_s).max(initial=0.0))


def _shares(spent_s: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Shares of the interval per phase, largest first; actors of one type are added up."""
    total: dict[str, float] = {}
    for name, spent in spent_s.items():
        actor, _, phase = name.partition(": ")
        kind = f"{_NUMBERED.sub('', actor)}: {phase}"
        # A phase may have begun before the interval, such as a lease that waits for pods.
        total[kind] = total.get(kind, 0.0) + min(spent, seconds)
    shares = {kind: spent / seconds for kind, spent in total.items() if seconds > 0 and spent > 0}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _kernel(counts: Mapping[str, int]) -> KernelShare:
    pods, reference = 0, dict[str, int]()
    for name, count in counts.items():
        counter = name.partition(": ")[2]
        if counter == KERNEL_PODS:
            pods += count
        elif counter.startswith(_BY_REFERENCE) and count:
            why = counter.removeprefix(_BY_REFERENCE)
            reference[why] = reference.get(why, 0) + count
    return KernelShare(pods, reference)


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """The results of all runs of one interval. rates: pods/s of each."""

    median_run: BenchMetrics
    rates: tuple[float, ...]

    @property
    def spread(self) -> float:
        """(highest - lowest) / median of the rates."""
        median = statistics.median(self.rates)
        return (max(self.rates) - min(self.rates)) / median if median else 0.0


def workload_result(runs: Sequence[BenchMetrics]) -> WorkloadResult:
    """Combine several runs: the metrics of the median run, and the rates of all."""
    ordered = sorted(runs, key=lambda each: each.pods_per_s)
    return WorkloadResult(ordered[(len(ordered) - 1) // 2], tuple(each.pods_per_s for each in runs))


def pods_since(
    followed: Sequence[SubmittedSeries], since_s: float
) -> tuple[int, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(number, submitted_s, bound_s, bound_processor_s) of the pods not bound before `since_s`.

    followed: the series whose pods are counted. The number includes pods that are not bound at all;
    the arrays do not.
    """
    submitted = np.concatenate([np.empty(0), *(each.submitted_s() for each in followed)])
    bound = np.concatenate([np.empty(0), *(each.bound_s[: each.submitted] for each in followed)])
    spent = [each.bound_processor_s[: each.submitted] for each in followed]
    early = bound < since_s
    is_counted = ~np.isnan(bound) & ~early
    return (
        int((~early).sum()),
        submitted[is_counted],
        bound[is_counted],
        np.concatenate([np.empty(0), *spent])[is_counted],
    )

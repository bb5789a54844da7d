"""Statistics of a trace: nodes by shape, pods by class, arrivals, lifetimes, and use over time.

The trace is read twice, chunk by chunk, so that memory does not grow with it. Lifetimes are counted
in bins of 1/64 of a power of two, so that quantiles are at most 1.6% too high.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS, S_MS
from roadstead.fleet.trace_frames import TracePods
from roadstead.fleet.trace_reader import TraceStream, open_trace
from roadstead.traces.rewriting import ReportProgress

HOUR_MS = 3_600 * S_MS
BINS = 64
"""Bins of each octave: the times from a power of two to the next."""

OCTAVES = 64
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
POINTS = 1536
"""Number of points in time at which the requests of running pods are added up."""

HOURS_MAX = 1_000_000
"""Maximum number of values of `arrivals_per_hour`."""

Requests = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NodeShapeCount:
    """Nodes with the same allocatable amounts."""

    allocatable: Requests
    nodes: int


@dataclass(frozen=True, slots=True)
class PodClassCount:
    """Pods of one class. mean_s: of the pods that end; None if none does."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    priority: int
    requests: Requests
    pods: int
    mean_s: float | None


@dataclass(frozen=True, slots=True)
class UseOverTime:
    """The requests for a resource at points in time, if each pod runs from its arrival on.

    capacity: of all nodes. requested: at each of `TraceStats.point_s`.
    """

    resource: str
    capacity: int
    requested: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TraceStats:
    """The statistics of a trace; times are seconds from its start.

    arrivals_per_hour: of each hour, or of each longer span as a mean, if the trace has more than
    HOURS_MAX hours. lifetimes_s: by quantile. endless: pods that do not end. point_s: the points
    of `use`.
    """

    source: str
    nodes: int
    pods: int
    classes: int
    shapes: tuple[NodeShapeCount, ...]
    pod_classes: tuple[PodClassCount, ...]
    first_s: float
    last_s: float
    arrivals_per_hour: tuple[float, ...]
    lifetimes_s: dict[str, float]
    endless: int
    point_s: tuple[float, ...]
    use: tuple[UseOverTime, ...]


@dataclass(slots=True)
class _FirstPass:
    """Counts that need no knowledge of the time that the trace spans.

    endless: pods that do not end. end_ms: the last end. per_hour: hour → arrivals. bins: pods that
    end, by bin of their lifetime (`_bins`). counts, ended, total_ms: by class, the pods, those that
    end, and the sum of their lifetimes.
    """

    pods: int = 0
    endless: int = 0
    first_ms: int | None = None
    last_ms: int = 0
    end_ms: int = 0
    shortest_ms: int | None = None
    longest_ms: int = 0
    per_hour: Counter[int] = field(default_factory=Counter)
    bins: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(OCTAVES * BINS, dtype=np.int64)
    )
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ended: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    total_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def add(self, pods: TracePods, classes: int) -> None:
        creation_ms, duration_ms = pods.creation_ms, pods.duration_ms
        self.pods += len(pods)
        first_ms = int(creation_ms.min())
        self.first_ms = first_ms if self.first_ms is None else min(self.first_ms, first_ms)
        self.last_ms = max(self.last_ms, int(creation_ms.max()))
        hours, counts = np.unique(creation_ms // HOUR_MS, return_counts=True)
        self.per_hour.update(dict(zip(hours.tolist(), counts.tolist(), strict=True)))
        ends = duration_ms != NEVER_MS
        lifetimes_ms = duration_ms[ends]
        self.endless += len(pods) - len(lifetimes_ms)
        self._grow(classes)
        self.counts += np.bincount(pods.pod_class, minlength=classes)
        if not len(lifetimes_ms):
            return
        shortest_ms = int(lifetimes_ms.min())
        before_ms = self.shortest_ms
        self.shortest_ms = shortest_ms if before_ms is None else min(before_ms, shortest_ms)
        self.longest_ms = max(self.longest_ms, int(lifetimes_ms.max()))
        self.end_ms = max(self.end_ms, int((creation_ms[ends] + lifetimes_ms).max()))
        self.bins += np.bincount(_bins(lifetimes_ms), minlength=len(self.bins))
        self.ended += np.bincount(pods.pod_class[ends], minlength=classes)
        self.total_ms += np.bincount(pods.pod_class[ends], lifetimes_ms, minlength=classes)

    def _grow(self, classes: int) -> None:
        missing = classes - len(self.counts)
        if missing > 0:
            self.counts = np.pad(self.counts, (0, missing))
            self.ended = np.pad(self.ended, (0, missing))
            self.total_ms = np.pad(self.total_ms, (0, missing))

    def quantiles_s(self) -> dict[str, float]:
        """Return the lifetimes in seconds by the name of the quantile; empty if no pod ends."""
        if self.shortest_ms is None:
            return {}
        cumulative = np.cumsum(self.bins)
        quantiles_s: dict[str, float] = {}
        for quantile in QUANTILES:
            rank = max(1, math.ceil(quantile * cumulative[-1]))
            bin_index = int(np.searchsorted(cumulative, rank))
            value_ms = min(max(_upper_ms(bin_index), self.shortest_ms), self.longest_ms)
            value_ms = self.shortest_ms if quantile == 0 else value_ms
            quantiles_s[f"p{quantile * 100:g}"] = value_ms / S_MS
        return quantiles_s


def _bins(times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bins of times: one for each ms below 64 ms, then 64 for each octave."""
    exponent = np.floor(np.log2(np.maximum(times_ms, 1))).astype(np.int64)
    step = np.maximum(exponent - 6, 0)
    bins: NDArray[np.int64] = np.where(
        times_ms < BINS, times_ms, (step + 1) * BINS + (times_ms >> step) - BINS
    )
    return bins


def _upper_ms(bin_index: int) -> int:
    """Return the largest time of a bin."""
    octave, offset = divmod(bin_index, BINS)
    if octave == 0:
        return offset
    step = octave - 1
    return ((offset + BINS + 1) << step) - 1


def trace_stats(path: Path, report: ReportProgress) -> TraceStats:
    """Read a trace twice, and return what is in it. Raises InputError if it is damaged."""
    first_pass = _FirstPass()
    with open_trace(path) as stream:
        for pods in _chunks(stream, report, "counting"):
            first_pass.add(pods, len(stream.pod_classes))
        classes = list(stream.pod_classes)
        capacity, shapes = _shapes(stream)
        source, nodes = stream.source, len(stream.nodes)
    point_ms = _points(first_pass)
    with open_trace(path) as stream:
        use = _Use(classes, point_ms)
        for pods in _chunks(stream, report, "adding up"):
            use.add(pods)
    resources = sorted({*capacity, *use.resources})
    requested = use.requested()
    zeros = (0,) * len(point_ms)
    return TraceStats(
        source=source,
        nodes=nodes,
        pods=first_pass.pods,
        classes=len(classes),
        shapes=shapes,
        pod_classes=_classes(classes, first_pass),
        first_s=(first_pass.first_ms or 0) / S_MS,
        last_s=first_pass.last_ms / S_MS,
        arrivals_per_hour=_arrivals(first_pass),
        lifetimes_s=first_pass.quantiles_s(),
        endless=first_pass.endless,
        point_s=tuple(time / S_MS for time in point_ms.tolist()),
        use=tuple(
            UseOverTime(name, capacity.get(name, 0), requested.get(name, zeros))
            for name in resources
        ),
    )


def _chunks(stream: TraceStream, report: ReportProgress, phase: str) -> Iterator[TracePods]:
    for pods in stream.chunks():
        if len(pods):
            yield pods
        report(phase, *stream.progress())


def _shapes(stream: TraceStream) -> tuple[dict[str, int], tuple[NodeShapeCount, ...]]:
    counts = np.bincount(stream.nodes.codes, minlength=len(stream.nodes.classes)).tolist()
    by_shape: Counter[Requests] = Counter()
    capacity: Counter[str] = Counter()
    for facts, count in zip(stream.nodes.classes, counts, strict=True):
        by_shape[facts.allocatable] += count
        for resource, amount in facts.allocatable:
            capacity[resource] += amount * count
    shapes = tuple(NodeShapeCount(shape, count) for shape, count in by_shape.most_common())
    return dict(capacity), shapes


def _classes(classes: list[PodFacts], first_pass: _FirstPass) -> tuple[PodClassCount, ...]:
    class_counts = []
    for number in np.argsort(-first_pass.counts, kind="stable").tolist():
        facts, ended = classes[number], int(first_pass.ended[number])
        mean_s = float(first_pass.total_ms[number]) / ended / S_MS if ended else None
        class_counts.append(
            PodClassCount(
                facts.namespace,
                facts.labels,
                facts.priority,
                facts.requests,
                int(first_pass.counts[number]),
                mean_s,
            )
        )
    return tuple(class_counts)


def _arrivals(first_pass: _FirstPass) -> tuple[float, ...]:
    """Return arrivals an hour, of up to `HOURS_MAX` hours or longer spans."""
    if not first_pass.pods:
        return ()
    hours = first_pass.last_ms // HOUR_MS + 1
    span = math.ceil(hours / HOURS_MAX)
    counts = [0.0] * math.ceil(hours / span)
    for hour, count in first_pass.per_hour.items():
        counts[hour // span] += count / span
    return tuple(counts)


def _points(first_pass: _FirstPass) -> NDArray[np.int64]:
    end_ms = max(first_pass.last_ms, first_pass.end_ms)
    points: NDArray[np.int64] = np.linspace(0, end_ms, POINTS, endpoint=False).astype(np.int64)
    return points if first_pass.pods else points[:0]


class _Use:
    """Requests of running pods at points in time.

    _amounts: float64[class, resource]. _changes: float64[point, resource], by how much the sum of
    requests differs from the sum at the previous point.
    """

    def __init__(self, classes: list[PodFacts], point_ms: NDArray[np.int64]) -> None:
        self._classes, self._point_ms = classes, point_ms
        self.resources = sorted({name for facts in classes for name, _ in facts.requests})
        column_of = {name: column for column, name in enumerate(self.resources)}
        self._amounts = np.zeros((len(classes), len(self.resources)))
        for number, facts in enumerate(classes):
            for name, amount in facts.requests:
                self._amounts[number, column_of[name]] = amount
        self._changes = np.zeros((len(point_ms) + 1, len(self.resources)))

    def add(self, pods: TracePods) -> None:
        end_ms = pods.creation_ms + pods.duration_ms
        # A pod counts at the points with arrival <= time < end: from index `first` to `stop - 1`.
        first = np.searchsorted(self._point_ms, pods.creation_ms)
        stop = np.searchsorted(self._point_ms, end_ms)
        stop = np.where(pods.duration_ms == NEVER_MS, len(self._point_ms), stop)
        amounts = self._amounts[pods.pod_class]
        np.add.at(self._changes, first, amounts)
        np.subtract.at(self._changes, np.maximum(stop, first), amounts)

    def requested(self) -> dict[str, tuple[int, ...]]:
        totals = np.cumsum(self._changes[:-1], axis=0)
        return {
            name: tuple(round(value) for value in totals[:, column].tolist())
            for column, name in enumerate(self.resources)
        }

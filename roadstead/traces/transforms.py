"""Tools that change one trace: sample, scale, shift and cut.

Those that choose or copy pods one by one refuse a trace with gangs (`may_split_gangs`), since some
pods of a gang never run without the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.config.scenario.values import time_text
from roadstead.facts.node import NodeFacts, renamed_node
from roadstead.facts.node_list import NodeList
from roadstead.fleet.trace import NEVER_MS, TIME_MAX_MS
from roadstead.fleet.trace_frames import TracePods
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.class_sampler import ClassSampler
from roadstead.traces.rewriting import ReportProgress, WrittenTrace, moved_ends, write_changed
from roadstead.traces.spool import Spool, SpooledPod

COPY_MARK = "x"
"""Copies of NAME are NAME-x2, NAME-x3 and so on."""


def sample(path: Path, out: Path, share: float, seed: int, report: ReportProgress) -> WrittenTrace:
    """Keep a share of the pods of each class, and all nodes."""
    sampler = ClassSampler(share, seed)

    def change(pods: TracePods) -> TracePods:
        return pods.rows(np.flatnonzero(sampler.choose(pods.pod_class)))

    note = f"sample of {share:g}, seed {seed}"
    return write_changed(path, out, note, change, report, may_split_gangs=True)


def shift(path: Path, out: Path, by_ms: int, report: ReportProgress) -> WrittenTrace:
    """Move all arrivals and recorded ends by a time, which may be negative.

    Raises InputError if a pod would arrive before the start of the trace.
    """

    def change(pods: TracePods) -> TracePods:
        creation_ms = pods.creation_ms + by_ms
        if len(pods) and creation_ms.min() < 0:
            first = pods.names[int(creation_ms.argmin())]
            problem = "would arrive before the start of the trace; cut it first"
            raise InputError(problem, obj=f"pod {cut_short(first)}")
        ends_ms = moved_ends(pods.deletion_ms, by_ms)
        _check_latest(creation_ms, ends_ms)
        return TracePods(
            pods.names, pods.uids, pods.pod_class, creation_ms, ends_ms, pods.duration_ms
        )

    return write_changed(path, out, f"shifted by {_duration(by_ms)}", change, report)


def cut(
    path: Path, out: Path, from_ms: int, to_ms: int | None, report: ReportProgress, *, running: bool
) -> WrittenTrace:
    """Keep the pods that arrive in [from, to), and let the trace start at `from`.

    running: also keep pods that arrived before `from` and still run then, if each starts when it
    arrives; they arrive at the start and run for the remaining time.
    """
    end_ms = TIME_MAX_MS if to_ms is None else to_ms

    def change(pods: TracePods) -> TracePods:
        arrives_inside = (pods.creation_ms >= from_ms) & (pods.creation_ms < end_ms)
        runs_at_start = np.zeros(len(pods), dtype=np.bool_)
        if running:
            remaining_ms = pods.creation_ms + pods.duration_ms - from_ms
            still_runs = (pods.duration_ms == NEVER_MS) | (remaining_ms > 0)
            runs_at_start = (pods.creation_ms < from_ms) & still_runs
        chosen = np.flatnonzero(arrives_inside | runs_at_start)
        return _moved(pods.rows(chosen), from_ms)

    until = "the end" if to_ms is None else _duration(to_ms)
    return write_changed(path, out, f"cut from {_duration(from_ms)} to {until}", change, report)


def _moved(pods: TracePods, from_ms: int) -> TracePods:
    """Let time begin at `from`; pods that arrived earlier now arrive at the beginning."""
    late_ms = np.maximum(from_ms - pods.creation_ms, 0)
    creation_ms = np.maximum(pods.creation_ms - from_ms, 0)
    never = pods.duration_ms == NEVER_MS
    duration_ms = np.where(never, NEVER_MS, np.maximum(pods.duration_ms - late_ms, 0))
    ends_ms = np.maximum(pods.deletion_ms - from_ms, creation_ms)
    ends_ms = np.where(pods.deletion_ms == NEVER_MS, NEVER_MS, ends_ms)
    return TracePods(pods.names, pods.uids, pods.pod_class, creation_ms, ends_ms, duration_ms)


def _check_latest(*columns: NDArray[np.int64]) -> None:
    for column in columns:
        if len(column) and int(column.max()) > TIME_MAX_MS:
            raise InputError("is a time of more than 292 years", value=str(int(column.max())))


def scale(
    path: Path, out: Path, nodes: float, rate: float, seed: int, report: ReportProgress
) -> WrittenTrace:
    """Multiply the nodes and the rate of arrivals, with the same distributions.

    Nodes and pods are copied within their classes, so that the fractions of the classes stay the
    same; a copy of a pod runs as long as the pod, and arrives at a random time between the previous
    pod and the pod itself. A factor below 1 makes a sample. Raises InputError if a copy would have
    the name of another pod.
    """
    with closing(Spool()) as spool:
        copies = _Copies(rate, seed, spool)

        def change_nodes(before: NodeList) -> Iterator[NodeFacts]:
            return _scaled_nodes(before, nodes, seed)

        note = f"scaled by {nodes:g} (nodes) and {rate:g} (rate), seed {seed}"
        return write_changed(
            path,
            out,
            note,
            copies.add_copies,
            report,
            change_nodes,
            copies.check,
            may_split_gangs=True,
        )


def _copy_mark(names: tuple[str, ...] | list[str]) -> str:
    """Return "x" or, if a name contains "-x", "xx", …: a scaled trace may be scaled again."""
    mark = COPY_MARK
    while any(f"-{mark}" in name for name in names):
        mark += COPY_MARK
    return mark


def _scaled_nodes(nodes: NodeList, factor: float, seed: int) -> Iterator[NodeFacts]:
    counts = _counts(ClassSampler(factor % 1, seed), nodes.codes, factor)
    mark = _copy_mark(nodes.names)
    for node, count in zip(nodes, counts.tolist(), strict=True):
        for number in range(count):
            name = f"{node.name}-{mark}{number + 1}" if number else node.name
            yield renamed_node(node, name)


def _counts(sampler: ClassSampler, classes: NDArray[np.int32], factor: float) -> NDArray[np.int64]:
    """Return how often each member occurs: floor(factor) times, and chosen members once more.

    So 2.25 makes two of each, and a third of every fourth member of a class.
    """
    # `choose` returns a bool for each member, here 0 or 1.
    counts: NDArray[np.int64] = sampler.choose(classes) + np.int64(math.floor(factor))
    return counts


class _Copies:
    """Copy pods chunk by chunk. factor: 2.25 makes 2 of each pod, and 3 of every fourth.

    _last_ms: when the last pod of the previous chunk arrived.
    """

    def __init__(self, factor: float, seed: int, spool: Spool) -> None:
        self._factor, self._spool = factor, spool
        self._sampler = ClassSampler(factor % 1, seed)
        self._random = np.random.Generator(np.random.PCG64([seed, 1]))
        self._last_ms = 0
        self._mark = ""

    def add_copies(self, pods: TracePods) -> TracePods:
        """Return the pods of a chunk with their copies, each before its original."""
        self._mark = self._mark or _copy_mark(pods.names)
        counts = _counts(self._sampler, pods.pod_class, self._factor)
        previous_ms = np.concatenate([[self._last_ms], pods.creation_ms[:-1]])
        self._last_ms = int(pods.creation_ms[-1]) if len(pods) else self._last_ms
        rows = np.repeat(np.arange(len(pods)), counts)
        # 1, 2, … within the copies of a pod; the last one is the pod itself.
        number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        is_original = number == counts[rows]
        repeated = pods.rows(rows)
        gap_ms = np.maximum(pods.creation_ms - previous_ms, 0)[rows]
        # How much earlier than the pod a copy arrives.
        early_ms = np.floor(self._random.random(len(rows)) * (gap_ms + 1)).astype(np.int64)
        early_ms = np.where(is_original, 0, np.minimum(early_ms, gap_ms))
        creation_ms = repeated.creation_ms - early_ms
        ends_ms = moved_ends(repeated.deletion_ms, -early_ms)
        suffixes = [
            "" if unchanged else f"-{self._mark}{count + 1}"
            for unchanged, count in zip(is_original.tolist(), number.tolist(), strict=True)
        ]
        names = tuple(map(str.__add__, repeated.names, suffixes))
        uids = tuple(map(str.__add__, repeated.uids, suffixes))
        if self._factor > 1:
            # Only the names are used: `check` searches for one that two pods share.
            self._spool.add_pods([SpooledPod(name, 0, 0, 0, 0) for name in names])
        duration_ms = repeated.duration_ms
        copies = TracePods(names, uids, repeated.pod_class, creation_ms, ends_ms, duration_ms)
        # Only the copies of one pod must be sorted: those of the next pod are never earlier.
        return copies.rows(np.lexsort((creation_ms, rows)))

    def check(self) -> None:
        """Raise InputError if two pods have one name."""
        repeated = self._spool.repeated()
        if repeated is not None:
            problem = "is the name of a copy and of another pod"
            raise InputError(problem, field="pods.name", value=cut_short(repeated[0]))


def _duration(ms: int) -> str:
    """Write a time, which may be negative, as `3d12h`."""
    return f"{'-' * (ms < 0)}{time_text(abs(ms) * 1_000)}"

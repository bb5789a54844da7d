"""Reading one trace and writing another, chunk by chunk: shared by imports and by tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS
from roadstead.fleet.trace_frames import FRAME_MAX_ROWS, TracePods
from roadstead.fleet.trace_reader import TraceStream, open_trace
from roadstead.fleet.trace_writer import TraceWriter, trace_writer
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.spool import Spool

ReportProgress = Callable[[str, int, int], None]
"""Receives (phase, done, total), each phase in units of its own; a total of 0 is unknown."""

ChangePods = Callable[[TracePods], TracePods]
ChangeNodes = Callable[[NodeList], Iterable[NodeFacts]]


@dataclass(frozen=True, slots=True)
class WrittenTrace:
    """Summary of the written trace."""

    source: str
    nodes: int
    pods: int
    digest: str


class ClassRenumbering:
    """Map class numbers of one trace to those of another, which gets only the classes in use.

    add: adds a class to the other trace, and returns its number there. _numbers: int32[class number
    in the one trace], the number in the other; -1 for classes that were not used yet.
    """

    def __init__(self, add: Callable[[PodFacts], int]) -> None:
        self._add = add
        self._numbers = np.full(0, -1, dtype=np.int32)

    def renumbered(self, column: NDArray[np.int32], classes: list[PodFacts]) -> NDArray[np.int32]:
        """Return the new numbers of a column. classes: of the trace that is read."""
        if len(classes) > len(self._numbers):
            # Twice as many as needed, because each chunk may have further classes.
            more = np.full(2 * len(classes) - len(self._numbers), -1, dtype=np.int32)
            self._numbers = np.concatenate([self._numbers, more])
        for number in np.unique(column[self._numbers[column] < 0]).tolist():
            self._numbers[number] = self._add(classes[number])
        return self._numbers[column]


def write_changed(
    path: Path,
    out: Path,
    note: str,
    change_pods: ChangePods,
    report: ReportProgress,
    change_nodes: ChangeNodes = iter,
    check: Callable[[], None] = lambda: None,
    may_split_gangs: bool = False,
) -> WrittenTrace:
    """Write the trace `path` to `out` with its pods and nodes changed.

    note: appended to the source of the trace. check: called before the file is complete; it may
    raise InputError. may_split_gangs: pods are chosen or copied one by one; a trace with gangs is
    then refused, because some pods of a gang never run without the others. Raises InputError for
    this, for a damaged trace, and for times that no trace may have.
    """
    with open_trace(path) as stream:
        source = f"{stream.source}, {note}"
        with trace_writer(out, source, stream.namespaces) as writer:
            nodes = 0
            for node in change_nodes(stream.nodes):
                writer.add_node(node)
                nodes += 1
            add = _without_gang(writer.pod_class) if may_split_gangs else writer.pod_class
            copy_pods(stream, writer, change_pods, report, add)
            check()
            return WrittenTrace(source, nodes, writer.pods, writer.end())


def _without_gang(add: Callable[[PodFacts], int]) -> Callable[[PodFacts], int]:
    """Return `add` with a check that raises InputError for the pods of a gang."""

    def checked(facts: PodFacts) -> int:
        if facts.pod_group is not None:
            problem = "is a gang, whose pods cannot be chosen one by one"
            raise InputError(problem, field="pods.class", value=cut_short(facts.pod_group.name))
        return add(facts)

    return checked


def copy_pods(
    stream: TraceStream,
    writer: TraceWriter,
    change: ChangePods,
    report: ReportProgress,
    add: Callable[[PodFacts], int],
) -> None:
    """Write the changed pods of a stream. add: returns the number of a class for the writer."""
    renumbering = ClassRenumbering(add)
    for chunk in stream.chunks():
        pods = change(chunk)
        if len(pods):
            times = (pods.creation_ms, pods.deletion_ms, pods.duration_ms)
            numbers = renumbering.renumbered(pods.pod_class, stream.pod_classes)
            writer.add_pods(TracePods(pods.names, pods.uids, numbers, *times))
        report("pods", *stream.progress())


def write_spooled(
    writer: TraceWriter,
    spool: Spool,
    classes: list[PodFacts],
    report: ReportProgress,
    *,
    pods: int,
    start_ms: int = 0,
) -> None:
    """Write spooled pods in the order of their arrival.

    classes: by their numbers in the spool. pods: how many there are. start_ms: the time that
    becomes 0.
    """
    renumbering = ClassRenumbering(writer.pod_class)
    done = 0
    for rows in spool.pods(FRAME_MAX_ROWS):
        names, numbers, *times, _ = zip(*rows, strict=True)
        creation_ms, ends_ms, duration_ms = (np.array(each, dtype=np.int64) for each in times)
        column = renumbering.renumbered(np.array(numbers, dtype=np.int32), classes)
        moved_ms = creation_ms - start_ms, moved_ends(ends_ms, -start_ms)
        writer.add_pods(TracePods(tuple(names), (), column, *moved_ms, duration_ms))
        done += len(rows)
        report("writing", done, pods)


def moved_ends(ends_ms: NDArray[np.int64], by_ms: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Move the recorded ends of pods by a time; NEVER_MS stays."""
    moved: NDArray[np.int64] = np.where(ends_ms == NEVER_MS, NEVER_MS, ends_ms + by_ms)
    return moved

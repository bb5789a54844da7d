"""`concat`: one trace made of several, one after another or merged by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from roadstead.facts.node import NodeFacts, renamed_node
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import TIME_MAX_MS
from roadstead.fleet.trace_frames import CLASSES_MAX, TracePods
from roadstead.fleet.trace_reader import TraceStream, open_trace
from roadstead.fleet.trace_writer import trace_writer
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.rewriting import (
    ClassRenumbering,
    ReportProgress,
    WrittenTrace,
    moved_ends,
    write_spooled,
)
from roadstead.traces.sink import object_name
from roadstead.traces.spool import Spool, SpooledPod

Order = Literal["after", "merged"]
"""after: each trace starts after the one before it. merged: all traces start at time 0."""

Nodes = Literal["all", "first"]
"""all: nodes of all traces; equal nodes of one name are one node. first: of the first trace."""


def concat(
    paths: Sequence[Path],
    out: Path,
    order: Order,
    nodes: Nodes,
    gap_ms: int,
    report: ReportProgress,
) -> WrittenTrace:
    """Write one trace with the pods of several, sorted by creation.

    gap_ms: with order "after", the time between the last creation of one trace and the start of the
    next. Pods of the second trace are named NAME-2, those of the third NAME-3, and so on. Raises
    InputError for a damaged trace, or if two pods have one name.
    """
    # Pods are kept in a temporary database (Spool), which sorts them and finds names that occur
    # twice: joined traces need not fit in memory.
    with closing(Spool()) as spool:
        joined = _JoinedTraces(spool, order, nodes, gap_ms)
        for trace_number, path in enumerate(paths, start=1):
            with open_trace(path) as stream:
                joined.add(trace_number, stream, str(path), report)
        repeated = spool.repeated()
        if repeated is not None:
            message = "is the name of pods of two traces"
            raise InputError(message, field="pods.name", value=cut_short(repeated[0]))
        source = f"{' + '.join(joined.sources)} ({order})"
        with trace_writer(out, source, joined.namespaces.items()) as writer:
            for node in joined.nodes.values():
                writer.add_node(node)
            write_spooled(writer, spool, joined.classes, report, pods=joined.pod_count)
            return WrittenTrace(source, len(joined.nodes), writer.pods, writer.end())


class _JoinedTraces:
    """The content of the traces read so far; their pods are in the spool.

    classes: the classes of all traces; a pod in the spool has the index of its class.
    """

    def __init__(self, spool: Spool, order: Order, nodes: Nodes, gap_ms: int) -> None:
        self._spool, self._order, self._nodes_of, self._gap_ms = spool, order, nodes, gap_ms
        self._class_indices: dict[PodFacts, int] = {}
        self._start_ms = 0
        self.sources: list[str] = []
        self.namespaces: dict[str, Labels] = {}
        self.nodes: dict[str, NodeFacts] = {}
        self.classes: list[PodFacts] = []
        self.pod_count = 0

    def add(
        self, trace_number: int, stream: TraceStream, path: str, report: ReportProgress
    ) -> None:
        """Add a trace. trace_number: 1 for the first."""
        self.sources.append(stream.source)
        # A namespace keeps the labels of the first trace that has it.
        self.namespaces = dict(stream.namespaces) | self.namespaces
        if trace_number == 1 or self._nodes_of == "all":
            for node in _renamed(stream.nodes, trace_number, self.nodes):
                self.nodes[node.name] = node
        renumbering = ClassRenumbering(self._class_index)
        latest_ms = self._start_ms
        for chunk in stream.chunks():
            class_indices = renumbering.renumbered(chunk.pod_class, stream.pod_classes).tolist()
            latest_ms = max(latest_ms, self._add_chunk(trace_number, chunk, class_indices, path))
            report(f"reading {path}", *stream.progress())
        if self._order == "after":
            self._start_ms = latest_ms + self._gap_ms

    def _add_chunk(
        self, trace_number: int, pods: TracePods, class_indices: list[int], path: str
    ) -> int:
        """Add pods, and return the time of the last creation."""
        creation_ms = pods.creation_ms + self._start_ms
        deletion_ms = moved_ends(pods.deletion_ms, self._start_ms)
        latest_ms = int(creation_ms.max(initial=0))
        if max(latest_ms, int(deletion_ms.max(initial=0))) > TIME_MAX_MS:
            # int64 nanoseconds, as in every trace: see TIME_MAX_S.
            raise InputError("would end after more than 292 years", source=path)
        names = pods.names
        if trace_number > 1:
            names = tuple(object_name(name, str(trace_number)) for name in names)
        times = (creation_ms.tolist(), deletion_ms.tolist(), pods.duration_ms.tolist())
        for row in zip(names, class_indices, *times, strict=True):
            # One by one: the pods of one call must have one time of creation.
            self._spool.add_pods([SpooledPod(*row)])
        self.pod_count += len(names)
        return latest_ms

    def _class_index(self, facts: PodFacts) -> int:
        index = self._class_indices.setdefault(facts, len(self._class_indices))
        if index == len(self.classes):
            if index == CLASSES_MAX:
                raise InputError(f"have more than {CLASSES_MAX} distinct pods together")
            self.classes.append(facts)
        return index


def _renamed(
    nodes: NodeList, trace_number: int, by_name: Mapping[str, NodeFacts]
) -> Iterator[NodeFacts]:
    """Yield the nodes of a trace; a node that differs from an earlier one of its name is renamed.

    by_name: earlier nodes. The caller must add each yielded node before it requests the next, so
    that a new name is not that of an earlier node of the same trace.
    """
    for node in nodes:
        if by_name.get(node.name, node) == node:
            yield node
        else:
            name = node.name
            while name in by_name:
                name = object_name(name, str(trace_number))
            yield renamed_node(node, name)

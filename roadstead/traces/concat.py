"""`concat`: one trace of several, one after another or merged in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from roadstead.facts.node import NodeFacts, renamed_node
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import TIME_MAX_MS
from roadstead.fleet.trace_frames import CLASSES_MAX, PodColumns
from roadstead.fleet.trace_reader import TraceStream, open_trace
from roadstead.fleet.trace_writer import trace_writer
from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.rewriting import ClassCodes, Report, Written, moved_ends, write_spooled
from roadstead.traces.sink import object_name
from roadstead.traces.spool import PodRow, Spool

Order = Literal["after", "merged"]
Nodes = Literal["all", "first"]


def concat(
    paths: Sequence[Path], out: Path, order: Order, nodes: Nodes, gap_ms: int, report: Report
) -> Written:
    """Write one trace with the pods of several.

    order: "after": each trace begins `gap_ms` after the last arrival of the one before; "merged":
    all begin together, and pods are sorted by arrival. nodes: those of all traces, where equal
    nodes of one name are one node, or only those of the first. Pods of the second trace are named
    NAME-2, and so on. Raises InputError for a damaged trace, or if two pods have one name.
    """
    with closing(Spool()) as spool:
        parts = _Parts(spool, order, nodes, gap_ms)
        for number, path in enumerate(paths, start=1):
            with open_trace(path) as stream:
                parts.add(number, stream, str(path), report)
        repeated = spool.repeated()
        if repeated is not None:
            rule = "is the name of pods of two traces"
            raise InputError(rule, field="pods.name", value=cut_short(repeated[0]))
        source = f"{' + '.join(parts.sources)} ({order})"
        with trace_writer(out, source, parts.namespaces.items()) as writer:
            for node in parts.nodes.values():
                writer.add_node(node)
            write_spooled(writer, spool, parts.classes, report, pods=parts.pods)
            return Written(source, len(parts.nodes), writer.pods, writer.end())


class _Parts:
    """The traces read so far."""

    def __init__(self, spool: Spool, order: Order, nodes: Nodes, gap_ms: int) -> None:
        self._spool, self._order, self._which, self._gap_ms = spool, order, nodes, gap_ms
        self._codes: dict[PodFacts, int] = {}
        self._start_ms = 0
        self.sources: list[str] = []
        self.namespaces: dict[str, Labels] = {}
        self.nodes: dict[str, NodeFacts] = {}
        self.classes: list[PodFacts] = []
        self.pods = 0

    def add(self, number: int, stream: TraceStream, path: str, report: Report) -> None:
        self.sources.append(stream.source)
        self.namespaces = dict(stream.namespaces) | self.namespaces
        if number == 1 or self._which == "all":
            for node in _renamed(stream.nodes, number, self.nodes):
                self.nodes[node.name] = node
        codes = ClassCodes(self._class)
        latest_ms = self._start_ms
        for chunk in stream.chunks():
            numbers = codes.of(chunk.pod_class, stream.pod_classes)
            latest_ms = max(latest_ms, self._add_chunk(number, chunk, numbers.tolist(), path))
            report(f"reading {path}", *stream.progress())
        if self._order == "after":
            self._start_ms = latest_ms + self._gap_ms

    def _add_chunk(self, number: int, pods: PodColumns, classes: list[int], path: str) -> int:
        """Add pods, and return the latest arrival."""
        creation_ms = pods.creation_ms + self._start_ms
        ends_ms = moved_ends(pods.deletion_ms, self._start_ms)
        latest_ms = int(creation_ms.max(initial=0))
        if max(latest_ms, int(ends_ms.max(initial=0))) > TIME_MAX_MS:
            raise InputError("would end after more than 292 years", source=path)
        names = pods.names
        if number > 1:
            names = tuple(object_name(name, str(number)) for name in names)
        times = (creation_ms.tolist(), ends_ms.tolist(), pods.duration_ms.tolist())
        for row in zip(names, classes, *times, strict=True):
            self._spool.add_pods([PodRow(*row)])
        self.pods += len(names)
        return latest_ms

    def _class(self, facts: PodFacts) -> int:
        code = self._codes.setdefault(facts, len(self._codes))
        if code == len(self.classes):
            if code == CLASSES_MAX:
                raise InputError(f"have more than {CLASSES_MAX} distinct pods together")
            self.classes.append(facts)
        return code


def _renamed(nodes: NodeList, number: int, known: dict[str, NodeFacts]) -> Iterator[NodeFacts]:
    """Yield the nodes; one that differs from an earlier node of its name gets another."""
    for node in nodes:
        if known.get(node.name, node) == node:
            yield node
        else:
            name = node.name
            while name in known:
                name = object_name(name, str(number))
            yield renamed_node(node, name)

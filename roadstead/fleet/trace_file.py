"""Whole traces in files. `trace_frames` describes the format; `format_1` the one before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from roadstead.fleet.trace import Trace
from roadstead.fleet.trace_frames import TracePods, columns_of
from roadstead.fleet.trace_reader import TraceStream, open_trace
from roadstead.fleet.trace_writer import TraceWriter, joined, trace_writer, uids_of
from roadstead.protocol.errors import InputError

PODS_MAX = 20_000_000
"""Maximum number of pods of a trace that is read as a whole; they take some 5 GB."""


def trace_digest(trace: Trace) -> str:
    """Return the sha256 of the trace's content in hexadecimal, equal for equal traces anywhere."""
    return _write(TraceWriter(None, trace.source, trace.namespaces), trace)


def write_trace(path: Path, trace: Trace) -> str:
    """Write the trace, under its name only when complete, and return its digest.

    Raises InputError if the file cannot be written.
    """
    with trace_writer(path, trace.source, trace.namespaces) as writer:
        return _write(writer, trace)


def read_trace(path: Path) -> Trace:
    """Read a trace; InputError for anything but a complete and valid trace of Roadstead."""
    with open_trace(path) as stream:
        trace = _read(stream)
        trace.validate()
        return trace


def _write(writer: TraceWriter, trace: Trace) -> str:
    for node in trace.node_list():
        writer.add_node(node)
    classes = np.array([writer.pod_class(facts) for facts in trace.pod_classes], dtype=np.int32)
    pods = columns_of(trace)
    times = (pods.creation_ms, pods.deletion_ms, pods.duration_ms)
    writer.add_pods(TracePods(pods.names, pods.uids, classes[pods.pod_class], *times))
    return writer.end()


def _read(stream: TraceStream) -> Trace:
    chunks: list[TracePods] = []
    count = 0
    for chunk in stream.chunks():
        chunks.append(chunk)
        count += len(chunk)
        if count > PODS_MAX:
            problem = f"has more than {PODS_MAX} pods; make it smaller by `roadstead trace sample`"
            raise InputError(problem)
    classes = stream.pod_classes

    def uid(name: str, code: int) -> str:
        return f"{classes[code].namespace}/{name}"

    pods = joined(chunks, uid)
    return Trace(
        source=stream.source,
        namespaces=stream.namespaces,
        node_classes=stream.nodes.classes,
        node_names=stream.nodes.names,
        node_class=stream.nodes.codes,
        pod_classes=tuple(classes),
        pod_names=pods.names,
        pod_uids=tuple(uids_of(pods, uid)),
        pod_class=pods.pod_class,
        creation_ms=pods.creation_ms,
        deletion_ms=pods.deletion_ms,
        duration_ms=pods.duration_ms,
    )

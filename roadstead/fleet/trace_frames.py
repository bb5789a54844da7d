"""Frames of a trace file: nodes first, then pods in chunks, so that memory does not grow with them.

    roadstead-trace 2\\n   the format and its version
    frames                one byte for the type of the frame, two uint32 in big-endian (bytes of the
                          compressed and of the uncompressed content), and the content: msgpack of
                          the frame's dataclass as a list of its fields, compressed with zlib

One head frame (type H), frames of up to `FRAME_MAX_ROWS` nodes (N), then of pods (P), and one end
frame (E). A class is in the frame in which it occurs first. The end frame has the counts and the
digest: sha256 over type byte and uncompressed content of every frame before it. Compressed bytes
are not part of it, since they differ between versions of zlib. A reader compares the stated sizes
with `FRAME_MAX_BYTES` before it decompresses anything.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import Trace

MAGIC = b"roadstead-trace "
VERSION = 2
MAGIC_LINE = MAGIC + b"%d\n" % VERSION

FRAME_MAX_ROWS = 1 << 16
"""Nodes or pods of a frame, and of each step of reading and writing; a last frame may have fewer.

This is some MB in memory, and few frames. The digest of a longer trace depends on it.
"""

FRAME_MAX_BYTES = 256 * 1024 * 1024
"""Maximum number of bytes that a damaged or hostile file makes a reader allocate.

It is 4 KiB for each of 65,536 pods: enough for name, UID and a class of its own.
"""

CLASSES_MAX = 1_000_000
"""Distinct pods of a trace: memory holds all classes, also where pods are read in chunks."""

SIZES = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class HeadFrame:
    """Origin of the trace, for people, and (name, labels) of the namespaces of its pods."""

    source: str
    namespaces: tuple[tuple[str, Labels], ...]


@dataclass(frozen=True, slots=True)
class NodesFrame:
    """Nodes, and the classes that occur first in this frame.

    node_class: the class of each node, little-endian int32: an index into the classes of all node
    frames so far.
    """

    classes: tuple[NodeFacts, ...]
    names: tuple[str, ...]
    node_class: bytes


@dataclass(frozen=True, slots=True)
class PodsFrame:
    """Pods, and the classes that occur first in this frame.

    uids: empty if the UID of every pod is NAMESPACE/NAME. pod_class: as `NodesFrame.node_class`,
    for the classes of pods. creation_ms, deletion_ms, duration_ms: columns of `Trace`, as
    little-endian int64.
    """

    classes: tuple[PodFacts, ...]
    names: tuple[str, ...]
    uids: tuple[str, ...]
    pod_class: bytes
    creation_ms: bytes
    deletion_ms: bytes
    duration_ms: bytes


@dataclass(frozen=True, slots=True)
class EndFrame:
    """Counts of nodes and pods, and the sha256 of all frames before this one."""

    node_count: int
    pod_count: int
    digest: bytes


@dataclass(frozen=True, slots=True, eq=False)
class TracePods:
    """Some pods of a trace, in columns.

    uids: empty if each is NAMESPACE/NAME. creation_ms, deletion_ms: milliseconds since the start of
    the trace. duration_ms: how long the pod runs once it started. A simulated run uses the
    duration; the deletion is that of the recorded cluster, where the pod waited for another time.
    """

    names: tuple[str, ...]
    uids: tuple[str, ...]
    pod_class: NDArray[np.int32]
    creation_ms: NDArray[np.int64]
    deletion_ms: NDArray[np.int64]
    duration_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, chosen: NDArray[np.intp]) -> TracePods:
        """Return the pods at these indices."""
        indices = chosen.tolist()
        return TracePods(
            tuple(self.names[index] for index in indices),
            tuple(self.uids[index] for index in indices) if self.uids else (),
            self.pod_class[chosen],
            self.creation_ms[chosen],
            self.deletion_ms[chosen],
            self.duration_ms[chosen],
        )


def columns_of(trace: Trace) -> TracePods:
    """Return all pods of a trace."""
    times = (trace.creation_ms, trace.deletion_ms, trace.duration_ms)
    return TracePods(trace.pod_names, trace.pod_uids, trace.pod_class, *times)

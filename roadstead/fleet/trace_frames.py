"""Frames of a trace file: nodes first, then pods in chunks, so that memory does not grow with them.

    roadstead-trace 2\\n   the format and its version
    frames                a letter, the sizes of the packed and of the plain content (two uint32,
                          big-endian), and the content, compressed with zlib: msgpack of the
                          frame's dataclass

One head frame (H), frames of up to `CHUNK_ROWS` nodes (N), then of pods (P), and one end frame (E)
with the counts and the sha256 over letters and plain contents. A class is in the frame in which it
occurs first. The digest is that of the plain contents, since zlib's output differs between versions
of zlib. Sizes are bounded before anything is unpacked.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import Trace

FORMAT = b"roadstead-trace "
VERSION = 2
HEADER = FORMAT + b"%d\n" % VERSION
CHUNK_ROWS = 1 << 16
FRAME_MAX_BYTES = 256 * 1024 * 1024
CLASSES_MAX = 1_000_000

SIZES = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class HeadFrame:
    """Origin of the trace, and (name, labels) of the namespaces of its pods."""

    source: str
    namespaces: tuple[tuple[str, Labels], ...]


@dataclass(frozen=True, slots=True)
class NodesFrame:
    """New classes, and nodes; node_class: little-endian int32."""

    classes: tuple[NodeFacts, ...]
    names: tuple[str, ...]
    node_class: bytes


@dataclass(frozen=True, slots=True)
class PodsFrame:
    """New classes, and pods; pod_class: little-endian int32, times: little-endian int64.

    uids: empty if the UID of every pod is its namespace and name.
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
    """Numbers of nodes and pods, and the digest of all frames before this one."""

    nodes: int
    pods: int
    digest: bytes


@dataclass(frozen=True, slots=True, eq=False)
class PodColumns:
    """Some pods of a trace; columns as in `Trace`. uids: empty for namespace and name."""

    names: tuple[str, ...]
    uids: tuple[str, ...]
    pod_class: NDArray[np.int32]
    creation_ms: NDArray[np.int64]
    deletion_ms: NDArray[np.int64]
    duration_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, chosen: NDArray[np.intp]) -> PodColumns:
        """Return the pods at these indices."""
        places = chosen.tolist()
        return PodColumns(
            tuple(self.names[at] for at in places),
            tuple(self.uids[at] for at in places) if self.uids else (),
            self.pod_class[chosen],
            self.creation_ms[chosen],
            self.deletion_ms[chosen],
            self.duration_ms[chosen],
        )


def columns_of(trace: Trace) -> PodColumns:
    """Return all pods of a trace."""
    times = (trace.creation_ms, trace.deletion_ms, trace.duration_ms)
    return PodColumns(trace.pod_names, trace.pod_uids, trace.pod_class, *times)

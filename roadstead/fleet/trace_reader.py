"""Reading of a trace in chunks of pods, with bounded memory.

`trace_frames` describes the file: a head frame (type H), frames of nodes (N), frames of pods (P),
and an end frame (E).
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet import trace_checks as checks
from roadstead.fleet.format_1 import HEADER_1, read_format_1
from roadstead.fleet.trace import Trace, check_codes, check_length, check_times
from roadstead.fleet.trace_frames import (
    CLASSES_MAX,
    FRAME_MAX_BYTES,
    FRAME_MAX_ROWS,
    MAGIC,
    MAGIC_LINE,
    SIZES,
    VERSION,
    EndFrame,
    HeadFrame,
    NodesFrame,
    PodsFrame,
    TracePods,
    columns_of,
)
from roadstead.protocol.codec import from_wire
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.plain_data import CodecError, unpack

NODES_MAX = 5_000_000
T = TypeVar("T")
"""The dataclass of a frame."""


class TraceStream(Protocol):
    """A trace whose pods are read in chunks.

    pod_classes: the classes of the pods read so far; nothing else of these pods stays in memory.
    """

    source: str
    namespaces: tuple[tuple[str, Labels], ...]
    nodes: NodeList
    pod_classes: list[PodFacts]

    def chunks(self) -> Iterator[TracePods]:
        """Yield the pods; can be iterated once. Raises InputError for a damaged part."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how much is read, and how much there is, in any unit."""
        ...


class TraceInMemory:
    """A `Trace` as a stream."""

    def __init__(self, trace: Trace) -> None:
        self.source, self.namespaces = trace.source, trace.namespaces
        self.nodes, self.pod_classes = trace.node_list(), list(trace.pod_classes)
        self._pods = columns_of(trace)
        # Number of pods that were yielded.
        self._done = 0

    def progress(self) -> tuple[int, int]:
        return self._done, len(self._pods)

    def chunks(self) -> Iterator[TracePods]:
        for start in range(0, len(self._pods), FRAME_MAX_ROWS):
            self._done = min(start + FRAME_MAX_ROWS, len(self._pods))
            yield self._pods.rows(np.arange(start, min(start + FRAME_MAX_ROWS, len(self._pods))))


@contextmanager
def open_trace(path: Path) -> Iterator[TraceStream]:
    """Open a trace file of any version; errors in the block name the file.

    Raises InputError for anything but a trace of Roadstead; `chunks` raises it for damaged pods.
    """
    try:
        with path.open("rb") as file:
            header = file.read(len(MAGIC_LINE))
            if header == HEADER_1:
                yield TraceInMemory(read_format_1(file))
            elif header == MAGIC_LINE:
                yield TraceReader(file)
            else:
                raise InputError(_wrong_header(header))
    except InputError as error:
        raise error.at(source=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error


def _wrong_header(header: bytes) -> str:
    if header.startswith(MAGIC):
        version = cut_short(header[len(MAGIC) :].split(b"\n")[0].decode("ascii", "replace"))
        return f"is a trace of version {version}; this release reads versions 1 and {VERSION}"
    return "is not a trace (make one with `roadstead trace import`)"


class TraceReader:
    """The nodes of a trace file, and its pods in chunks, one for each frame; see `open_trace`.

    pod_classes: the classes of the pods read so far; nothing else of these pods stays in memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        # The digest of all frames before the last one that was read.
        self._digest_before = b""
        self._pods = 0
        self.pod_classes: list[PodFacts] = []
        self._frame_type, content = self._next()
        head = self._decoded(HeadFrame, content, self._frame_type == b"H")
        checks.check_namespaces(name for name, _ in head.namespaces)
        self.source, self.namespaces = head.source, head.namespaces
        # One frame is read ahead: its type shows whether nodes or pods follow.
        self._frame_type, self._content = self._next()
        self.nodes = self._read_nodes()

    def progress(self) -> tuple[int, int]:
        return self._file.tell(), os.fstat(self._file.fileno()).st_size

    def chunks(self) -> Iterator[TracePods]:
        """Yield the pods; can be iterated once. Raises InputError at a damaged part."""
        while self._frame_type == b"P":
            yield self._read_pods(self._decoded(PodsFrame, self._content))
            self._frame_type, self._content = self._next()
        end = self._decoded(EndFrame, self._content, self._frame_type == b"E")
        counts = len(self.nodes), self._pods
        if end.digest != self._digest_before or (end.node_count, end.pod_count) != counts:
            raise InputError("is damaged: its content does not match its digest")
        if self._file.read(1):
            raise InputError("is damaged: it is cut short or goes on after its end")

    def _next(self) -> tuple[bytes, bytes]:
        """Read a frame; return its type and its content."""
        self._digest_before = self._digest.digest()
        frame_type = self._file.read(1)
        sizes = self._file.read(SIZES.size)
        if len(sizes) < SIZES.size:
            raise InputError("is damaged: it is cut short or goes on after its end")
        compressed_bytes, uncompressed_bytes = SIZES.unpack(sizes)
        if max(compressed_bytes, uncompressed_bytes) > FRAME_MAX_BYTES:
            raise InputError(f"has a frame of more than {FRAME_MAX_BYTES} bytes")
        content = _decompress(
            self._file.read(compressed_bytes), compressed_bytes, uncompressed_bytes
        )
        self._digest.update(frame_type + content)
        return frame_type, content

    def _decoded(self, frame_class: type[T], content: bytes, is_of_type: bool = True) -> T:
        """Decode a frame. is_of_type: whether its type byte is that of the dataclass."""
        try:
            if not is_of_type:
                raise CodecError(f"no {frame_class.__name__}")
            return from_wire(frame_class, unpack(content))
        except CodecError as error:
            raise InputError(f"is damaged, or not of this release: {error}") from error

    def _read_nodes(self) -> NodeList:
        classes: list[NodeFacts] = []
        names: list[str] = []
        codes: list[NDArray[np.int32]] = []
        while self._frame_type == b"N":
            frame = self._decoded(NodesFrame, self._content)
            checks.check_node_classes(frame.classes)
            checks.check_names("nodes.name", frame.names)
            classes += frame.classes
            column = checks.decoded("nodes.class", frame.node_class, "<i4").astype(np.int32)
            check_length("nodes.class", column, frame.names)
            check_codes("nodes.class", column, len(classes))
            names += frame.names
            codes.append(column)
            if max(len(names), len(classes)) > NODES_MAX:
                raise InputError(f"has more than {NODES_MAX} nodes, or classes of them")
            self._frame_type, self._content = self._next()
        joined_codes = np.concatenate(codes) if codes else np.empty(0, np.int32)
        return NodeList.from_columns(tuple(classes), names, joined_codes)

    def _read_pods(self, frame: PodsFrame) -> TracePods:
        checks.check_pod_classes(frame.classes)
        checks.check_names("pods.name", frame.names)
        checks.check_uids(frame.uids)
        # Class numbers continue from frame to frame, so the bound is for the whole file.
        self.pod_classes += frame.classes
        if len(self.pod_classes) > CLASSES_MAX:
            raise InputError(f"has more than {CLASSES_MAX} distinct pods", field="pods.class")
        if frame.uids:
            check_length("pods.uid", frame.uids, frame.names)
        pods = TracePods(
            frame.names,
            frame.uids,
            checks.decoded("pods.class", frame.pod_class, "<i4").astype(np.int32),
            checks.decoded("pods.creation_ms", frame.creation_ms, "<i8"),
            checks.decoded("pods.deletion_ms", frame.deletion_ms, "<i8"),
            checks.decoded("pods.duration_ms", frame.duration_ms, "<i8"),
        )
        check_length("pods.class", pods.pod_class, pods.names)
        for name in ("creation_ms", "deletion_ms", "duration_ms"):
            check_length(f"pods.{name}", getattr(pods, name), pods.names)
        check_codes("pods.class", pods.pod_class, len(self.pod_classes))
        check_times(pods.creation_ms, pods.deletion_ms, pods.duration_ms)
        self._pods += len(pods)
        return pods


def _decompress(compressed: bytes, compressed_bytes: int, uncompressed_bytes: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(compressed, uncompressed_bytes + 1)
    except zlib.error as error:
        raise InputError("is damaged: it does not decompress") from error
    if len(compressed) != compressed_bytes or not decompressor.eof or decompressor.unused_data:
        raise InputError("is damaged: it is cut short or goes on after its end")
    if len(content) != uncompressed_bytes:
        raise InputError("is damaged: a frame does not have the size that it states")
    return content

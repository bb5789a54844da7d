"""Writing of a trace frame by frame, with bounded memory.

`trace_frames` describes the file: a head frame (type H), frames of nodes (N), frames of pods (P),
and an end frame (E).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts, class_of_node
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace_frames import (
    CLASSES_MAX,
    FRAME_MAX_BYTES,
    FRAME_MAX_ROWS,
    MAGIC_LINE,
    SIZES,
    EndFrame,
    HeadFrame,
    NodesFrame,
    PodsFrame,
    TracePods,
)
from roadstead.protocol.codec import to_wire
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import pack

COMPRESSION_LEVEL = 6
T = TypeVar("T")
"""Facts of a class of nodes or pods."""


class TraceWriter:
    """Write a trace frame by frame, and keep only classes and one chunk of pods.

    Frames have the same boundaries however pods are added, so that equal traces have equal digests.
    write: writes bytes to the file; None if only the digest is needed.
    """

    def __init__(
        self,
        write: Callable[[bytes], object] | None,
        source: str,
        namespaces: Iterable[tuple[str, Labels]],
    ) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self._node_codes: dict[NodeFacts, int] = {}
        self._pod_codes: dict[PodFacts, int] = {}
        # Namespace of each class of pods, by its number.
        self._namespaces: list[str] = []
        # Nodes (name, class) and pods that are in no frame yet; `_buffered` counts these pods.
        self._new_nodes: list[tuple[str, int]] = []
        self._chunks: list[TracePods] = []
        self._buffered = 0
        # How many classes are in the frames so far: of nodes, of pods.
        self._written_classes = [0, 0]
        self._nodes = self._pods = 0
        self._frame(b"H", HeadFrame(source, tuple(sorted(namespaces))))

    @property
    def pods(self) -> int:
        """Number of pods so far."""
        return self._pods + self._buffered

    def add_node(self, facts: NodeFacts) -> None:
        """Add a node; all nodes precede the first pod."""
        assert not self._pods, "nodes precede pods"
        code = self._node_codes.setdefault(class_of_node(facts), len(self._node_codes))
        self._new_nodes.append((facts.name, code))
        if len(self._new_nodes) == FRAME_MAX_ROWS:
            self._flush_nodes()

    def pod_class(self, facts: PodFacts) -> int:
        """Return the number of a class for `add_pods`. InputError past CLASSES_MAX classes."""
        code = self._pod_codes.setdefault(facts, len(self._pod_codes))
        if code == len(self._namespaces):
            if code == CLASSES_MAX:
                raise InputError(f"has more than {CLASSES_MAX} distinct pods", field="pods.class")
            self._namespaces.append(facts.namespace)
        return code

    def add_pods(self, pods: TracePods) -> None:
        """Add pods whose classes are numbers from `pod_class`."""
        start = 0
        while len(pods) - start >= (room := FRAME_MAX_ROWS - self._buffered):
            self._chunks.append(pods.rows(np.arange(start, start + room)))
            self._flush_pods()
            start += room
        if start < len(pods):
            self._chunks.append(pods.rows(np.arange(start, len(pods))) if start else pods)
            self._buffered += len(pods) - start

    def end(self) -> str:
        """Write what is left, and return the digest in hexadecimal."""
        self._flush_nodes()
        if self._buffered:
            self._flush_pods()
        digest = self._digest.digest()
        self._frame(b"E", EndFrame(self._nodes, self._pods, digest))
        return digest.hex()

    def _flush_nodes(self) -> None:
        nodes, self._new_nodes = self._new_nodes, []
        if not nodes:
            return
        classes = self._new_classes(0, self._node_codes)
        codes = np.array([code for _, code in nodes], dtype="<i4").tobytes()
        self._nodes += len(nodes)
        self._frame(b"N", NodesFrame(classes, tuple(name for name, _ in nodes), codes))

    def _flush_pods(self) -> None:
        self._flush_nodes()
        pods = joined(self._chunks, self._uid)
        self._chunks, self._buffered = [], 0
        self._pods += len(pods)
        times = (pods.creation_ms, pods.deletion_ms, pods.duration_ms)
        frame = PodsFrame(
            self._new_classes(1, self._pod_codes),
            pods.names,
            () if self._has_default_uids(pods) else pods.uids,
            pods.pod_class.astype("<i4").tobytes(),
            *(column.astype("<i8").tobytes() for column in times),
        )
        self._frame(b"P", frame)

    def _new_classes(self, index: int, codes: dict[T, int]) -> tuple[T, ...]:
        """Return the classes that are in no frame yet, and count them as written.

        index: in `_written_classes`, 0 for nodes, 1 for pods. codes: class → number, in order.
        """
        written = self._written_classes[index]
        self._written_classes[index] = len(codes)
        return tuple(list(codes)[written:]) if len(codes) > written else ()

    def _uid(self, name: str, pod_class: int) -> str:
        return f"{self._namespaces[pod_class]}/{name}"

    def _has_default_uids(self, pods: TracePods) -> bool:
        """Return whether the UID of every pod is NAMESPACE/NAME."""
        if not pods.uids:
            return True
        namespaces = self._namespaces
        rows = zip(pods.uids, pods.names, pods.pod_class.tolist(), strict=True)
        return all(uid == f"{namespaces[code]}/{name}" for uid, name, code in rows)

    def _frame(
        self, frame_type: bytes, frame: HeadFrame | NodesFrame | PodsFrame | EndFrame
    ) -> None:
        content = pack(to_wire(frame))
        if len(content) > FRAME_MAX_BYTES:
            raise InputError(f"has a frame of more than {FRAME_MAX_BYTES} bytes")
        self._digest.update(frame_type + content)
        if self._write is None:
            return
        compressed = zlib.compress(content, COMPRESSION_LEVEL)
        self._write(frame_type + SIZES.pack(len(compressed), len(content)) + compressed)


def joined(chunks: Sequence[TracePods], uid: Callable[[str, int], str]) -> TracePods:
    """Join chunks of pods. uid: returns the default UID for (name, class).

    The result has no UIDs if no chunk has: every pod then has the default.
    """
    if len(chunks) == 1:
        return chunks[0]
    uids: tuple[str, ...] = ()
    if any(each.uids for each in chunks):
        uids = tuple(text for each in chunks for text in uids_of(each, uid))

    def column(name: str) -> NDArray[np.int64]:
        columns = [getattr(each, name) for each in chunks]
        return np.concatenate(columns) if columns else np.empty(0, np.int64)

    return TracePods(
        tuple(name for each in chunks for name in each.names),
        uids,
        column("pod_class").astype(np.int32),
        column("creation_ms"),
        column("deletion_ms"),
        column("duration_ms"),
    )


def uids_of(pods: TracePods, uid: Callable[[str, int], str]) -> Iterable[str]:
    """Return the UIDs of pods. uid: returns the UID for (name, class), if `pods` has none."""
    return pods.uids or map(uid, pods.names, pods.pod_class.tolist())


@contextmanager
def trace_writer(
    path: Path, source: str, namespaces: Iterable[tuple[str, Labels]]
) -> Iterator[TraceWriter]:
    """Yield a writer of a file, which is renamed to `path` if the block ends without an error.

    Raises InputError if the file cannot be written. The block calls `end`.
    """
    try:
        handle, staged = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC_LINE)
                yield TraceWriter(file.write, source, namespaces)
            # `mkstemp` creates files that only the owner can read.
            Path(staged).chmod(0o644)
            os.replace(staged, path)
        except BaseException:
            Path(staged).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error

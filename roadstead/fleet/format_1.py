"""Trace files of version 1, which earlier releases wrote: the whole trace in one body.

    roadstead-trace 1\\n   the format and its version
    32 bytes              sha256 of the body
    the rest              the body, compressed with zlib: msgpack of a `TraceBody`

Times are whole seconds. A pod runs from its creation to its deletion. A class is the nodes or pods
with equal facts (specs), which are stored once.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import NEVER_MS, NEVER_S, S_MS, TIME_MAX_S, Trace
from roadstead.fleet.trace_checks import (
    check_names,
    check_namespaces,
    check_node_classes,
    check_pod_classes,
    check_uids,
    decoded,
)
from roadstead.protocol.codec import from_wire
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import CodecError, unpack

HEADER_1 = b"roadstead-trace 1\n"
DIGEST_BYTES = 32
BODY_MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TraceBody:
    """A `Trace` as it is packed; columns are little-endian int32 (classes) or int64 (times)."""

    source: str
    namespaces: tuple[tuple[str, Labels], ...]
    node_classes: tuple[NodeFacts, ...]
    node_names: tuple[str, ...]
    node_class: bytes
    pod_classes: tuple[PodFacts, ...]
    pod_names: tuple[str, ...]
    pod_uids: tuple[str, ...]
    pod_class: bytes
    creation_s: bytes
    deletion_s: bytes


def read_format_1(file: BinaryIO) -> Trace:
    """Read the rest of a file after its header; InputError if it is damaged or inconsistent."""
    digest = file.read(DIGEST_BYTES)
    body = _decompress(file.read(BODY_MAX_BYTES + 1))
    if hashlib.sha256(body).digest() != digest:
        raise InputError("is damaged: its content does not match its digest")
    return _unpack_trace(body)


def _decompress(packed: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        body = decompressor.decompress(packed, BODY_MAX_BYTES + 1)
    except zlib.error as error:
        raise InputError("is damaged: it does not decompress") from error
    if len(packed) > BODY_MAX_BYTES or len(body) > BODY_MAX_BYTES:
        raise InputError(f"holds more than {BODY_MAX_BYTES} bytes")
    if not decompressor.eof or decompressor.unused_data:
        raise InputError("is damaged: it is cut short or goes on after its end")
    return body


def _unpack_trace(packed: bytes) -> Trace:
    try:
        body = from_wire(TraceBody, unpack(packed))
    except CodecError as error:
        raise InputError(
            f"is not damaged, but this release cannot read it; make it anew: {error}"
        ) from error
    _check(body)
    creation_ms = _milliseconds("pods.creation_s", body.creation_s)
    deletion_ms = _milliseconds("pods.deletion_s", body.deletion_s)
    ends = deletion_ms != NEVER_MS
    trace = Trace(
        source=body.source,
        namespaces=body.namespaces,
        node_classes=body.node_classes,
        node_names=body.node_names,
        node_class=decoded("nodes.class", body.node_class, "<i4").astype(np.int32),
        pod_classes=body.pod_classes,
        pod_names=body.pod_names,
        pod_uids=body.pod_uids,
        pod_class=decoded("pods.class", body.pod_class, "<i4").astype(np.int32),
        creation_ms=creation_ms,
        deletion_ms=deletion_ms,
        # The format has no durations: a pod ran from its creation to its deletion.
        duration_ms=np.where(
            ends, deletion_ms - _of_equal_length(creation_ms, deletion_ms), NEVER_MS
        ),
    )
    trace.validate()
    return trace


def _of_equal_length(
    creation_ms: NDArray[np.int64], deletion_ms: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the creations; zeros if their number differs, which `validate` reports later."""
    return creation_ms if len(creation_ms) == len(deletion_ms) else np.zeros_like(deletion_ms)


def _milliseconds(field: str, content: bytes) -> NDArray[np.int64]:
    seconds = decoded(field, content, "<i8")
    # Not by np.abs, which returns the minimum of int64 unchanged.
    if ((seconds < -TIME_MAX_S) | (seconds > TIME_MAX_S)).any():
        raise InputError(
            f"is more than {TIME_MAX_S} (292 years) from the trace's start", field=field
        )
    scaled: NDArray[np.int64] = np.where(seconds == NEVER_S, NEVER_MS, seconds * S_MS)
    return scaled


def _check(body: TraceBody) -> None:
    check_node_classes(body.node_classes)
    check_pod_classes(body.pod_classes)
    check_names("nodes.name", body.node_names)
    check_names("pods.name", body.pod_names)
    check_namespaces(name for name, _ in body.namespaces)
    check_uids(body.pod_uids)

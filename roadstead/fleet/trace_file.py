"""A trace in one file.

    roadstead-trace 1\\n   the format and its version
    32 bytes              sha256 of the body
    the rest              the body, compressed with zlib: msgpack of a `TraceBody`

The digest is that of the body before compression, since zlib's output differs between versions of
zlib. Sizes are bounded before anything is unpacked.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import Trace
from roadstead.protocol.codec import CodecError, from_wire, pack, to_wire, unpack
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import dns_label_errors, subdomain_errors

FORMAT = b"roadstead-trace "
VERSION = 1
HEADER = FORMAT + b"%d\n" % VERSION
DIGEST_BYTES = 32
BODY_MAX_BYTES = 256 * 1024 * 1024
AMOUNT_MAX = (1 << 63) - 1
COMPRESSION_LEVEL = 6


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


def trace_digest(trace: Trace) -> str:
    """Return the sha256 of the trace's content in hexadecimal, equal for equal traces anywhere."""
    return hashlib.sha256(_pack_body(trace)).hexdigest()


def write_trace(path: Path, trace: Trace) -> str:
    """Write the trace, under its name only when complete, and return its digest.

    Raises InputError if the file cannot be written or the trace is larger than a file may be.
    """
    body = _pack_body(trace)
    if len(body) > BODY_MAX_BYTES:
        raise InputError(f"is {len(body)} bytes, more than {BODY_MAX_BYTES}", source=str(path))
    digest = hashlib.sha256(body)
    content = HEADER + digest.digest() + zlib.compress(body, COMPRESSION_LEVEL)
    try:
        _write_atomically(path, content)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error
    return digest.hexdigest()


def read_trace(path: Path) -> Trace:
    """Read a trace; InputError for anything but a complete and valid trace of Roadstead."""
    try:
        return _unpack_trace(_read_body(path))
    except InputError as error:
        raise error.at(source=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error


def _pack_body(trace: Trace) -> bytes:
    body = TraceBody(
        source=trace.source,
        namespaces=trace.namespaces,
        node_classes=trace.node_classes,
        node_names=trace.node_names,
        node_class=trace.node_class.astype("<i4").tobytes(),
        pod_classes=trace.pod_classes,
        pod_names=trace.pod_names,
        pod_uids=trace.pod_uids,
        pod_class=trace.pod_class.astype("<i4").tobytes(),
        creation_s=trace.creation_s.astype("<i8").tobytes(),
        deletion_s=trace.deletion_s.astype("<i8").tobytes(),
    )
    return pack(to_wire(body))


def _write_atomically(path: Path, content: bytes) -> None:
    handle, staged = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # `mkstemp` creates files that only the owner can read.
        Path(staged).chmod(0o644)
        os.replace(staged, path)
    except OSError:
        Path(staged).unlink(missing_ok=True)
        raise


def _read_body(path: Path) -> bytes:
    with path.open("rb") as file:
        header = file.read(len(HEADER))
        digest = file.read(DIGEST_BYTES)
        packed = file.read(BODY_MAX_BYTES + 1)
    if header != HEADER:
        raise InputError(_wrong_header(header))
    body = _decompress(packed)
    if hashlib.sha256(body).digest() != digest:
        raise InputError("is damaged: its content does not match its digest")
    return body


def _wrong_header(header: bytes) -> str:
    if header.startswith(FORMAT):
        version = cut_short(header[len(FORMAT) :].split(b"\n")[0].decode("ascii", "replace"))
        return f"is a trace of version {version}; this release reads version {VERSION}"
    return "is not a trace (make one with `roadstead trace import`)"


def _decompress(packed: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        body = inflate.decompress(packed, BODY_MAX_BYTES + 1)
    except zlib.error as error:
        raise InputError("is damaged: it does not decompress") from error
    if len(packed) > BODY_MAX_BYTES or len(body) > BODY_MAX_BYTES:
        raise InputError(f"holds more than {BODY_MAX_BYTES} bytes")
    if not inflate.eof or inflate.unused_data:
        raise InputError("is damaged: it is cut short, or has data after its end")
    return body


def _unpack_trace(packed: bytes) -> Trace:
    try:
        body = from_wire(TraceBody, unpack(packed))
    except CodecError as error:
        raise InputError(f"is whole, but not of this release; make it anew: {error}") from error
    _check_amounts(body)
    _check_names(body)
    trace = Trace(
        source=body.source,
        namespaces=body.namespaces,
        node_classes=body.node_classes,
        node_names=body.node_names,
        node_class=_column("nodes.class", body.node_class, "<i4").astype(np.int32),
        pod_classes=body.pod_classes,
        pod_names=body.pod_names,
        pod_uids=body.pod_uids,
        pod_class=_column("pods.class", body.pod_class, "<i4").astype(np.int32),
        creation_s=_column("pods.creation_s", body.creation_s, "<i8").astype(np.int64),
        deletion_s=_column("pods.deletion_s", body.deletion_s, "<i8").astype(np.int64),
    )
    trace.validate()
    return trace


def _column(field: str, content: bytes, kind: str) -> NDArray[np.int32] | NDArray[np.int64]:
    dtype = np.dtype(kind)
    if len(content) % dtype.itemsize:
        raise InputError(f"is no whole number of {dtype.itemsize}-byte entries", field=field)
    column: NDArray[np.int32] | NDArray[np.int64] = np.frombuffer(content, dtype=dtype)
    return column


def _check_names(body: TraceBody) -> None:
    """Check names by the API server's rules, because they end up in files and on terminals."""
    namespaces = [name for name, _ in body.namespaces]
    namespaces += [facts.namespace for facts in body.pod_classes]
    for field, names, errors in (
        ("nodes.name", body.node_names, subdomain_errors),
        ("pods.name", body.pod_names, subdomain_errors),
        ("namespaces", namespaces, dns_label_errors),
    ):
        for name in names:
            if rules := errors(name):
                rule = f"is not allowed: {'; '.join(rules)}"
                raise InputError(rule, field=field, value=cut_short(name))
    for uid in body.pod_uids:
        if not uid.isprintable():
            rule = "must not contain control characters"
            raise InputError(rule, field="pods.uid", value=cut_short(uid))


def _check_amounts(body: TraceBody) -> None:
    """Check that each amount is a non-negative int64: later, amounts are added as int64."""
    for node in body.node_classes:
        _check_amount("allocatable", ("pods", node.allocatable_pods))
        for entry in (*node.allocatable, *node.images):
            _check_amount("allocatable", entry)
    for pod in body.pod_classes:
        scored = (("cpu", pod.nonzero_cpu_milli), ("memory", pod.nonzero_memory_bytes))
        for entry in (*pod.requests, *scored, *(pod.container_requests or ())):
            _check_amount("requests", entry)


def _check_amount(field: str, entry: tuple[str, int]) -> None:
    resource, amount = entry
    if not 0 <= amount <= AMOUNT_MAX:
        name = f"{field}[{cut_short(resource)}]"
        raise InputError("is out of range", field=name, value=cut_short(amount))

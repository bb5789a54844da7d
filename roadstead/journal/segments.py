"""Segments and snapshots: the files of a journal, their headers, and reading them back.

    journal-<first lsn>.segment     records from that lsn on, in frames
    snapshot-<lsn>.snapshot         what stood after that lsn, as records of kind LOAD, in frames

Both begin with a header: magic, format version, epoch of the writer, first lsn, and the names of
the fields that facts are made of, so that facts are never read with another meaning than they were
written with. What a reader finds at the end of the last segment decides what is done:

    nothing but whole frames                    read
    a broken frame, none that was durable       cut: it was never acknowledged
    behind it a frame that says it was durable  refused, with file and offset
    a broken frame in any file but the last     refused, with file and offset
"""

from __future__ import annotations

import dataclasses
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import get_args, get_type_hints

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.rules import Rules
from roadstead.facts.run_mark import RunMark
from roadstead.journal.columns import RecordColumns
from roadstead.journal.disk import Disk
from roadstead.journal.frames import (
    Facts,
    FactsTable,
    Frame,
    FrameError,
    decode,
    frame_at,
    next_frame,
)
from roadstead.journal.records import JournalError, JournalRecord, Records
from roadstead.protocol.codec import CodecError

MAGIC = b"RSJOURN1"
_HEADER = struct.Struct("<8sIQQI")
HEADER_BYTES = _HEADER.size + 4
_SEGMENT = re.compile(r"journal-(\d{20})\.segment")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.snapshot")


def segment_name(first_lsn: int) -> str:
    return f"journal-{first_lsn:020}.segment"


def snapshot_name(lsn: int) -> str:
    return f"snapshot-{lsn:020}.snapshot"


@cache
def schema() -> int:
    """A number that changes with the fields that facts are made of."""
    names: dict[str, None] = {}
    todo: list[object] = [PodFacts, NodeFacts, ClusterFacts, Rules, RunMark, BoundClaims]
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            for name, hint in get_type_hints(kind).items():
                line = f"{kind.__name__}.{name}: {hint}"
                todo += [] if line in names else [hint]
                names[line] = None
    return zlib.crc32("\n".join(sorted(names)).encode())


@dataclass(frozen=True, slots=True)
class Header:
    """The first bytes of a file of the journal."""

    epoch: int
    first_lsn: int

    def encode(self) -> bytes:
        data = _HEADER.pack(MAGIC, 1, self.epoch, self.first_lsn, schema())
        return data + struct.pack("<I", zlib.crc32(data))


@dataclass(frozen=True, slots=True)
class Tail:
    """Bytes at the end of the last segment that were never acknowledged, and were cut away."""

    name: str
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a journal, in order. snapshot: the newest whole one, "" for none."""

    snapshot: str
    snapshot_lsn: int
    segments: tuple[str, ...]


def find(disk: Disk) -> Found:
    """What files are there. Segments that end before the snapshot are left out."""
    names = disk.names()
    snapshots = sorted(int(found[1]) for name in names if (found := _SNAPSHOT.fullmatch(name)))
    firsts = sorted(int(found[1]) for name in names if (found := _SEGMENT.fullmatch(name)))
    lsn = snapshots[-1] if snapshots else 0
    before = [first for first in firsts if first <= lsn + 1]
    kept = [first for first in firsts if not before or first >= before[-1]]
    return Found(snapshot_name(lsn) if snapshots else "", lsn, tuple(map(segment_name, kept)))


def _is_header(data: memoryview) -> bool:
    if len(data) < HEADER_BYTES or bytes(data[: len(MAGIC)]) != MAGIC:
        return False
    (crc,) = struct.unpack_from("<I", data, _HEADER.size)
    return bool(crc == zlib.crc32(data[: _HEADER.size]))


class Reader:
    """Reads a journal's records in order, and says what is wrong with it.

    After all records were read: `last_lsn`, `epoch` (the newest of a writer), `tail` (what is to be
    cut). Raises JournalError with file and offset for damage.
    """

    def __init__(self, disk: Disk) -> None:
        self.last_lsn = 0
        self.epoch = 0
        self.tail: Tail | None = None
        self._disk = disk
        self._facts: dict[Facts, Facts] = {}

    def records(self) -> Iterator[JournalRecord]:
        """The snapshot's records, each under the lsn of its commit, then those since."""
        return chain.from_iterable(self.groups())

    def groups(self) -> Iterator[Records]:
        """The same, in the groups in which they were written."""
        found = find(self._disk)
        if found.snapshot:
            yield from self._snapshot(found)
        for name in found.segments:
            yield from self._segment(name, name == found.segments[-1])

    def _snapshot(self, found: Found) -> Iterator[Records]:
        data = memoryview(self._disk.read(found.snapshot))
        self._header(found.snapshot, data, found.snapshot_lsn)
        table, offset = FactsTable(known=self._facts), HEADER_BYTES
        while offset < len(data):
            frame = frame_at(data, offset)
            if frame is None:
                raise self._damage(found.snapshot, offset, "a snapshot is whole or not there")
            yield self._decoded(found.snapshot, frame, table)
            offset = frame.end
        self.last_lsn = found.snapshot_lsn

    def _segment(self, name: str, is_last: bool) -> Iterator[Records]:
        data = memoryview(self._disk.read(name))
        named = _SEGMENT.fullmatch(name)
        assert named is not None
        first_lsn = int(named[1])
        if is_last and not _is_header(data) and next_frame(data, 0) is None:
            # Torn when it was made: nothing was written to it before its header was durable.
            self.tail = Tail(name, 0, len(data))
            return
        self._header(name, data, first_lsn)
        if first_lsn > self.last_lsn + 1:
            raise self._damage(name, 0, f"records {self.last_lsn + 1} to {first_lsn - 1} are gone")
        table, offset, expected = FactsTable(known=self._facts), HEADER_BYTES, first_lsn
        while offset < len(data):
            frame = frame_at(data, offset)
            if frame is None:
                self._cut_or_refuse(name, data, offset, expected, is_last)
                return
            if frame.first_lsn != expected:
                raise self._damage(name, offset, f"record {frame.first_lsn} follows {expected - 1}")
            group = self._decoded(name, frame, table)
            if frame.first_lsn <= self.last_lsn:
                group = group[sum(lsn <= self.last_lsn for lsn in group.lsns) :]
            if group:
                yield group
                self.last_lsn = group.lsns[-1]
            offset, expected = frame.end, frame.last_lsn + 1

    def _cut_or_refuse(
        self, name: str, data: memoryview, offset: int, expected: int, is_last: bool
    ) -> None:
        if not is_last:
            raise self._damage(name, offset, "another segment follows")
        behind = next_frame(data, offset + 1)
        while behind is not None:
            if behind.durable_lsn >= expected:
                raise self._damage(
                    name, offset, f"record {expected} was durable: a frame behind it says so"
                )
            behind = next_frame(data, behind.end)
        self.tail = Tail(name, offset, len(data) - offset)

    def _decoded(self, name: str, frame: Frame, table: FactsTable) -> RecordColumns:
        try:
            return decode(frame, table)
        except (FrameError, CodecError) as failure:
            raise self._damage(name, frame.offset, str(failure)) from None

    def _header(self, name: str, data: memoryview, first_lsn: int) -> None:
        if not _is_header(data):
            raise self._damage(name, 0, "its header is not that of a journal")
        _, version, epoch, first, written = _HEADER.unpack_from(data)
        if first != first_lsn:
            raise self._damage(name, 0, f"its header says record {first}")
        if version != 1 or written != schema():
            raise JournalError(
                f"journal {self._disk.place}: {name}: written by a version of Roadstead whose "
                "facts have other fields; that version can read it"
            )
        self.epoch = max(self.epoch, epoch)

    def _damage(self, name: str, offset: int, why: str) -> JournalError:
        return JournalError(
            f"journal {self._disk.place}: {name}: damaged at offset {offset}: {why}; "
            "nothing was changed"
        )

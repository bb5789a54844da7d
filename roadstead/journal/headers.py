"""Files of a journal: their names and headers.

    journal-<first lsn>.segment     records from that lsn on, in frames
    snapshot-<lsn>.snapshot         what stood after that lsn, as records of kind LOAD, in frames

    magic │ format u32 │ epoch u64 │ first lsn u64 │ fields u32 │ crc32 u32 │   as in format 1
    number u64 │ digest before u64 │ crc32 u32                                  since format 2

A segment's header says which segment of the journal it is and with which digest the one before it
ends; a snapshot's, during which segment it was taken and which digest the journal had then. A
segment that is missing, or that belongs to another journal or another place, does not fit.
The first 36 bytes stay as they are, so that any release refuses a newer format by its number.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass

from roadstead.journal.disk import Disk

MAGIC = b"RSJOURN1"
FORMAT = 2
"""What this release writes; it reads format 1, too."""

_PREFIX = struct.Struct("<8sIQQI")
FORMAT_1_HEADER_BYTES = _PREFIX.size + 4
_CHAINED = struct.Struct("<QQ")
HEADER_BYTES = FORMAT_1_HEADER_BYTES + _CHAINED.size + 4
_SEGMENT = re.compile(r"journal-(\d{20})\.segment")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.snapshot")
FINISHED = "finished"
"""The file beside the journal of a run whose output is written."""

NEW_SEGMENT, NEW_SNAPSHOT = "segment.new", "snapshot.new"
"""Files that are not whole yet: they get their name when they are."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first bytes of a file. fields: the checksum of the names of fields.

    number, before: of format 2, see above; of a newer format only the parts of format 1 are known.
    """

    epoch: int
    first_lsn: int
    fields: int
    number: int = 0
    before: int = 0
    format: int = FORMAT

    @property
    def size_bytes(self) -> int:
        return FORMAT_1_HEADER_BYTES if self.format == 1 else HEADER_BYTES

    @property
    def segment(self) -> int:
        """What the file's frames name it by: no other file's."""
        return zlib.crc32(self.encode())

    def encode(self) -> bytes:
        prefix = _PREFIX.pack(MAGIC, FORMAT, self.epoch, self.first_lsn, self.fields)
        prefix += struct.pack("<I", zlib.crc32(prefix))
        data = prefix + _CHAINED.pack(self.number, self.before)
        return data + struct.pack("<I", zlib.crc32(data))


def header_of(data: memoryview) -> Header | None:
    """The header with which a file begins; None where it does not."""
    if len(data) < FORMAT_1_HEADER_BYTES or bytes(data[: len(MAGIC)]) != MAGIC:
        return None
    _, version, epoch, first_lsn, fields = _PREFIX.unpack_from(data)
    if not _is_checked(data, _PREFIX.size):
        return None
    if version != FORMAT:
        return Header(epoch, first_lsn, fields, format=version)
    if len(data) < HEADER_BYTES or not _is_checked(data, HEADER_BYTES - 4):
        return None
    return Header(epoch, first_lsn, fields, *_CHAINED.unpack_from(data, FORMAT_1_HEADER_BYTES))


def _is_checked(data: memoryview, end: int) -> bool:
    (crc,) = struct.unpack_from("<I", data, end)
    return bool(crc == zlib.crc32(data[:end]))


def segment_name(first_lsn: int) -> str:
    return f"journal-{first_lsn:020}.segment"


def snapshot_name(lsn: int) -> str:
    return f"snapshot-{lsn:020}.snapshot"


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a journal, in order. snapshot: the newest whole one, "" for none.

    segments: (name, first lsn)."""

    snapshot: str
    snapshot_lsn: int
    segments: tuple[tuple[str, int], ...]


def find(disk: Disk) -> Found:
    """What files are there. Segments that end before the snapshot are left out."""
    names = disk.names()
    snapshots = sorted(int(found[1]) for name in names if (found := _SNAPSHOT.fullmatch(name)))
    firsts = sorted(int(found[1]) for name in names if (found := _SEGMENT.fullmatch(name)))
    lsn = snapshots[-1] if snapshots else 0
    before = [first for first in firsts if first <= lsn + 1]
    kept = [first for first in firsts if not before or first >= before[-1]]
    segments = tuple((segment_name(first), first) for first in kept)
    return Found(snapshot_name(lsn) if snapshots else "", lsn, segments)

"""Files of a journal: their names and headers.

    journal-<first lsn>.segment     records from that lsn on, in frames
    snapshot-<lsn>.snapshot         the state after that lsn, as records in frames

    magic │ format u32 │ epoch u64 │ first lsn u64 │ fields u32 │ crc32 u32 │   as in format 1
    number u64 │ digest before u64 │ crc32 u32                                  since format 2

A segment's header has the segment's number in the journal and the digest at the end of the segment
before it. A snapshot's header has the number of the segment during which it was taken, and the
digest of the journal then. So a segment that is missing, or that belongs to another journal or
position, is detected. The first 36 bytes never change, so that any release refuses a newer format
by its number.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass

from roadstead.journal.disk import Disk

MAGIC = b"RSJOURN1"
FORMAT = 2
"""The format that this release writes; it reads format 1, too."""

# The two parts of the layout above, without their checksums of 4 bytes.
_PREFIX = struct.Struct("<8sIQQI")
FORMAT_1_HEADER_BYTES = _PREFIX.size + 4
_CHAINED = struct.Struct("<QQ")
HEADER_BYTES = FORMAT_1_HEADER_BYTES + _CHAINED.size + 4
_SEGMENT = re.compile(r"journal-(\d{20})\.segment")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.snapshot")
FINISHED = "finished"
"""This file is next to the journal of a run whose output is written."""

OUTCOME = "outcome"
"""The file with the outcome of a run, next to its journal."""

NEW_SEGMENT, NEW_SNAPSHOT, NEW_OUTCOME = "segment.new", "snapshot.new", "outcome.new"
"""Names of files that are not complete yet; complete files are renamed."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first bytes of a file.

    fields_checksum: of the file's schema. number, digest_before: of the segment, see above (format
    2). Of a newer format only the parts of format 1 are known.
    """

    epoch: int
    first_lsn: int
    fields_checksum: int
    number: int = 0
    digest_before: int = 0
    format: int = FORMAT

    @property
    def size_bytes(self) -> int:
        return FORMAT_1_HEADER_BYTES if self.format == 1 else HEADER_BYTES

    @property
    def file_id(self) -> int:
        """A checksum of the header, which identifies the file in its frames."""
        return zlib.crc32(self.encode())

    def encode(self) -> bytes:
        prefix = _PREFIX.pack(MAGIC, FORMAT, self.epoch, self.first_lsn, self.fields_checksum)
        prefix += struct.pack("<I", zlib.crc32(prefix))
        data = prefix + _CHAINED.pack(self.number, self.digest_before)
        return data + struct.pack("<I", zlib.crc32(data))


def header_of(data: memoryview) -> Header | None:
    """Return the header of a file; None if it does not begin with one."""
    if len(data) < FORMAT_1_HEADER_BYTES or bytes(data[: len(MAGIC)]) != MAGIC:
        return None
    _, version, epoch, first_lsn, fields_checksum = _PREFIX.unpack_from(data)
    if not _has_valid_crc(data, _PREFIX.size):
        return None
    if version != FORMAT:
        return Header(epoch, first_lsn, fields_checksum, format=version)
    if len(data) < HEADER_BYTES or not _has_valid_crc(data, HEADER_BYTES - 4):
        return None
    chained = _CHAINED.unpack_from(data, FORMAT_1_HEADER_BYTES)
    return Header(epoch, first_lsn, fields_checksum, *chained)


def _has_valid_crc(data: memoryview, end: int) -> bool:
    """Whether the checksum at `end` is that of the bytes before it."""
    (crc,) = struct.unpack_from("<I", data, end)
    return bool(crc == zlib.crc32(data[:end]))


def segment_name(first_lsn: int) -> str:
    return f"journal-{first_lsn:020}.segment"


def snapshot_name(lsn: int) -> str:
    return f"snapshot-{lsn:020}.snapshot"


@dataclass(frozen=True, slots=True)
class JournalFiles:
    """The files of a journal, in order. snapshot: the newest one, "" for none.

    segments: (name, first lsn).
    """

    snapshot: str
    snapshot_lsn: int
    segments: tuple[tuple[str, int], ...]


def find_files(disk: Disk) -> JournalFiles:
    """Return the journal's files, without segments whose records the snapshot covers."""
    names = disk.names()
    snapshots = sorted(int(match[1]) for name in names if (match := _SNAPSHOT.fullmatch(name)))
    first_lsns = sorted(int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)))
    lsn = snapshots[-1] if snapshots else 0
    # The last segment that begins up to record lsn + 1 may have records after the snapshot.
    older = [first for first in first_lsns if first <= lsn + 1]
    uncovered = [first for first in first_lsns if not older or first >= older[-1]]
    segments = tuple((segment_name(first), first) for first in uncovered)
    return JournalFiles(snapshot_name(lsn) if snapshots else "", lsn, segments)

"""FrameFile: writes a segment or a snapshot of the journal.

Each frame has the digest of the frames before it; see `frames.py`.
"""

from __future__ import annotations

import errno
import zlib

from roadstead.journal.disk import Disk, DiskFile, append_all
from roadstead.journal.fields import present_fields
from roadstead.journal.frames import (
    MAX_FRAME_BYTES,
    FactsTable,
    FrameKind,
    FramePosition,
    body_of,
    first_digest,
    frame,
)
from roadstead.journal.headers import Header
from roadstead.journal.records import Records


class FrameFile:
    """Append frames to one file. All methods may raise OSError.

    size_bytes: size of the file. durable_bytes: how much of it has been synced. digest: of all
    frames so far.
    """

    def __init__(self, file: DiskFile, file_id: int, digest: int, size_bytes: int) -> None:
        self.size_bytes = self._initial_bytes = size_bytes
        self.durable_bytes = 0
        self.digest = digest
        self._file = file
        self._file_id = file_id
        self._table = FactsTable()

    @classmethod
    def create(
        cls, disk: Disk, name: str, *, epoch: int, first_lsn: int, number: int, digest_before: int
    ) -> FrameFile:
        """Create a file and write its header and its FIELDS frame, the schema of its records.

        number, digest_before: see `Header`.
        """
        # A file that was left by a process which crashed before it renamed the file.
        if name in disk.names():
            disk.remove(name)
        fields = present_fields().encode()
        header = Header(epoch, first_lsn, zlib.crc32(fields), number, digest_before)
        file = cls(disk.create(name), header.file_id, first_digest(header), 0)
        file._write(header.encode())
        file.append(FrameKind.FIELDS, first_lsn, body=fields)
        file._initial_bytes = file.size_bytes
        return file

    @property
    def grown_bytes(self) -> int:
        """Bytes of frames that were appended here, without the FIELDS frame."""
        return self.size_bytes - self._initial_bytes

    def append(self, kind: FrameKind, first_lsn: int, count: int = 0, body: bytes = b"") -> None:
        """Append a frame; it is durable after `sync`."""
        # The durable bytes are in the frame so that a reader can tell damage, which is an error,
        # from a torn end, which is cut off.
        position = FramePosition(self._file_id, self.digest, self.durable_bytes)
        data, digest = frame(kind, first_lsn, count, position, body)
        if len(data) > MAX_FRAME_BYTES:
            # Readers reject longer frames.
            why = f"{count} records take {len(data)} bytes, more than {MAX_FRAME_BYTES}"
            raise OSError(errno.EFBIG, why)
        self._write(data)
        self.digest = digest

    def append_records(self, records: Records) -> None:
        """Append a group of records as one frame."""
        body = body_of(records, self._table)
        self.append(FrameKind.RECORDS, records[0].lsn, len(records), body)

    def _write(self, data: bytes) -> None:
        for written in append_all(self._file, data):
            self.size_bytes += written

    def sync(self) -> None:
        """Make all written bytes durable, and check the size of the file."""
        if self.durable_bytes == self.size_bytes:
            return
        self._file.sync()
        # If a part of a write was lost, no record may be acknowledged.
        size_bytes = self._file.size()
        if size_bytes != self.size_bytes:
            why = f"the file has {size_bytes} bytes, {self.size_bytes} were written"
            raise OSError(errno.EIO, why)
        self.durable_bytes = self.size_bytes

    def close(self) -> None:
        self._file.close()

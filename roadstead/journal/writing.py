"""Writing of a journal file: frame by frame, each with the digest of those before it."""

from __future__ import annotations

import errno
import zlib

from roadstead.journal.disk import Disk, DiskFile
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
    """A file with its header, and the position of its next frame. All methods may raise OSError.

    size_bytes: written so far; durable_bytes: of these, synced; grown_bytes: since its header and
    fields. digest: of all frames so far.
    """

    def __init__(self, file: DiskFile, segment: int, digest: int, size_bytes: int) -> None:
        self.size_bytes = self._began_bytes = size_bytes
        self.durable_bytes = 0
        self.digest = digest
        self._file = file
        self._segment = segment
        self._table = FactsTable()

    @classmethod
    def begun(cls, disk: Disk, name: str, *, epoch: int, first_lsn: int, **place: int) -> FrameFile:
        """Create a file with its header and the fields of its facts; replace an existing one.

        place: number and before, see `Header`.
        """
        if name in disk.names():
            disk.remove(name)
        fields = present_fields().encode()
        header = Header(epoch, first_lsn, zlib.crc32(fields), **place)
        file = cls(disk.create(name), header.segment, first_digest(header), 0)
        file._write(header.encode())
        file.put(FrameKind.FIELDS, first_lsn, body=fields)
        file._began_bytes = file.size_bytes
        return file

    @property
    def grown_bytes(self) -> int:
        return self.size_bytes - self._began_bytes

    def put(self, kind: FrameKind, first_lsn: int, count: int = 0, body: bytes = b"") -> None:
        """Append a frame; not durable yet."""
        position = FramePosition(self._segment, self.digest, self.durable_bytes)
        data, digest = frame(kind, first_lsn, count, position, body)
        if len(data) > MAX_FRAME_BYTES:
            # Readers reject longer frames.
            why = f"{count} records take {len(data)} bytes, more than {MAX_FRAME_BYTES}"
            raise OSError(errno.EFBIG, why)
        self._write(data)
        self.digest = digest

    def records(self, records: Records) -> None:
        """Append a group of records as one frame."""
        body = body_of(records, self._table)
        self.put(FrameKind.RECORDS, records[0].lsn, len(records), body)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            taken = self._file.write(view)
            if taken <= 0:
                raise OSError(errno.EIO, "the file takes no more bytes")
            self.size_bytes += taken
            view = view[taken:]

    def sync(self) -> None:
        """Return when all written bytes are durable; check that the file has them."""
        if self.durable_bytes == self.size_bytes:
            return
        self._file.sync()
        size_bytes = self._file.size()
        if size_bytes != self.size_bytes:
            why = f"the file has {size_bytes} bytes, {self.size_bytes} were written"
            raise OSError(errno.EIO, why)
        self.durable_bytes = self.size_bytes

    def close(self) -> None:
        self._file.close()

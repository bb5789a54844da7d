"""FileJournal: records in files, durable when `flush` returns, read when it is opened.

    open ─► read snapshot and segments ─► cut a torn tail ─► new segment, new epoch ─► append, flush
                                                                      ▲                      │
                                                                      └── segment is full ◄──┤
                                            older files are removed ◄──── snapshot ◄─────────┘

Each opening begins a new segment, under an epoch one higher than any before, so that late writes of
an old writer never mix with new records. A segment is created under another name, and renamed when
its header is durable; only then the segment before it is marked as continued. After the first
failure to write or flush, everything is refused, because it is unknown which bytes are on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from roadstead.journal.disk import Disk
from roadstead.journal.frames import MAX_FRAME_RECORDS, FrameKind
from roadstead.journal.headers import (
    NEW_SEGMENT,
    NEW_SNAPSHOT,
    find_files,
    segment_name,
    snapshot_name,
)
from roadstead.journal.records import JournalError, JournalRecord, Records
from roadstead.journal.segment_end import SegmentEnd, UnreadBytes
from roadstead.journal.segments import Reader
from roadstead.journal.writing import FrameFile

SEGMENT_BYTES = 64 * 1024 * 1024
"""A segment with at least so many bytes is full. Segments are bounded because after a snapshot only
whole segments are removed."""

SNAPSHOT_FRAME_RECORDS = 4096
"""Records in one frame of a snapshot, which are in memory at once while it is written."""


class FileJournal:
    """A journal in a folder. Read all of `recovered()` before the first `append`.

    tail: the torn bytes that were cut when it was opened. written_bytes: bytes of records that were
    written since it was opened. grown_bytes: the same since the last snapshot. syncs: calls of
    fsync for records. last_lsn, durable_lsn: the last record that was appended, and the last that
    was flushed. epoch: number of this opening, one higher than any before.

    Raises JournalError if the folder is in use, damaged, or cannot be written.
    """

    def __init__(self, disk: Disk, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.last_lsn = 0
        self.durable_lsn = 0
        self.epoch = 0
        self.tail: UnreadBytes | None = None
        self.grown_bytes = self.written_bytes = self.syncs = 0
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._file: FrameFile | None = None
        self._name = ""
        self._number = 0
        self._failure = ""
        self._is_open = False
        disk.lock()

    @property
    def disk(self) -> Disk:
        """The folder of the journal."""
        return self._disk

    def recovered(self) -> Iterator[JournalRecord]:
        """Yield the records of earlier processes: those of the snapshot, then every later one.

        When it is exhausted, the journal is open for appending.
        """
        return chain.from_iterable(self.recovered_groups())

    def recovered_groups(self) -> Iterator[Records]:
        """As `recovered`, in the groups in which the records were written."""
        reader = Reader(self._disk)
        yield from reader.groups()
        self.last_lsn = self.durable_lsn = reader.last_lsn
        self.tail = reader.tail
        self.epoch = reader.epoch + 1
        try:
            # A file that is torn from offset 0 on is not cut: the next segment, which has the same
            # name, replaces it.
            if self.tail is not None and self.tail.offset:
                self._disk.cut(self.tail.name, self.tail.offset)
            self._follow(reader)
        except OSError as failure:
            raise self._failed("cannot be opened for writing", failure) from failure
        self._is_open = True

    def _follow(self, reader: Reader) -> None:
        """Begin the segment that follows the records read."""
        # last: the last segment that was read. former: the one that will be before the new segment,
        # and is marked as continued by a CONTINUED frame. Format 1 has no such frame.
        former, last = ([None, None, *reader.ends])[-2:]
        digest_before = 0
        if last is not None and last.header.format == 1:
            self._sync_old(last)
            former = None
        elif last is not None and last.is_empty:
            # The new segment replaces the last one, which has no records, and gets its number;
            # `former` stays the segment before that one.
            self._number, digest_before = last.header.number - 1, last.header.digest_before
        elif last is not None:
            former, self._number, digest_before = last, last.header.number, last.digest
        if former is not None and former.header.format != 1:
            self._name, self._file = former.name, self._reopened(former)
        self._begin_segment(digest_before, is_continued=former is not None and former.is_continued)

    def _sync_old(self, end: SegmentEnd) -> None:
        """Make a segment of format 1 durable: its writer may have been killed before a sync."""
        self._disk.rewrite(end.name, 0)
        file = self._disk.extend(end.name)
        try:
            file.sync()
        finally:
            file.close()

    def _reopened(self, end: SegmentEnd) -> FrameFile:
        """Open a segment of an earlier process and make the part that was read durable."""
        if end.unread is not None:
            self._disk.cut(end.name, end.size_bytes)
        # After a failed sync the system may count bytes as written that are not on disk; a later
        # sync does not write them. So bytes that no frame confirms as durable are written again.
        self._disk.rewrite(end.name, end.confirmed_bytes)
        file = self._disk.extend(end.name)
        reopened = FrameFile(file, end.header.file_id, end.digest, end.size_bytes)
        reopened.sync()
        return reopened

    def _begin_segment(
        self, digest_before: int | None = None, *, is_continued: bool = False
    ) -> None:
        """Begin a segment that follows the present one.

        digest_before: by default that of the present segment. is_continued: the present segment
        has a CONTINUED frame already.
        """
        former = self._file
        if former is not None:
            # The former segment must be durable before the new one, whose header has its digest.
            former.sync()
            digest_before = former.digest if digest_before is None else digest_before
        file = FrameFile.create(
            self._disk,
            NEW_SEGMENT,
            epoch=self.epoch,
            first_lsn=self.last_lsn + 1,
            number=self._number + 1,
            digest_before=digest_before or 0,
        )
        file.sync()
        name = segment_name(self.last_lsn + 1)
        self._disk.rename(NEW_SEGMENT, name)
        if former is not None:
            # A former segment without records had the same name, so the renaming has replaced it.
            if name != self._name and not is_continued:
                former.append(FrameKind.CONTINUED, self.last_lsn + 1)
                former.sync()
            former.close()
        self._file, self._name, self._number = file, name, self._number + 1

    def append(self, records: Records) -> int:
        """Append records in order; return the lsn of the last record of the journal.

        They become one frame, or several of at most MAX_FRAME_RECORDS records each.
        """
        self._check()
        for expected, record in enumerate(records, self.last_lsn + 1):
            if record.lsn != expected:
                raise JournalError(
                    f"journal: record {record.lsn} does not follow record {expected - 1}"
                )
        try:
            for start in range(0, len(records), MAX_FRAME_RECORDS):
                self._write(records[start : start + MAX_FRAME_RECORDS])
        except Exception as failure:
            # A frame that was not written may have added its facts to the file's table, so that
            # later frames would refer to undefined facts.
            raise self._failed("cannot be written", failure) from failure
        return self.last_lsn

    def _write(self, records: Records) -> None:
        assert self._file is not None
        if self._file.grown_bytes >= self._segment_bytes:
            self._sync()
            self._begin_segment()
        size_bytes = self._file.size_bytes
        self._file.append_records(records)
        self.grown_bytes += self._file.size_bytes - size_bytes
        self.written_bytes += self._file.size_bytes - size_bytes
        self.last_lsn = records[-1].lsn

    def flush(self) -> None:
        """Return when all appended records are durable."""
        self._check()
        if self.durable_lsn == self.last_lsn:
            return
        try:
            self._sync()
        except OSError as failure:
            raise self._failed("cannot be flushed", failure) from failure

    def _sync(self) -> None:
        """Make all records durable, then write a FLUSHED frame, which shows that to readers."""
        assert self._file is not None
        self._file.sync()
        self.syncs += 1
        self._file.append(FrameKind.FLUSHED, self.last_lsn + 1)
        self.durable_lsn = self.last_lsn

    def snapshot(self, records: Iterable[JournalRecord]) -> None:
        """Write the records of the current state, then remove all older segments and snapshots.

        These stay if writing fails.
        """
        self.flush()
        try:
            self._write_snapshot(records)
            self._begin_segment()
            self._remove_old()
            self.grown_bytes = 0
        except OSError as failure:
            raise self._failed("cannot take a snapshot", failure) from failure

    def _write_snapshot(self, records: Iterable[JournalRecord]) -> None:
        assert self._file is not None
        self._file.sync()
        file = FrameFile.create(
            self._disk,
            NEW_SNAPSHOT,
            epoch=self.epoch,
            first_lsn=self.last_lsn,
            number=self._number,
            digest_before=self._file.digest,
        )
        try:
            count, remaining = 0, iter(records)
            while group := list(islice(remaining, SNAPSHOT_FRAME_RECORDS)):
                file.append_records(group)
                count += len(group)
            file.append(FrameKind.CLOSED, self.last_lsn + 1, count)
            file.sync()
        finally:
            file.close()
        self._disk.rename(NEW_SNAPSHOT, snapshot_name(self.last_lsn))

    def _remove_old(self) -> None:
        files = find_files(self._disk)
        needed = {files.snapshot, *(name for name, _ in files.segments)}
        for name in self._disk.names():
            if name.endswith((".segment", ".snapshot")) and name not in needed:
                self._disk.remove(name)
        self._disk.sync_names()

    def end(self) -> None:
        """Write a CLOSED frame (the writer shut down cleanly), and release the folder.

        Raises JournalError if that fails; the folder is released all the same.
        """
        try:
            self.flush()
            assert self._file is not None
            self._file.append(FrameKind.CLOSED, self.last_lsn + 1)
            self._file.sync()
        except OSError as failure:
            raise self._failed("cannot be ended", failure) from failure
        finally:
            self.close()

    def close(self) -> None:
        """Release the folder; records that were not flushed may be lost."""
        file, self._file, self._is_open = self._file, None, False
        try:
            # Some file systems report a failed write only here.
            if file is not None:
                file.close()
        finally:
            self._disk.unlock()

    def _check(self) -> None:
        if self._failure:
            raise JournalError(self._failure)
        if not self._is_open:
            raise JournalError(f"journal {self._disk.path}: is not open for appending")

    def _failed(self, what: str, failure: Exception) -> JournalError:
        why = (failure.strerror if isinstance(failure, OSError) else None) or str(failure)
        self._failure = f"journal {self._disk.path}: {what}: {why}; nothing more is acknowledged"
        return JournalError(self._failure)

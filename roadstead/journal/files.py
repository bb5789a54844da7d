"""FileJournal: records in files, durable when `flush` returns, read back when it is opened.

    open ─► read snapshot and segments ─► cut a torn tail ─► new segment, new epoch ─► append, flush
                                                                      ▲                      │
                                                                      └── segment is full ◄──┤
                                                     older files go ◄──── snapshot ◄─────────┘

Each opening begins a segment of its own, under an epoch one higher than any before: what an old
writer may still hold never mixes with what follows. The first failure to write or flush is the
last: what the system kept of it is unknown, so everything after it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from roadstead.journal.disk import Disk, DiskFile
from roadstead.journal.frames import MAX_FRAME_RECORDS, FactsTable, encode
from roadstead.journal.records import JournalError, JournalRecord, Records
from roadstead.journal.segments import Header, Reader, Tail, find, segment_name, snapshot_name

SEGMENT_BYTES = 64 * 1024 * 1024
SNAPSHOT_FRAME_RECORDS = 4096


class FileJournal:
    """A journal in a folder. Read all of `recovered()` before the first `append`.

    grown_bytes: written by this process since it opened the journal or took a snapshot.

    Raises JournalError where the folder is in use, damaged, or cannot be written.
    """

    def __init__(self, disk: Disk, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.last_lsn = 0
        self.durable_lsn = 0
        self.epoch = 0
        self.tail: Tail | None = None
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._file: DiskFile | None = None
        self._written_bytes = 0
        self.grown_bytes = 0
        self._table = FactsTable()
        self._failure = ""
        self._is_open = False
        disk.lock()

    def recovered(self) -> Iterator[JournalRecord]:
        """What earlier runs committed: the snapshot as LOADs, then every record since.

        When it is exhausted the journal is open for appending.
        """
        return chain.from_iterable(self.recovered_groups())

    def recovered_groups(self) -> Iterator[Records]:
        """The same, in the groups in which it was written."""
        reader = Reader(self._disk)
        yield from reader.groups()
        self.last_lsn = self.durable_lsn = reader.last_lsn
        self.tail = reader.tail
        self.epoch = reader.epoch + 1
        try:
            if self.tail is not None:
                self._cut(self.tail)
            self._begin_segment()
        except OSError as failure:
            raise self._failed("cannot be opened for writing", failure) from failure
        self._is_open = True

    def _cut(self, tail: Tail) -> None:
        if tail.offset:
            self._disk.cut(tail.name, tail.offset)
        else:
            self._disk.remove(tail.name)
            self._disk.sync_names()

    def _begin_segment(self) -> None:
        name = segment_name(self.last_lsn + 1)
        if name in self._disk.names():
            # It holds no record: an opening that was followed by none.
            self._disk.remove(name)
        file = self._disk.create(name)
        header = Header(self.epoch, self.last_lsn + 1).encode()
        file.write(header)
        file.sync()
        self._disk.sync_names()
        if self._file is not None:
            self._file.close()
        self._file, self._written_bytes, self._table = file, len(header), FactsTable()

    def append(self, records: Records) -> int:
        """Takes records in order; the lsn of the last one ever taken."""
        self._check()
        for expected, record in enumerate(records, self.last_lsn + 1):
            if record.lsn != expected:
                raise JournalError(
                    f"journal: record {record.lsn} does not follow record {expected - 1}"
                )
        try:
            for start in range(0, len(records), MAX_FRAME_RECORDS):
                self._write(records[start : start + MAX_FRAME_RECORDS])
        except OSError as failure:
            raise self._failed("cannot be written", failure) from failure
        return self.last_lsn

    def _write(self, records: Records) -> None:
        assert self._file is not None
        if self._written_bytes >= self._segment_bytes:
            self._sync()
            self._begin_segment()
        data = encode(records, self.durable_lsn, self._table)
        self._file.write(data)
        self._written_bytes += len(data)
        self.grown_bytes += len(data)
        self.last_lsn = records[-1].lsn

    def flush(self) -> None:
        """Returns when all that was appended is durable."""
        self._check()
        if self.durable_lsn == self.last_lsn:
            return
        try:
            self._sync()
        except OSError as failure:
            raise self._failed("cannot be flushed", failure) from failure

    def _sync(self) -> None:
        assert self._file is not None
        self._file.sync()
        self.durable_lsn = self.last_lsn

    def snapshot(self, standing: Iterable[JournalRecord]) -> None:
        """Replaces all that is durable by what stands now: records of kind LOAD, each once.

        Afterwards older segments and snapshots are removed; a failure before that leaves them.
        """
        self.flush()
        lsn, temporary = self.last_lsn, "snapshot.new"
        try:
            if temporary in self._disk.names():
                self._disk.remove(temporary)
            file = self._disk.create(temporary)
            try:
                self._fill(file, standing, lsn)
            finally:
                file.close()
            self._disk.rename(temporary, snapshot_name(lsn))
            self._begin_segment()
            self._remove_old()
            self.grown_bytes = 0
        except OSError as failure:
            raise self._failed("cannot take a snapshot", failure) from failure

    def _fill(self, file: DiskFile, standing: Iterable[JournalRecord], lsn: int) -> None:
        file.write(Header(self.epoch, lsn).encode())
        table, rest = FactsTable(), iter(standing)
        while group := list(islice(rest, SNAPSHOT_FRAME_RECORDS)):
            file.write(encode(group, lsn, table))
        file.sync()

    def _remove_old(self) -> None:
        found = find(self._disk)
        keep = {found.snapshot, *found.segments}
        for name in self._disk.names():
            if name.endswith((".segment", ".snapshot")) and name not in keep:
                self._disk.remove(name)
        self._disk.sync_names()

    def close(self) -> None:
        """Gives the folder free; what was not flushed may be lost."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._is_open = False
        self._disk.unlock()

    def _check(self) -> None:
        if self._failure:
            raise JournalError(self._failure)
        if not self._is_open:
            raise JournalError(f"journal {self._disk.place}: is not open for appending")

    def _failed(self, what: str, failure: OSError) -> JournalError:
        why = failure.strerror or str(failure)
        self._failure = f"journal {self._disk.place}: {what}: {why}; nothing more is acknowledged"
        return JournalError(self._failure)

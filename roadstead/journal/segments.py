"""Reading of a journal: its snapshot and segments in order, and detection of damage.

Files consist of frames (frames.py). A frame is *broken* if it is incomplete, its checksum is
wrong, or it has not the digest of the frames before it (a hash over all of them). Each frame states
how many bytes of the file had been flushed to disk before it was written, and so confirms them as
durable. A CLOSED frame ends a journal whose writer shut down cleanly, a CONTINUED frame ends a
segment that has a successor. Each finding, and its result:

    only whole frames                                 read
    a broken frame in the last segment, at bytes
    that no later frame confirms as durable           torn: `tail`, which FileJournal cuts off,
                                                      since it was never acknowledged
    a broken frame at bytes that a later one
    confirms as durable                               damaged: refused, with file and offset
    a broken frame in a file before the last          damaged, unless it is a torn CONTINUED, which
                                                      has no records: then the next segment's header
                                                      has the digest of the frames before it
    a frame, segment or snapshot that does not
    follow the one before it, or a missing segment
    that another one refers to                        damaged
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from roadstead.journal import format_1, frames
from roadstead.journal.columns import RecordColumns
from roadstead.journal.disk import Disk
from roadstead.journal.fields import Facts, Fields, FieldsError, builder_of
from roadstead.journal.frames import (
    FactsTable,
    Frame,
    FrameError,
    FrameKind,
    decode,
    first_digest,
    later_frames,
)
from roadstead.journal.headers import (
    FORMAT,
    FORMAT_1_HEADER_BYTES,
    Header,
    JournalFiles,
    find_files,
    header_of,
    segment_name,
)
from roadstead.journal.records import JournalError, JournalRecord, Records
from roadstead.journal.segment_end import Closed, DamagedError, SegmentEnd, UnreadBytes
from roadstead.protocol.plain_data import CodecError


class Reader:
    """Read a journal's records in order, and detect damage.

    last_lsn: valid after all records were read. epoch: the highest of any writer. tail: torn bytes,
    to be cut off. closed: the end, if the writer shut down cleanly. ends: where each segment ends.

    stops_at_damage: reading ends at damage, and `damage` has its position. Otherwise damage raises
    JournalError with file and offset. A journal of a format or schema that this release cannot read
    raises it in both cases.
    """

    def __init__(self, disk: Disk, *, stops_at_damage: bool = False) -> None:
        self.last_lsn = 0
        self.epoch = 0
        self.tail: UnreadBytes | None = None
        self.damage: UnreadBytes | None = None
        self.closed: Closed | None = None
        self.ends: list[SegmentEnd] = []
        self._snapshot_header: Header | None = None
        self._disk = disk
        self._stops_at_damage = stops_at_damage
        # The facts of all files, each as key and value (`FactsTable.known`).
        self._known_facts: dict[Facts, Facts] = {}

    def records(self) -> Iterator[JournalRecord]:
        """Yield the records of the snapshot, then all later records."""
        return chain.from_iterable(self.groups())

    def groups(self) -> Iterator[Records]:
        """As `records`, in the groups in which they were written."""
        files = _files_of(self._disk)
        try:
            if files.snapshot:
                yield from self._snapshot(files)
            for number, (name, first_lsn) in enumerate(files.segments, 1):
                yield from self._segment(name, first_lsn, number == len(files.segments))
            self._check_end()
        except DamagedError as damaged:
            if not self._stops_at_damage:
                unread = damaged.unread
                where = f"{unread.name}: damaged at offset {unread.offset}"
                text = f"{where}: {unread.why}; nothing was changed"
                raise JournalError(f"journal {self._disk.path}: {text}") from None
            self.damage = damaged.unread

    def _snapshot(self, files: JournalFiles) -> Iterator[Records]:
        name, data = files.snapshot, self._read(files.snapshot)
        header = self._header(name, data, files.snapshot_lsn)
        if header is None:
            raise self._damaged(name, 0, data, "its header is not that of a journal")
        end = SegmentEnd(name, header, header.size_bytes, first_digest(header), header.first_lsn)
        table, count = self._format_1_table(name, header), 0
        # Format 1 has no CLOSED frame. In format 2 it is the last one, with the number of records.
        is_complete = header.format == 1
        while end.size_bytes < len(data):
            frame = _frame_at(data, end)
            if frame is None or (is_complete and header.format != 1):
                raise self._damaged(name, end.size_bytes, data, _PARTIAL)
            if frame.kind is FrameKind.FIELDS:
                table = self._table(name, _decoded_fields(frame))
            elif frame.kind is FrameKind.RECORDS:
                group = self._decoded(end, data, frame, table)
                count += len(group)
                yield group
            else:
                last_frame = frame.kind, frame.count, frame.first_lsn
                is_complete = last_frame == (FrameKind.CLOSED, count, files.snapshot_lsn + 1)
            end.size_bytes, end.digest = frame.end, frame.digest_after
        if not is_complete:
            raise self._damaged(name, end.size_bytes, data, _PARTIAL)
        self.last_lsn = files.snapshot_lsn
        self._snapshot_header = header

    def _segment(self, name: str, first_lsn: int, is_last: bool) -> Iterator[Records]:
        data = self._read(name)
        header = self._header(name, data, first_lsn)
        if header is None:
            self._accept_without_header(name, data, is_last)
            return
        self._check_unread(header)
        if first_lsn > self.last_lsn + 1:
            gone = f"records {self.last_lsn + 1} to {first_lsn - 1} are gone"
            raise self._damaged(name, 0, data, gone)
        if header.format != 1:
            self._check_position(name, data, header)
        self.closed = None
        end = SegmentEnd(name, header, header.size_bytes, first_digest(header), first_lsn)
        self.ends.append(end)
        table = self._format_1_table(name, header)
        while end.size_bytes < len(data):
            frame = _frame_at(data, end)
            if frame is None:
                self._accept_broken(data, end, is_last)
                return
            if frame.first_lsn != end.next_lsn:
                why = f"record {frame.first_lsn} follows {end.next_lsn - 1}"
                raise self._damaged(name, end.size_bytes, data, why)
            if end.is_continued:
                raise self._damaged(name, end.size_bytes, data, "it has a frame after CONTINUED")
            if frame.kind is FrameKind.RECORDS:
                yield from self._after_snapshot(self._decoded(end, data, frame, table))
                end.next_lsn = frame.last_lsn + 1
            elif frame.kind is FrameKind.FIELDS:
                table = self._table(name, _decoded_fields(frame))
            self._extend(end, frame)

    def _extend(self, end: SegmentEnd, frame: Frame) -> None:
        """Include a frame in what was read of a segment.

        `end.digest` does not include a CONTINUED frame: the writer creates the next segment, whose
        header has that digest, before it appends CONTINUED to this one.
        """
        end.size_bytes = frame.end
        end.confirmed_bytes = frame.position.durable_bytes if frame.position is not None else 0
        if frame.kind is FrameKind.CONTINUED:
            end.is_continued = True
            return
        end.digest = frame.digest_after
        is_closed = frame.kind is FrameKind.CLOSED and frame.position is not None
        self.closed = Closed(frame.first_lsn - 1, frame.digest_after) if is_closed else None

    def _after_snapshot(self, group: RecordColumns) -> Iterator[Records]:
        """Yield the records of a group that the snapshot does not cover."""
        if group.lsns[0] <= self.last_lsn:
            group = group[sum(lsn <= self.last_lsn for lsn in group.lsns) :]
        if group:
            yield group
            self.last_lsn = group.lsns[-1]

    def _accept_without_header(self, name: str, data: memoryview, is_last: bool) -> None:
        """Accept a file without a header if it is a torn file of format 1; else it is damaged."""
        former = self.ends[-1].header if self.ends else self._snapshot_header
        follows_format_1 = former is None or former.format == 1
        is_next = is_last and name == segment_name(self.last_lsn + 1)
        if is_next and follows_format_1 and len(data) <= FORMAT_1_HEADER_BYTES:
            # Records were written only after the header was durable, so none is lost.
            self.tail = UnreadBytes(name, 0, len(data), self.last_lsn + 1, "a torn header", False)
            return
        raise self._damaged(name, 0, data, "its header is not that of a journal")

    def _check_unread(self, header: Header) -> None:
        """Raise if the unread bytes of the segment before this one were more than a torn CONTINUED.

        header: of this segment. Any other frame among those bytes is part of its `digest_before`,
        which then differs from the digest of the frames that were read.
        """
        former = self.ends[-1] if self.ends else None
        if (
            former is not None
            and former.unread is not None
            and header.digest_before != former.digest
        ):
            raise DamagedError(former.unread)

    def _check_position(self, name: str, data: memoryview, header: Header) -> None:
        """Raise unless the header has the number and the `digest_before` of the next segment."""
        snapshot, former = self._snapshot_header, self.ends[-1] if self.ends else None
        if former is not None and former.header.format != 1:
            number, digest_before = former.header.number + 1, former.digest
        elif former is None and snapshot is not None and snapshot.format != 1:
            if header.number == snapshot.number:
                # The snapshot was taken during this segment. The segment before, whose digest this
                # header has, is not read any more, so there is nothing to compare it with.
                return
            # This segment was begun when the snapshot was complete, so it has the same digest.
            number, digest_before = snapshot.number + 1, snapshot.digest_before
        else:
            # The first segment of the journal, or the first after those of format 1.
            number, digest_before = 1, 0
        if header.number != number:
            why = f"it is segment {header.number} of its journal, segment {number} is missing"
            raise self._damaged(name, 0, data, why)
        if header.digest_before != digest_before:
            why = (
                "it does not continue the segment before it: records are missing, or belong to "
                "another journal"
            )
            raise self._damaged(name, 0, data, why)

    def _accept_broken(self, data: memoryview, end: SegmentEnd, is_last: bool) -> None:
        """Accept bytes that are no valid next frame if they may be torn; else they are damaged."""
        offset, file_id = end.size_bytes, end.header.file_id
        unread = self._unread(end.name, offset, data, "another segment follows")
        if not is_last and end.header.format == 1:
            raise DamagedError(unread)
        if not is_last:
            # A torn CONTINUED at the end of a segment with a successor loses nothing. The digest in
            # the successor's header shows whether the bytes are one (`_check_unread`).
            end.unread = unread
            return
        # MARK: the bytes with which a frame of the format begins.
        layout = format_1 if end.header.format == 1 else frames
        # The search begins at `offset` itself. If a whole frame is there, it was not accepted as
        # the next one because of its digest: frames that were written before it are missing.
        for later in later_frames(data, offset, layout.frame_at, layout.MARK):
            if later.confirms(offset, end.next_lsn, file_id):
                why = f"record {end.next_lsn} was durable: a frame after it shows that"
                if end.header.format != 1:
                    why = f"bytes there were durable: the frame at offset {later.offset} shows that"
                raise self._damaged(end.name, offset, data, why)
        self.tail = self._unread(end.name, offset, data, "a torn end", was_durable=False)

    def _check_end(self) -> None:
        """Raise if a segment that must exist is missing."""
        end, snapshot = self.ends[-1] if self.ends else None, self._snapshot_header
        if end is None and snapshot is not None and snapshot.format != 1:
            first_lsn = self.last_lsn + 1
        elif end is not None and end.is_continued:
            first_lsn = end.next_lsn
        else:
            return
        name = segment_name(first_lsn)
        raise DamagedError(UnreadBytes(name, 0, 0, first_lsn, "the segment is missing"))

    def _read(self, name: str) -> memoryview:
        try:
            return memoryview(self._disk.read(name))
        except OSError as failure:
            raise _unread_file(self._disk, name, failure) from failure

    def _decoded(
        self, end: SegmentEnd, data: memoryview, frame: Frame, table: FactsTable | None
    ) -> RecordColumns:
        """Return the records of a frame; facts that the frame defines are added to the table.

        table: the schema of the file, and the facts that its earlier frames defined; None before
        the FIELDS frame.
        """
        if table is None:
            raise self._damaged(end.name, frame.offset, data, "it lists no fields")
        try:
            return decode(frame, table)
        except (FrameError, CodecError) as failure:
            raise self._damaged(end.name, frame.offset, data, str(failure)) from None

    def _header(self, name: str, data: memoryview, first_lsn: int) -> Header | None:
        """Return the header of a file; None if it has none. Raise if it is that of another file."""
        header = header_of(data)
        if header is None:
            return None
        if not 1 <= header.format <= FORMAT:
            raise self._unreadable(
                name,
                f"written in format {header.format} by a newer release of Roadstead, which can "
                f"read it; this one reads formats 1 to {FORMAT}",
            )
        if header.first_lsn != first_lsn:
            why = f"its header says that it starts at record {header.first_lsn}"
            raise self._damaged(name, 0, data, why)
        self.epoch = max(self.epoch, header.epoch)
        return header

    def _format_1_table(self, name: str, header: Header) -> FactsTable | None:
        """Return the table for a file of format 1, which does not name its fields; else None."""
        if header.format != 1:
            return None
        fields = format_1.fields_of(header.fields_checksum)
        if fields is None:
            raise self._unreadable(
                name,
                "written by a release of Roadstead whose facts have other fields; that release "
                "can read it",
            )
        return self._table(name, fields)

    def _table(self, name: str, fields: Fields | None) -> FactsTable:
        """Return a table without facts for a file. fields: its schema, None if it is invalid."""
        if fields is None:
            raise self._unreadable(name, "its fields make no sense")
        try:
            return FactsTable(builder_of(fields), known=self._known_facts)
        except FieldsError as unknown:
            raise self._unreadable(name, f"written by another release: {unknown}") from None

    def _unreadable(self, name: str, why: str) -> JournalError:
        return JournalError(f"journal {self._disk.path}: {name}: {why}; nothing was changed")

    def _damaged(self, name: str, offset: int, data: memoryview, why: str) -> DamagedError:
        return DamagedError(self._unread(name, offset, data, why))

    def _unread(
        self, name: str, offset: int, data: memoryview, why: str, *, was_durable: bool = True
    ) -> UnreadBytes:
        size_bytes = len(data) - offset
        return UnreadBytes(name, offset, size_bytes, self.last_lsn + 1, why, was_durable)


_PARTIAL = "a snapshot is incomplete, which a torn write cannot explain"
"""The reason why it is damage: a snapshot gets its name only when it is complete and durable."""


def _decoded_fields(frame: Frame) -> Fields | None:
    """Return the schema in a FIELDS frame; None if it is not one."""
    try:
        return Fields.decode(bytes(frame.body))
    except CodecError:
        return None


def _frame_at(data: memoryview, end: SegmentEnd) -> Frame | None:
    """Return the next frame of a file; None if there is none, or one that does not follow."""
    if end.header.format == 1:
        return format_1.frame_at(data, end.size_bytes)
    frame = frames.frame_at(data, end.size_bytes)
    if frame is None or frame.position is None:
        return None
    position = frame.position
    is_next = (position.file_id, position.digest_before) == (end.header.file_id, end.digest)
    return frame if is_next else None


def _files_of(disk: Disk) -> JournalFiles:
    """Return the journal's files. JournalError if the folder cannot be read."""
    try:
        return find_files(disk)
    except OSError as failure:
        raise JournalError(f"journal {disk.path}: cannot be read: {failure.strerror}") from failure


def _unread_file(disk: Disk, name: str, failure: OSError) -> JournalError:
    return JournalError(f"journal {disk.path}: {name}: cannot be read: {failure.strerror}")


def is_closed(disk: Disk) -> bool:
    """Whether the last segment ends with a CLOSED frame: its writer shut down cleanly.

    JournalError if it cannot be read.
    """
    segments = _files_of(disk).segments
    if not segments:
        return False
    name, size_bytes = segments[-1][0], frames.HEAD_BYTES
    try:
        # A CLOSED frame has no body, so it is as long as the head of a frame.
        end = disk.read_part(name, max(0, disk.size(name) - size_bytes), size_bytes)
    except OSError as failure:
        raise _unread_file(disk, name, failure) from failure
    last = frames.frame_at(memoryview(end), 0)
    return last is not None and last.kind is FrameKind.CLOSED

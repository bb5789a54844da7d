"""Files that no present writer leaves, and files that one may leave, as a reader reads them."""

import pytest

from roadstead.journal import JournalError, RecordKind
from roadstead.journal.frames import FrameKind
from roadstead.journal.headers import (
    FORMAT_1_HEADER_BYTES,
    HEADER_BYTES,
    segment_name,
    snapshot_name,
)
from roadstead.journal.segments import Reader
from roadstead.journal.writing import FrameFile
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_damage import finished, read
from tests.journal.test_files import only_segment, opened, record, records, spoil, written
from tests.journal.test_formats import FORMAT_1, disk_of


def crafted(disk, name, *, first_lsn=1, number=1, digest_before=0):
    """A file of a journal, to be written frame by frame."""
    file = FrameFile.create(
        disk, "new", epoch=1, first_lsn=first_lsn, number=number, digest_before=digest_before
    )
    disk.rename("new", name)
    return file


def with_snapshot():
    """A journal with a snapshot of its first three records, and three more after it."""
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.snapshot([record(lsn, RecordKind.LOAD) for lsn in (1, 2, 3)])
    journal.append(records(4, 6))
    journal.end()
    return disk


def test_a_group_removed_before_the_mark_of_its_flush_is_damage():
    """The mark is at the position of the group: it is valid, and shows that more bytes were
    durable.
    """
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    name = only_segment(disk)
    start = len(disk.contents[name])
    journal.append(records(1, 3))
    end = len(disk.contents[name])
    journal.flush()
    journal.close()
    disk.contents[name] = disk.contents[name][:start] + disk.contents[name][end:]

    with pytest.raises(JournalError, match=f"damaged at offset {start}: bytes there were durab"):
        opened(disk)


def test_bytes_inserted_before_a_frame_that_confirms_them_are_damage():
    disk = SimulatedDisk(short_writes=0)
    written(disk, records(1, 3), records(4, 6))
    name = only_segment(disk)
    disk.contents[name] = disk.contents[name][:HEADER_BYTES] + b"x" + disk.contents[name][-45:]

    with pytest.raises(JournalError, match=f"damaged at offset {HEADER_BYTES}: bytes there were"):
        opened(disk)


@pytest.mark.parametrize("size_bytes", [0, 10, FORMAT_1_HEADER_BYTES])
def test_a_segment_without_a_header_after_a_snapshot_is_damage(size_bytes):
    """The file got its name after its header was durable."""
    disk = with_snapshot()
    name = segment_name(4)
    disk.contents[name] = disk.contents[name][:size_bytes]

    with pytest.raises(JournalError, match=f"{name}: damaged at offset 0: its header is not"):
        opened(disk)


def test_a_short_file_after_a_segment_is_damage():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    disk.contents[segment_name(4)] = b"short"

    with pytest.raises(JournalError, match="damaged at offset 0: its header is not"):
        opened(disk)


def test_a_torn_first_header_of_format_1_leaves_an_empty_journal():
    for size_bytes, opens in ((FORMAT_1_HEADER_BYTES, True), (FORMAT_1_HEADER_BYTES + 1, False)):
        disk = SimulatedDisk()
        disk.contents = {segment_name(1): bytes(size_bytes)}
        disk.durable = {segment_name(1): size_bytes}
        _, reader = read(disk)
        assert (reader.damage is None) is opens
        if opens:
            journal, found = opened(disk)
            assert (found, journal.tail.lsn, journal.tail.size_bytes) == ([], 1, size_bytes)
            journal.append(records(1, 2))
            journal.end()
            assert opened(disk)[1] == records(1, 2)


def test_a_torn_header_of_format_1_after_missing_records_is_damage():
    disk = disk_of(FORMAT_1 / "run" / "journal")
    disk.contents[segment_name(25)] = b"torn"

    with pytest.raises(JournalError, match="damaged at offset 0: its header is not"):
        opened(disk)


def followed_format_1():
    """A journal of format 1 that a later life continued."""
    disk = disk_of(FORMAT_1 / "run" / "journal")
    journal, _ = opened(disk)
    journal.append(records(20, 21))
    journal.end()
    return disk


def test_a_short_file_that_others_follow_is_damage_in_format_1_too():
    disk = followed_format_1()
    disk.contents[segment_name(1)] = b"short"

    with pytest.raises(JournalError, match="damaged at offset 0: its header is not"):
        opened(disk)


def test_damage_at_the_end_of_a_followed_segment_of_format_1_is_refused():
    disk = followed_format_1()
    name = segment_name(1)
    disk.contents[name] = disk.contents[name][:-7]

    with pytest.raises(JournalError, match=f"{name}: damaged at .* another segment follows"):
        opened(disk)


def test_a_snapshot_of_format_1_needs_no_segment_after_it():
    disk = disk_of(FORMAT_1 / "snapshot")
    disk.remove(segment_name(17))

    journal, found = opened(disk)

    assert [each.kind for each in found].count("load") == 2
    assert journal.last_lsn == 16


@pytest.mark.parametrize("lost_bytes", [1, 20, 45])
def test_the_last_frame_of_a_followed_segment_may_be_torn(lost_bytes):
    disk = SimulatedDisk(short_writes=0)
    written(disk, records(1, 3))
    written(disk, records(4, 6))
    name = segment_name(1)
    disk.contents[name] = disk.contents[name][:-lost_bytes]

    journal, found = opened(disk)
    journal.append(records(7, 8))
    journal.end()

    assert found == records(1, 6)
    assert opened(disk)[1] == records(1, 8)


def test_a_torn_last_frame_of_a_followed_segment_is_written_again():
    disk = SimulatedDisk(short_writes=0)
    written(disk, records(1, 3))
    opened(disk)[0].close()
    name = segment_name(1)
    whole = disk.contents[name]
    disk.contents[name] = whole[:-20]
    assert opened(disk)[1] == records(1, 3)
    disk.unlock()

    disk.remove(segment_name(4))

    assert len(disk.contents[name]) == len(whole)
    with pytest.raises(JournalError, match="the segment is missing"):
        opened(disk)


def test_the_segment_around_a_snapshot_is_read_from_the_snapshot_on():
    """The machine stopped before the next segment began."""
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    for first, last in ((1, 1), (2, 4), (5, 5)):
        journal.append(records(first, last))
    rename = disk.rename

    def fails(name, to):
        if name == "segment.new":
            raise OSError(5, "Input/output error")
        rename(name, to)

    disk.rename = fails
    with pytest.raises(JournalError, match="cannot take a snapshot"):
        journal.snapshot([record(5, RecordKind.LOAD)])
    journal.close()
    disk.rename = rename
    assert disk.names() == [segment_name(1), "segment.new", snapshot_name(5)]

    journal, found = opened(disk)
    journal.append(records(6, 7))
    journal.end()

    assert found == [record(5, RecordKind.LOAD)]
    assert opened(disk)[1] == [*found, *records(6, 7)]


def test_one_missing_record_between_segments_is_reported():
    disk = SimulatedDisk()
    for lsn in (1, 2, 3):
        written(disk, records(lsn, lsn))
    disk.remove(segment_name(2))

    with pytest.raises(JournalError, match="records 2 to 2 are gone"):
        opened(disk)


def test_a_missing_segment_after_a_snapshot_was_durable():
    disk = with_snapshot()
    disk.remove(segment_name(4))

    _, reader = read(disk)

    assert (reader.damage.name, reader.damage.lsn) == (segment_name(4), 4)
    assert reader.damage.was_durable


@pytest.mark.parametrize("size_bytes", [HEADER_BYTES, HEADER_BYTES + 10])
def test_a_journal_whose_last_segment_lost_its_frames_did_not_end_properly(size_bytes):
    disk = finished()
    opened(disk)[0].close()
    name = max(disk.names())
    disk.contents[name] = disk.contents[name][:size_bytes]

    _, reader = read(disk)

    assert reader.closed is None


def test_a_skipped_number_within_a_segment_is_damage():
    disk = SimulatedDisk(short_writes=0)
    file = crafted(disk, segment_name(1))
    file.append_records(records(1, 2))
    file.append_records(records(4, 5))

    with pytest.raises(JournalError, match=r"damaged at .*: record 4 follows 2"):
        list(Reader(disk).records())


def test_bytes_after_the_last_frame_of_a_followed_segment_are_damage():
    disk = SimulatedDisk(short_writes=0)
    file = crafted(disk, segment_name(1))
    file.append_records(records(1, 2))
    before = file.digest
    file.append(FrameKind.CONTINUED, 3)
    file.digest = before
    file.append_records(records(3, 3))

    with pytest.raises(JournalError, match=r"damaged at .*: it has a frame after CONTINUED"):
        list(Reader(disk).records())


@pytest.mark.parametrize(
    ("behind", "why"), [(3, "the segment is missing"), (4, "a snapshot is incomplete")]
)
def test_a_snapshot_ends_with_the_number_of_the_record_after_it(behind, why):
    disk = SimulatedDisk(short_writes=0)
    crafted(disk, snapshot_name(2), first_lsn=2).append(FrameKind.CLOSED, behind)

    with pytest.raises(JournalError, match=why):
        list(Reader(disk).records())


def test_a_segment_with_another_number_is_damage_and_names_the_missing_one():
    disk = SimulatedDisk(short_writes=0)
    file = crafted(disk, segment_name(1))
    file.append_records(records(1, 2))
    crafted(disk, segment_name(3), first_lsn=3, number=3, digest_before=file.digest)

    with pytest.raises(JournalError, match="segment 3 of its journal, segment 2 is missing"):
        list(Reader(disk).records())


@pytest.mark.parametrize(("number", "is_refused"), [(4, False), (5, False), (3, True), (6, True)])
def test_a_snapshot_is_followed_by_its_own_segment_or_the_next(number, is_refused):
    disk = SimulatedDisk(short_writes=0)
    snapshot = crafted(disk, snapshot_name(2), first_lsn=2, number=4, digest_before=77)
    snapshot.append(FrameKind.CLOSED, 3)
    crafted(disk, segment_name(3), first_lsn=3, number=number, digest_before=77).append_records(
        records(3, 4)
    )

    found, reader = read(disk)

    assert (reader.damage is not None) is is_refused
    assert found == ([] if is_refused else records(3, 4))


def test_no_segment_of_another_journal_is_read_after_a_snapshot():
    disk = SimulatedDisk(short_writes=0)
    snapshot = crafted(disk, snapshot_name(2), first_lsn=2, number=4, digest_before=77)
    snapshot.append(FrameKind.CLOSED, 3)
    crafted(disk, segment_name(3), first_lsn=3, number=5, digest_before=78).append_records(
        records(3, 4)
    )

    with pytest.raises(JournalError, match="it does not continue the segment before it"):
        list(Reader(disk).records())


@pytest.mark.parametrize(
    ("ends", "is_whole"),
    [
        ([(FrameKind.CLOSED, 2)], True),
        ([(FrameKind.CLOSED, 3)], False),
        ([(FrameKind.FLUSHED, 2)], False),
        ([(FrameKind.CLOSED, 2), (FrameKind.CLOSED, 2)], False),
        ([], False),
    ],
)
def test_a_complete_snapshot_ends_once_with_its_number_of_records(ends, is_whole):
    disk = SimulatedDisk(short_writes=0)
    snapshot = crafted(disk, snapshot_name(2), first_lsn=2)
    in_snapshot = [record(lsn, RecordKind.LOAD) for lsn in (1, 2)]
    for each in in_snapshot:
        snapshot.append_records([each])
    for kind, count in ends:
        snapshot.append(kind, 3, count)
    crafted(disk, segment_name(3), first_lsn=3, number=1)

    found, reader = read(disk)

    assert found == in_snapshot
    assert (reader.damage is None) is is_whole


def test_frames_of_another_file_do_not_belong_to_a_segment():
    disk = SimulatedDisk(short_writes=0)
    file = crafted(disk, segment_name(1))
    file.append_records(records(1, 2))
    size_bytes = file.size_bytes
    other = FrameFile(disk.extend(segment_name(1)), 99, file.digest, size_bytes)
    other.append_records(records(3, 4))

    found, reader = read(disk)

    assert (found, reader.tail.offset) == (records(1, 2), size_bytes)


def test_a_snapshot_with_invalid_fields_is_refused():
    disk = with_snapshot()
    spoil(disk, snapshot_name(3), HEADER_BYTES + 60)

    with pytest.raises(JournalError, match="a snapshot is incomplete"):
        opened(disk)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (FrameKind.FIELDS, b"nonsense", "its fields make no sense; nothing was changed"),
        (FrameKind.RECORDS, b"nonsense", r"damaged at offset \d+: .*msgpack"),
    ],
)
def test_a_frame_with_an_invalid_body_is_refused(kind, body, text):
    disk = SimulatedDisk(short_writes=0)
    crafted(disk, segment_name(1)).append(kind, 1, 1, body)

    with pytest.raises(JournalError, match=text):
        list(Reader(disk).records())


def test_records_of_a_file_without_declared_fields_are_refused(monkeypatch):
    disk = SimulatedDisk(short_writes=0)
    append = FrameFile.append

    def without_fields(file, kind, *args, **named):
        if kind is not FrameKind.FIELDS:
            append(file, kind, *args, **named)

    monkeypatch.setattr(FrameFile, "append", without_fields)
    crafted(disk, segment_name(1)).append_records(records(1, 1))

    with pytest.raises(JournalError, match="it lists no fields"):
        list(Reader(disk).records())

"""Missing bytes at a journal's end, or anywhere in it, are detected and distinguished from torn
writes.
"""

import struct
import zlib

import pytest

from roadstead.journal import JournalError, frames
from roadstead.journal.files import FileJournal
from roadstead.journal.segment_end import Closed
from roadstead.journal.segments import Reader, is_closed
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import opened, record, records, spoil, written


def finished(groups=6, segment_bytes=500):
    """A journal of some segments whose writer closed it properly."""
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk, segment_bytes=segment_bytes)
    for first in range(1, 3 * groups, 3):
        journal.append(records(first, first + 2))
        journal.flush()
    journal.end()
    return disk


def read(disk):
    reader = Reader(disk, stops_at_damage=True)
    return list(reader.records()), reader


def copy_of(disk):
    copy = SimulatedDisk()
    copy.contents = dict(disk.contents)
    return copy


def is_noticed(disk, whole):
    """Whether a reader reports damage, or has read all records."""
    try:
        found, reader = read(disk)
    except JournalError:
        return True
    return reader.damage or reader.tail or reader.closed is None or found == whole


def test_a_closed_journal_has_its_number_of_records_and_digest():
    _, first = read(finished())
    _, again = read(finished())
    _, other = read(finished(groups=5))

    assert first.closed == again.closed == Closed(18, first.closed.digest)
    assert other.closed.records == 15
    assert other.closed.digest != first.closed.digest


def test_any_changed_byte_in_a_closed_journal_is_detected():
    disk = finished()
    whole = records(1, 18)
    assert len(disk.names()) > 2

    for name, data in disk.contents.items():
        for offset in range(0, len(data), 5):
            copy = copy_of(disk)
            spoil(copy, name, offset)
            assert is_noticed(copy, whole), f"the change of {name} at {offset} is detected"


def test_a_closed_journal_cut_anywhere_is_detected():
    disk = finished()
    last = max(disk.names())

    for size in range(0, len(disk.contents[last]), 17):
        copy = copy_of(disk)
        copy.contents[last] = copy.contents[last][:size]
        assert is_noticed(copy, None), f"the cut at {size} is detected"


def test_no_record_confirmed_by_a_flush_is_omitted_undetected():
    """The run was killed: there is no end record, but a mark after every flush."""
    disk = SimulatedDisk(short_writes=0)
    written(disk, records(1, 3), records(4, 6), records(7, 9))
    (name,) = disk.names()
    whole = disk.contents[name]
    mark_bytes = 45

    for offset in range(0, len(whole), 3):
        copy = copy_of(disk)
        spoil(copy, name, offset)
        found, reader = read(copy)
        if offset < len(whole) - mark_bytes:
            assert reader.damage.was_durable, f"the damage at {offset} is reported as durable"
        else:
            assert (found, reader.tail.was_durable) == (records(1, 9), False)


def test_a_torn_group_after_the_last_mark_is_no_damage_and_has_an_offset():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.flush()
    (name,) = disk.names()
    flushed = len(disk.contents[name])
    journal.append(records(4, 6))
    disk.contents[name] = disk.contents[name][:-7]

    found, reader = read(disk)

    assert found == records(1, 3)
    assert reader.damage is None
    assert (reader.tail.name, reader.tail.offset, reader.tail.lsn) == (name, flushed, 4)
    assert str(reader.tail).startswith(f"{name}: a torn end; left out from offset {flushed}: ")


def test_any_missing_segment_is_detected_and_named():
    disk = finished()
    for name in disk.names():
        copy = copy_of(disk)
        copy.remove(name)

        _, reader = read(copy)

        assert reader.damage is not None
        if name == max(disk.names()):
            assert (reader.damage.name, reader.damage.why) == (name, "the segment is missing")


def test_a_lost_segment_of_a_killed_and_resumed_run_is_detected():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    written(disk, records(4, 6))
    disk.remove(max(disk.names()))

    with pytest.raises(JournalError, match="the segment is missing; nothing was changed"):
        opened(disk)


def test_a_snapshot_without_its_next_segment_is_detected():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.snapshot([])
    journal.append(records(4, 6))
    journal.end()
    disk.remove("journal-00000000000000000004.segment")

    with pytest.raises(JournalError, match="the segment is missing"):
        opened(disk)


def test_a_snapshot_cut_between_its_frames_is_detected():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.snapshot(records(1, 3))
    journal.close()
    name = next(name for name in disk.names() if name.endswith(".snapshot"))
    disk.contents[name] = disk.contents[name][:-45]

    with pytest.raises(JournalError, match="a snapshot is incomplete"):
        opened(disk)


def test_swapped_segments_are_detected():
    disk = finished()
    first, second, *_ = disk.names()
    disk.contents[first], disk.contents[second] = disk.contents[second], disk.contents[first]

    with pytest.raises(JournalError, match="its header says that it starts at record"):
        opened(disk)


def test_a_segment_of_another_journal_is_detected():
    disk, other = finished(), SimulatedDisk()
    journal, _ = opened(other, segment_bytes=500)
    for first in range(1, 18, 3):
        journal.append([record(lsn)._replace(node_name="n-9") for lsn in range(first, first + 3)])
        journal.flush()
    journal.end()
    second = disk.names()[1]
    assert second in other.names()
    disk.contents[second] = other.contents[second]

    with pytest.raises(JournalError, match="it does not continue the segment before it"):
        opened(disk)


def test_a_misplaced_group_is_detected():
    """Two groups of one length, of which the second overwrites the first."""
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    sizes = []
    for lsn in range(1, 9):
        journal.append([record(lsn)._replace(facts=None)])
        sizes.append(len(disk.contents[disk.names()[0]]))
    journal.flush()
    journal.close()
    (name,) = disk.names()
    data = disk.contents[name]
    fourth, fifth = data[sizes[2] : sizes[3]], data[sizes[3] : sizes[4]]
    assert len(fourth) == len(fifth)
    disk.contents[name] = data[: sizes[2]] + fifth + data[sizes[3] :]

    with pytest.raises(JournalError, match=f"damaged at offset {sizes[2]}: bytes there were"):
        opened(disk)


def test_a_closed_run_is_continued_after_its_end():
    disk = finished()

    journal, found = opened(disk)
    journal.append(records(19, 20))
    journal.end()

    assert found == records(1, 18)
    found, reader = read(disk)
    assert found == records(1, 20)
    assert (reader.closed.records, reader.damage, reader.tail) == (20, None, None)


def test_a_newer_format_is_refused_with_a_message():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    (name,) = disk.names()
    data = bytearray(disk.contents[name])
    struct.pack_into("<I", data, 8, 7)
    struct.pack_into("<I", data, 32, zlib.crc32(data[:32]))
    disk.contents[name] = bytes(data)

    for lenient in (False, True):
        with pytest.raises(JournalError, match=r"in format 7 by a newer release .* formats 1 to 2"):
            list(Reader(disk, stops_at_damage=lenient).records())


def test_an_unreadable_file_is_named(monkeypatch):
    disk = SimulatedDisk()
    written(disk, records(1, 3))

    def fails(name):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk, "read", fails)
    with pytest.raises(JournalError, match=r"segment: cannot be read: Input/output error"):
        FileJournal(disk).recovered_groups().__next__()


@pytest.mark.parametrize("number", [-1, len(frames.FACTS)])
def test_facts_of_an_unknown_class_are_damage_with_an_offset(monkeypatch, number):
    class Misnumbered(tuple):
        def index(self, *_):
            return number

    disk = SimulatedDisk()
    with monkeypatch.context() as patch:
        patch.setattr(frames, "FACTS", Misnumbered(frames.FACTS))
        written(disk, records(1, 1))

    with pytest.raises(JournalError, match=r"damaged at offset \d+: .* facts of no known kind"):
        opened(disk)


def test_a_journal_is_closed_where_its_writer_closed_it_properly():
    disk = SimulatedDisk()
    assert not is_closed(disk)

    written(disk, records(1, 3))
    assert not is_closed(disk)

    assert is_closed(finished())

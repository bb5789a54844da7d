"""A journal from its opening to its end: its properties, and when its data is durable."""

import pytest

from roadstead.journal import JournalError, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal.headers import segment_name
from roadstead.journal.segments import Reader, is_closed
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import SyncFails, held_open, opened, record, records, written
from tests.journal.test_formats import FORMAT_1, disk_of


def is_durable(disk, name):
    return disk.durable[name] == len(disk.contents[name])


def test_an_unread_journal_reports_no_records():
    disk = SimulatedDisk()
    written(disk, records(1, 3))

    journal = FileJournal(disk)

    assert (journal.last_lsn, journal.durable_lsn, journal.epoch) == (0, 0, 0)
    assert (journal.tail, journal.grown_bytes) == (None, 0)


def test_a_journal_grows_with_its_records_until_a_snapshot_replaces_them():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    sizes = [len(disk.contents[segment_name(1)])]
    for first in (1, 4):
        journal.append(records(first, first + 2))
        sizes.append(len(disk.contents[segment_name(1)]))
        assert journal.grown_bytes == sizes[-1] - sizes[0]

    journal.snapshot([])

    assert journal.grown_bytes == 0


def test_a_full_segment_is_durable_before_the_next_one_has_records():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk, segment_bytes=100)
    rename = disk.rename

    def named_last(name, to):
        """The data that the new segment follows is durable before the new one has its name."""
        assert all(is_durable(disk, each) for each in disk.names())
        rename(name, to)

    disk.rename = named_last
    for lsn in range(1, 6):
        journal.append([record(lsn)])
        names = disk.names()
        assert len(names) == lsn
        assert all(is_durable(disk, name) for name in names[:-1])
        assert disk.durable[names[-1]] > 0
        assert journal.durable_lsn == lsn - 1


def test_a_full_segment_is_not_kept_open(tmp_path):
    journal, _ = opened(RealDisk(tmp_path), segment_bytes=1)
    for lsn in range(1, 4):
        journal.append([record(lsn)])

    assert sorted(held_open(tmp_path)) == [segment_name(3), "lock"]


def test_a_snapshot_and_the_files_before_it_are_durable():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    disk.create("finished")
    journal.append(records(1, 3))

    journal.snapshot([record(1, RecordKind.LOAD)])

    assert [name.split("-")[0] for name in disk.names()] == ["finished", "journal", "snapshot"]
    assert all(is_durable(disk, name) for name in disk.names())
    assert disk.lasting == set(disk.names())


@pytest.mark.parametrize("last", ["snapshot.new", "segment.new"])
def test_a_journal_opens_after_the_machine_stopped_after_a_snapshot(last):
    """Its next segment was not begun: the digest in the snapshot must be durable."""
    for seed in range(12):
        disk = SimulatedDisk(seed)
        journal, _ = opened(disk)
        journal.append(records(1, 3))
        rename = disk.rename

        def stops(name, to, rename=rename):
            if name == "snapshot.new":
                rename(name, to)
            if name == last:
                raise OSError(5, "Input/output error")

        disk.rename = stops
        with pytest.raises(JournalError, match="cannot take a snapshot"):
            journal.snapshot(records(1, 3))
        disk.rename = rename
        disk.crash()

        for _ in range(2):
            journal, found = opened(disk)
            assert [each.lsn for each in found] == [1, 2, 3]
            journal.close()


def test_a_snapshot_of_many_records_is_read_completely():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    in_snapshot = [record(lsn % 5, RecordKind.LOAD) for lsn in range(5000)]
    journal.append(records(1, 3))

    journal.snapshot(in_snapshot)
    journal.close()

    assert opened(disk)[1] == in_snapshot


def test_the_end_of_a_journal_and_all_records_before_it_are_durable():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))

    journal.end()
    disk.crash()

    assert journal.durable_lsn == 3
    reader = Reader(disk)
    assert list(reader.records()) == records(1, 3)
    assert reader.closed.records == 3
    assert is_closed(disk)


def test_a_journal_closed_without_an_end_did_not_end_properly():
    disk = SimulatedDisk(short_writes=0)
    written(disk, records(1, 3))

    reader = Reader(disk)

    assert list(reader.records()) == records(1, 3)
    assert reader.closed is None


def test_a_flush_without_new_records_writes_nothing():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.flush()
    size_bytes = len(disk.contents[segment_name(1)])

    journal.flush()

    assert len(disk.contents[segment_name(1)]) == size_bytes


def test_a_failed_journal_does_not_end_properly_and_releases_its_folder():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    disk.fault = SyncFails(at=disk.steps + 1)
    with pytest.raises(JournalError, match="cannot be flushed"):
        journal.flush()

    with pytest.raises(JournalError, match="cannot be flushed"):
        journal.end()

    assert not is_closed(disk)
    assert not disk.locked


def test_a_closed_journal_accepts_nothing_and_may_be_closed_again(tmp_path):
    journal, _ = opened(RealDisk(tmp_path))
    journal.close()
    journal.close()

    for ask in (lambda: journal.append(records(1, 1)), journal.flush, journal.end):
        with pytest.raises(JournalError, match="is not open for appending"):
            ask()
    assert held_open(tmp_path) == []


def test_an_encoding_error_is_reported_in_words():
    journal, _ = opened(SimulatedDisk())

    with pytest.raises(JournalError, match=r"cannot be written: .*packed.*; nothing more is ackn"):
        journal.append([record(1)._replace(epoch=2**70)])


def test_a_journal_of_format_1_is_durable_once_it_was_opened():
    """The process that wrote it may have been killed before it flushed."""
    disk = disk_of(FORMAT_1 / "run" / "journal")
    name = segment_name(1)
    disk.durable[name] = 0
    rewritten = []
    disk.rewrite = lambda *asked: rewritten.append(asked)

    journal, _ = opened(disk)

    assert is_durable(disk, name)
    assert rewritten == [(name, 0)]
    assert [file.name for file in disk.opened] == [segment_name(20)]
    journal.close()

import contextlib
import os
import random
import stat
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts
from roadstead.journal import JournalError, JournalRecord, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal.frames import HEAD_BYTES
from roadstead.journal.headers import HEADER_BYTES
from roadstead.journal.segments import Reader
from tests.journal.simulated_disk import SimulatedDisk, SimulatedFile

SHAPES = [PodFacts(priority=priority, labels=(("app", "x"),)) for priority in range(5)]


@dataclass
class SyncFails:
    """A fault of a disk: the first sync after a given call fails."""

    at: int
    kind: str = "sync"


def record(lsn, kind=RecordKind.BIND):
    facts = SHAPES[lsn % len(SHAPES)] if kind in (RecordKind.BIND, RecordKind.LOAD) else None
    uid = f"uid-{lsn}" if lsn % 3 else f"default/p-{lsn}"
    return JournalRecord(
        lsn, kind, uid, f"default/p-{lsn}", f"n-{lsn % 7}", f"t/{lsn}", "s-0", lsn % 2, facts
    )


def records(first, last):
    return [record(lsn) for lsn in range(first, last + 1)]


def opened(disk, **options):
    journal = FileJournal(disk, **options)
    found = list(journal.recovered())
    return journal, found


def written(disk, *groups):
    """A journal of groups, each flushed, that was closed properly."""
    journal, _ = opened(disk)
    for group in groups:
        journal.append(group)
        journal.flush()
    journal.close()


def only_segment(disk):
    (name,) = [name for name in disk.names() if name.endswith(".segment")]
    return name


def spoil(disk, name, offset):
    data = bytearray(disk.contents[name])
    data[offset] ^= 0xFF
    disk.contents[name] = bytes(data)


def test_flushed_records_are_read_back_one_by_one(tmp_path):
    written(RealDisk(tmp_path / "journal"), records(1, 5), records(6, 6))

    journal, found = opened(RealDisk(tmp_path / "journal"))

    assert found == records(1, 6)
    assert (journal.last_lsn, journal.durable_lsn, journal.epoch) == (6, 6, 2)
    assert journal.append(records(7, 8)) == 8
    journal.flush()
    journal.close()
    assert opened(RealDisk(tmp_path / "journal"))[1] == records(1, 8)


def test_only_its_owner_may_read_a_journal(tmp_path):
    written(RealDisk(tmp_path), records(1, 5))

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    assert len(modes) == 2
    assert set(modes.values()) == {0o600}


def held_open(folder):
    """The folder and its files that this process has open, each as often as it is open."""
    known = {path.stat().st_ino: path.name for path in (folder, *folder.iterdir())}
    found = []
    for number in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            found += filter(None, [known.get(os.fstat(int(number)).st_ino)])
    return found


def test_a_closed_journal_keeps_no_file_open(tmp_path):
    journal, _ = opened(RealDisk(tmp_path), segment_bytes=1)
    for lsn in range(1, 4):
        journal.append([record(lsn)])
        journal.snapshot([])
    assert len(held_open(tmp_path)) == 2

    journal.end()

    assert held_open(tmp_path) == []


def test_each_opening_of_an_empty_journal_starts_a_newer_epoch():
    disk = SimulatedDisk()

    epochs = []
    for _ in range(3):
        journal, found = opened(disk)
        assert found == []
        epochs.append(journal.epoch)
        journal.close()

    assert epochs == [1, 2, 3]
    assert len(disk.names()) == 1


def test_a_folder_in_use_is_refused_with_the_pid_of_its_holder(tmp_path):
    first = FileJournal(RealDisk(tmp_path))

    with pytest.raises(JournalError, match=f"in use by another process .pid {os.getpid()}"):
        FileJournal(RealDisk(tmp_path))

    first.close()
    FileJournal(RealDisk(tmp_path)).close()


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(JournalError, match=r"file/journal: cannot be made: Not a directory"):
        RealDisk(tmp_path / "file" / "journal")


def test_segments_split_at_their_size_and_are_read_as_one():
    disk = SimulatedDisk()
    journal, _ = opened(disk, segment_bytes=300)
    for lsn in range(1, 30):
        journal.append([record(lsn)])
    journal.flush()
    journal.close()

    assert len(disk.names()) > 5
    assert opened(disk)[1] == records(1, 29)


def test_a_snapshot_replaces_the_records_before_it():
    disk = SimulatedDisk()
    journal, _ = opened(disk, segment_bytes=300)
    journal.append(records(1, 20))
    in_snapshot = [record(lsn, RecordKind.LOAD) for lsn in (3, 7, 20)]
    journal.snapshot(in_snapshot)
    journal.append(records(21, 22))
    journal.flush()
    journal.close()

    again, found = opened(disk)

    assert found == [*in_snapshot, *records(21, 22)]
    assert again.last_lsn == 22
    assert [name.split("-")[0] for name in disk.names()] == ["journal", "journal", "snapshot"]


def test_an_empty_snapshot_is_followed_by_later_records():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.snapshot([])
    journal.append(records(1, 1))
    journal.snapshot([record(1, RecordKind.LOAD)])
    journal.close()

    journal, found = opened(disk)

    assert found == [record(1, RecordKind.LOAD)]
    assert journal.last_lsn == 1


def test_a_torn_tail_is_cut_and_reported():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    name = only_segment(disk)
    whole = len(disk.contents[name])
    disk.contents[name] += b"\xf1RJ\n torn"

    journal, found = opened(disk)

    assert found == records(1, 3)
    assert (journal.tail.name, journal.tail.offset, journal.tail.size_bytes) == (name, whole, 9)
    assert (journal.tail.lsn, journal.tail.was_durable) == (4, False)
    assert b"torn" not in disk.contents[name]


def test_a_segment_with_a_damaged_header_is_refused_even_without_records():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    journal, _ = opened(disk)
    journal.close()
    newest = max(disk.names())
    disk.contents[newest] = bytes(HEADER_BYTES)

    with pytest.raises(JournalError, match=rf"{newest}: damaged at offset 0: its header is not"):
        opened(disk)


@pytest.mark.parametrize("place", range(12))
def test_a_journal_opens_after_the_machine_stopped_while_a_segment_began(place):
    """The new segment, its name, and the last frame of the segment before it: any of them may be
    durable.
    """
    disk = SimulatedDisk(place)
    written(disk, records(1, 3))
    seen = []

    class Stopped(Exception):
        pass

    def step(call):
        def stepped(*args):
            seen.append(call)
            if len(seen) > place:
                raise Stopped
            return call(*args)

        return stepped

    kept = {name: getattr(disk, name) for name in ("create", "rename", "sync_names", "extend")}
    for name, call in kept.items():
        setattr(disk, name, step(call))
    for name in ("write", "sync"):
        kept[name] = getattr(SimulatedFile, name)
        setattr(SimulatedFile, name, step(kept[name]))
    try:
        opened(disk)
    except Stopped:
        pass
    finally:
        for name in ("create", "rename", "sync_names", "extend"):
            delattr(disk, name)
        for name in ("write", "sync"):
            setattr(SimulatedFile, name, kept[name])
    disk.crash()

    journal, found = opened(disk)

    assert found == records(1, 3)
    journal.append(records(4, 4))
    journal.end()
    assert opened(disk)[1] == records(1, 4)


def test_damage_before_durable_bytes_is_refused_with_its_offset():
    disk = SimulatedDisk()
    written(disk, records(1, 3), records(4, 6), records(7, 9))
    name = only_segment(disk)
    spoil(disk, name, HEADER_BYTES + HEAD_BYTES + 2)
    before = dict(disk.contents)

    with pytest.raises(
        JournalError,
        match=rf"{name}: damaged at offset {HEADER_BYTES}: bytes there were durable: the frame",
    ):
        opened(disk)

    assert disk.contents == before


def test_damage_in_a_segment_that_others_follow_is_refused():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    name = only_segment(disk)
    written(disk, records(4, 6))
    spoil(disk, name, HEADER_BYTES + HEAD_BYTES + 2500)

    with pytest.raises(JournalError, match="another segment follows; nothing was changed"):
        opened(disk)


def test_a_missing_segment_is_refused_with_its_missing_records():
    disk = SimulatedDisk()
    for first in (1, 4, 7):
        written(disk, records(first, first + 2))
    disk.remove(sorted(disk.names())[1])

    with pytest.raises(JournalError, match="records 4 to 6 are gone"):
        opened(disk)


def test_a_missing_first_segment_is_refused():
    disk = SimulatedDisk()
    written(disk, records(1, 3))
    first = only_segment(disk)
    written(disk, records(4, 6))
    disk.remove(first)

    with pytest.raises(JournalError, match="records 1 to 3 are gone"):
        opened(disk)


@pytest.mark.parametrize("suffix", [".segment", ".snapshot"])
def test_a_file_that_is_no_journal_is_refused(suffix):
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 2))
    journal.snapshot([record(1, RecordKind.LOAD)])
    journal.append(records(3, 3))
    journal.flush()
    journal.close()
    name = next(name for name in disk.names() if name.endswith(suffix) and len(disk.read(name)))
    disk.contents[name] = b"x" * 100 + disk.contents[name]

    with pytest.raises(JournalError, match=f"{name}: damaged at offset 0: its header is not"):
        opened(disk)


def test_a_damaged_snapshot_is_refused():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 2))
    journal.snapshot([record(1, RecordKind.LOAD)])
    journal.close()
    name = next(name for name in disk.names() if name.endswith(".snapshot"))
    spoil(disk, name, len(disk.contents[name]) - 1)

    with pytest.raises(JournalError, match="a snapshot is incomplete"):
        opened(disk)


def test_a_full_disk_stops_the_journal_permanently():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.flush()
    disk.room_bytes = 20

    with pytest.raises(JournalError, match=r"cannot be written: No space left on device; nothing"):
        journal.append(records(4, 6))
    disk.room_bytes = None
    with pytest.raises(JournalError, match="No space left on device"):
        journal.append(records(4, 6))
    with pytest.raises(JournalError, match="No space left on device"):
        journal.flush()

    journal.close()
    assert opened(disk)[1] == records(1, 3)


def test_a_folder_is_released_even_if_its_file_cannot_be_closed(monkeypatch):
    disk = SimulatedDisk()
    journal, _ = opened(disk)

    def fails(file):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedFile, "close", fails)
        with pytest.raises(OSError, match="Input/output error"):
            journal.close()

    assert not disk.locked
    journal.close()
    opened(disk)[0].close()


def test_a_failed_flush_is_never_repeated():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    disk.fails_to_sync = True
    with pytest.raises(JournalError, match="cannot be flushed: Input/output error"):
        journal.flush()
    disk.fails_to_sync = False

    with pytest.raises(JournalError, match="cannot be flushed"):
        journal.flush()
    assert journal.durable_lsn == 0


@pytest.mark.parametrize("flushed", [0, 2])
def test_data_of_a_failed_sync_is_written_again_before_it_counts(flushed):
    """The system shows such bytes, and no later sync writes them."""
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    for lsn in range(1, flushed + 1):
        journal.append(records(lsn, lsn))
        journal.flush()
    journal.append(records(flushed + 1, flushed + 3))
    disk.fault = SyncFails(at=disk.steps + 1)
    with pytest.raises(JournalError, match="cannot be flushed: Input/output error"):
        journal.flush()
    journal.close()

    journal, found = opened(disk)
    journal.close()
    disk.crash()

    assert [each.lsn for each in found] == list(range(1, flushed + 4))
    assert list(Reader(disk).records()) == found


def test_a_real_file_is_rewritten_from_an_offset(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(bytes(range(250)))
    written_again = []
    write = os.pwrite

    def taking_less(fd, data, offset):
        written_again.append((offset, bytes(data[:60])))
        return write(fd, data[:60], offset)

    monkeypatch.setattr(os, "pwrite", taking_less)
    RealDisk(tmp_path).rewrite("file", 100)

    assert (tmp_path / "file").read_bytes() == bytes(range(250))
    assert [offset for offset, _ in written_again] == [100, 160, 220]
    assert b"".join(data for _, data in written_again) == bytes(range(100, 250))


def test_a_failed_snapshot_leaves_the_earlier_files():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.flush()
    disk.room_bytes = 60

    with pytest.raises(JournalError, match="cannot take a snapshot"):
        journal.snapshot(records(1, 3))

    journal.close()
    disk.room_bytes = None
    journal, found = opened(disk)
    assert found == records(1, 3)
    journal.snapshot([record(lsn, RecordKind.LOAD) for lsn in (1, 2, 3)])
    assert "snapshot.new" not in disk.names()


def test_a_failed_journal_takes_no_snapshot():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    disk.fails_to_sync = True
    with pytest.raises(JournalError, match="cannot be flushed"):
        journal.flush()
    disk.fails_to_sync = False

    with pytest.raises(JournalError, match="cannot be flushed"):
        journal.snapshot([record(1, RecordKind.LOAD)])

    assert not any(name.endswith(".snapshot") for name in disk.names())
    with pytest.raises(JournalError, match="is not open for appending"):
        FileJournal(SimulatedDisk()).snapshot([])


def test_everything_that_a_snapshot_replaces_is_durable():
    journal, _ = opened(SimulatedDisk())
    journal.append(records(1, 3))

    journal.snapshot([record(1, RecordKind.LOAD)])

    assert journal.durable_lsn == journal.last_lsn == 3


def test_a_full_disk_at_opening_is_reported():
    disk = SimulatedDisk(room_bytes=3)

    with pytest.raises(JournalError, match="cannot be opened for writing"):
        opened(disk)


def test_only_an_open_journal_accepts_records_and_only_consecutive_ones():
    disk = SimulatedDisk()
    journal = FileJournal(disk)
    with pytest.raises(JournalError, match="is not open for appending"):
        journal.append(records(1, 1))
    list(journal.recovered())

    with pytest.raises(JournalError, match="record 2 does not follow record 0"):
        journal.append(records(2, 2))

    journal.append([])
    journal.flush()
    assert journal.last_lsn == 0


def test_a_partial_write_is_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:100]))

    written(RealDisk(tmp_path), records(1, 500))

    assert opened(RealDisk(tmp_path))[1] == records(1, 500)


def test_a_short_write_reported_as_complete_is_detected_before_acknowledgement():
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.flush()
    taken = SimulatedFile.write
    try:
        SimulatedFile.write = lambda self, data: taken(self, data[:-5]) + 5
        journal.append(records(4, 6))
    finally:
        SimulatedFile.write = taken

    with pytest.raises(JournalError, match=r"cannot be flushed: the file has \d+ bytes, \d+ were"):
        journal.flush()

    assert journal.durable_lsn == 3


def test_an_encoding_error_ends_the_journal_as_a_full_disk_does():
    disk = SimulatedDisk()
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    unknown = record(4)._replace(facts=PodFacts(labels=(("app", {1, 2}),)), epoch=2**70)

    with pytest.raises(JournalError, match="cannot be written"):
        journal.append([unknown])
    with pytest.raises(JournalError, match="cannot be written"):
        journal.append(records(4, 4))

    journal.close()
    assert opened(disk)[1] == records(1, 3)


def test_data_of_a_killed_process_is_durable_once_it_was_read():
    """The next life depends on it: no later stop of the machine may lose it."""
    disk = SimulatedDisk(short_writes=0)
    journal, _ = opened(disk)
    journal.append(records(1, 3))
    journal.close()

    assert opened(disk)[1] == records(1, 3)
    disk.crash()

    assert opened(disk)[1] == records(1, 3)


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_no_crash_loses_or_invents_flushed_records(seed):
    """Random groups, flushes, snapshots and crashes; replay with the printed seed."""
    chance = random.Random(seed)
    disk = SimulatedDisk(seed)
    everything, durable = [], 0
    for _ in range(chance.randint(1, 6)):
        journal, found = opened(disk, segment_bytes=chance.choice([200, 2000]))
        seen = [each.lsn for each in found]
        assert seen == list(range(1, len(seen) + 1))
        assert durable <= len(seen) <= len(everything)
        del everything[len(seen) :]
        assert [(e.uid, e.node_name, e.facts) for e in found] == [
            (e.uid, e.node_name, e.facts) for e in everything
        ]
        for _ in range(chance.randint(0, 8)):
            last = len(everything)
            news = records(last + 1, last + chance.randint(1, 4))
            journal.append(news)
            everything += news
            if chance.random() < 0.4:
                journal.flush()
                durable = len(everything)
            if chance.random() < 0.15:
                journal.snapshot(everything)
                durable = len(everything)
        disk.crash()

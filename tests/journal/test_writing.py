"""A file of the journal as it is written."""

import pytest

from roadstead.journal.writing import FrameFile
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import records


class Slow:
    """A file that accepts so many bytes per write."""

    def __init__(self, most):
        self.most, self.data = most, b""

    def write(self, data):
        self.data += bytes(data[: self.most])
        return min(len(data), self.most)


def begun(disk):
    return FrameFile.create(disk, "new", epoch=1, first_lsn=1, number=1, digest_before=0)


def test_an_existing_file_with_the_name_of_a_new_one_is_removed():
    disk = SimulatedDisk()
    disk.create("new").write(b"left by a process that stopped")

    begun(disk)

    assert b"left by" not in disk.contents["new"]


def test_sizes_are_those_of_the_file_and_only_synced_bytes_are_durable():
    disk = SimulatedDisk()
    file = begun(disk)
    empty_bytes = len(disk.contents["new"])
    assert (file.size_bytes, file.durable_bytes, file.grown_bytes) == (empty_bytes, 0, 0)

    file.sync()
    file.append_records(records(1, 3))

    size_bytes = len(disk.contents["new"])
    assert file.size_bytes == size_bytes
    assert (file.durable_bytes, file.grown_bytes) == (empty_bytes, size_bytes - empty_bytes)


def test_a_fully_durable_file_is_not_synced_again():
    disk = SimulatedDisk()
    file = begun(disk)
    file.sync()
    asked = disk.asked["bytes"]

    file.sync()

    assert disk.asked["bytes"] == asked


def test_a_frame_that_no_reader_would_accept_is_not_written(monkeypatch):
    disk = SimulatedDisk()
    file = begun(disk)
    before = disk.contents["new"]
    monkeypatch.setattr("roadstead.journal.writing.MAX_FRAME_BYTES", 400)

    with pytest.raises(OSError, match=r"9 records take \d+ bytes, more than 400"):
        file.append_records(records(1, 9))

    assert (disk.contents["new"], file.size_bytes) == (before, len(before))


def test_a_file_that_accepts_one_byte_at_a_time_is_written_completely():
    slow, quick = Slow(1), Slow(1 << 20)
    files = [FrameFile(each, 1, 0, 0) for each in (slow, quick)]
    for file in files:
        file.append_records(records(1, 3))

    assert slow.data == quick.data
    assert files[0].size_bytes == len(slow.data)


def test_a_file_that_accepts_nothing_is_an_error():
    with pytest.raises(OSError, match="the file takes no more bytes"):
        FrameFile(Slow(0), 1, 0, 0).append_records(records(1, 1))

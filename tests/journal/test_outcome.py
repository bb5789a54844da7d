"""The outcome's file: written part by part, complete under its name; parts may arrive twice."""

import pytest

from roadstead.journal import JournalError
from roadstead.journal.headers import NEW_OUTCOME, OUTCOME
from roadstead.journal.outcome import OutcomeFile
from tests.journal.simulated_disk import SimulatedDisk, SimulatedFile


def test_the_file_has_its_name_when_it_is_complete_and_durable():
    disk = SimulatedDisk()
    file = OutcomeFile(disk)

    assert file.store(0, b"abc", is_last=False) == 3
    assert disk.names() == [NEW_OUTCOME]
    assert file.store(3, b"de", is_last=True) == 5

    assert disk.names() == [OUTCOME]
    disk.crash()
    assert disk.read(OUTCOME) == b"abcde"


def test_a_part_that_is_there_changes_nothing():
    disk = SimulatedDisk()
    file = OutcomeFile(disk)
    file.store(0, b"abc", is_last=False)
    file.store(3, b"d", is_last=False)

    assert file.store(3, b"d", is_last=False) == 4
    assert file.store(9, b"x", is_last=False) == 4
    assert file.store(4, b"e", is_last=True) == 5
    assert file.store(4, b"e", is_last=True) == 5
    assert file.store(0, b"abc", is_last=False) == 5

    assert disk.names() == [OUTCOME]
    assert disk.opened == []
    assert disk.read(OUTCOME) == b"abcde"


def test_a_new_binder_has_nothing_and_begins_again():
    disk = SimulatedDisk()
    OutcomeFile(disk).store(0, b"abc", is_last=False)
    file = OutcomeFile(disk)

    assert file.store(3, b"d", is_last=True) == 0
    assert file.store(0, b"abcd", is_last=True) == 4

    assert disk.read(OUTCOME) == b"abcd"


def test_a_full_disk_is_reported():
    disk = SimulatedDisk(room_bytes=2)

    with pytest.raises(JournalError, match="outcome of the run cannot be written: No space left"):
        OutcomeFile(disk).store(0, b"abc", is_last=True)


def test_a_file_that_takes_no_bytes_is_reported():
    class FullFile(SimulatedFile):
        def write(self, data):
            return 0

    disk = SimulatedDisk()
    disk.create = lambda name: FullFile(disk, name)

    with pytest.raises(JournalError, match="cannot be written: the file takes no more bytes"):
        OutcomeFile(disk).store(0, b"abc", is_last=True)

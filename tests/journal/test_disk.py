"""A folder of the operating system fulfils the contract of `Disk`."""

import errno
import fcntl
import os

import pytest

from roadstead.journal import JournalError
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader, is_closed
from tests.journal.test_files import held_open


@pytest.fixture
def synced(monkeypatch):
    """Inodes that the system was asked to make durable, in that order."""
    asked = []
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda fd: asked.append(os.fstat(fd).st_ino))
    return asked


def inode(path):
    return path.stat().st_ino


def test_the_folder_is_created_with_its_parents(tmp_path):
    RealDisk(tmp_path / "runs" / "today" / "journal").create("file").close()

    assert (tmp_path / "runs" / "today" / "journal" / "file").exists()


def test_names_are_sorted_file_names(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("c", "a", "b"):
        (tmp_path / name).write_bytes(b"")

    assert RealDisk(tmp_path).names() == ["a", "b", "c"]


def test_a_file_is_appended_to_and_made_durable(tmp_path, synced):
    disk = RealDisk(tmp_path)
    for open_file in (disk.create, disk.extend):
        file = open_file("file")
        file.write(b"four")
        file.sync()
        file.close()

    assert disk.read("file") == b"fourfour"
    assert synced == [inode(tmp_path / "file")] * 2
    with pytest.raises(FileExistsError):
        disk.create("file")


def test_the_drive_cache_is_flushed_where_the_system_supports_it(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, what: asked.append(what))

    RealDisk(tmp_path).create("file").sync()

    assert asked == [51]


def test_a_file_is_truncated_durably(tmp_path, synced):
    (tmp_path / "file").write_bytes(b"0123456789")

    RealDisk(tmp_path).cut("file", 4)

    assert (tmp_path / "file").read_bytes() == b"0123"
    assert synced == [inode(tmp_path / "file")]


def test_a_renamed_file_replaces_another_durably(tmp_path, synced):
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "old").write_bytes(b"old")

    RealDisk(tmp_path).rename("new", "old")

    assert RealDisk(tmp_path).names() == ["old"]
    assert (tmp_path / "old").read_bytes() == b"new"
    assert synced == [inode(tmp_path)]


def test_a_removed_file_no_longer_exists(tmp_path, synced):
    disk = RealDisk(tmp_path)
    disk.create("file").close()

    disk.remove("file")
    disk.sync_names()

    assert disk.names() == []
    assert synced == [inode(tmp_path)]


def test_no_operation_keeps_a_file_open(tmp_path):
    disk = RealDisk(tmp_path)
    (tmp_path / "file").write_bytes(b"0123456789")

    disk.cut("file", 4)
    disk.rewrite("file", 0)
    disk.rename("file", "other")

    assert held_open(tmp_path) == []


def test_a_refused_folder_is_not_held_and_its_holder_is_named(tmp_path):
    (tmp_path / "lock").write_text("1234567890123\n1234567890123\n")
    first = RealDisk(tmp_path)
    first.lock()

    with pytest.raises(JournalError) as refused:
        RealDisk(tmp_path).lock()

    assert str(refused.value).endswith(f"in use by another process (pid {os.getpid()})")
    assert held_open(tmp_path) == ["lock"]
    first.unlock()
    first.unlock()
    assert held_open(tmp_path) == []
    RealDisk(tmp_path).lock()


def test_a_folder_whose_holder_wrote_no_pid_is_refused_too(tmp_path):
    RealDisk(tmp_path).lock()
    (tmp_path / "lock").write_text("")

    with pytest.raises(JournalError, match=r"\(pid unknown\)"):
        RealDisk(tmp_path).lock()


def test_a_folder_that_cannot_be_locked_is_refused_with_the_reason(tmp_path, monkeypatch):
    def no_locks(fd, _):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        with pytest.raises(JournalError, match="cannot be locked: No locks available"):
            RealDisk(tmp_path).lock()
    assert held_open(tmp_path) == []

    (tmp_path / "lock").unlink()
    (tmp_path / "lock").mkdir()
    with pytest.raises(JournalError, match="cannot be locked: Is a directory"):
        RealDisk(tmp_path).lock()


def test_a_file_that_becomes_shorter_is_not_rewritten_for_ever(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"0123456789")
    monkeypatch.setattr(os, "pread", lambda *_: b"")

    with pytest.raises(OSError, match="the file became shorter"):
        RealDisk(tmp_path).rewrite("file", 0)


def test_a_folder_that_cannot_be_read_is_a_journal_error(tmp_path):
    disk = RealDisk(tmp_path / "journal")
    (tmp_path / "journal").rmdir()

    with pytest.raises(JournalError, match="cannot be read: No such file or directory"):
        list(Reader(disk).records())
    with pytest.raises(JournalError, match="cannot be read: No such file or directory"):
        is_closed(disk)

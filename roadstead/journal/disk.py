"""The journal's interface to a file system, and its implementation on the real one."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeAlias

from roadstead.journal.records import JournalError

Buffer: TypeAlias = bytes | memoryview
REWRITE_BYTES = 1 << 20
"""Bytes that `rewrite` reads and writes at once."""


class DiskFile(Protocol):
    """A file that is only appended to. All methods raise OSError when they fail."""

    def write(self, data: Buffer) -> int:
        """Append all or the first part of the data, not durably; return how many bytes."""
        ...

    def sync(self) -> None:
        """Return when all written data is durable."""
        ...

    def size(self) -> int:
        """Return the size in bytes as the system reports it."""
        ...

    def close(self) -> None: ...


def append_all(file: DiskFile, data: bytes) -> Iterator[int]:
    """Append all of the data; yield the number of bytes that each write took. Raises OSError."""
    remaining = memoryview(data)
    while remaining:
        # One write may append only the first part.
        written = file.write(remaining)
        if written <= 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        yield written
        remaining = remaining[written:]


class Disk(Protocol):
    """A folder of files. Names are durable after `sync_names`, contents after `DiskFile.sync`."""

    @property
    def path(self) -> str:
        """The folder's path, for messages."""
        ...

    def names(self) -> list[str]:
        """Return the names of the files in the folder, sorted."""
        ...

    def read(self, name: str) -> bytes: ...

    def read_part(self, name: str, offset: int, size_bytes: int) -> bytes:
        """Return at most so many bytes from an offset on; fewer only at the end of the file."""
        ...

    def size(self, name: str) -> int: ...

    def create(self, name: str) -> DiskFile:
        """Create an empty file. FileExistsError if the name exists."""
        ...

    def extend(self, name: str) -> DiskFile:
        """Open an existing file for appending."""
        ...

    def cut(self, name: str, size_bytes: int) -> None:
        """Shorten a file, durably."""
        ...

    def rewrite(self, name: str, offset: int) -> None:
        """Write the bytes of a file from an offset on once more, the same, in place.

        The next `DiskFile.sync` then makes them durable, even if an earlier one has failed.
        """
        ...

    def rename(self, name: str, to: str) -> None:
        """Rename a file, durably; a file that already has the new name is replaced."""
        ...

    def remove(self, name: str) -> None: ...

    def sync_names(self) -> None:
        """Return when created and removed names are durable."""
        ...

    def lock(self) -> None:
        """Lock the folder for this process.

        JournalError if another process has locked it, or if it cannot be locked.
        """
        ...

    def unlock(self) -> None: ...


class RealFile:
    """A file of the operating system, written without a buffer in the process."""

    def __init__(self, path: Path, *, is_new: bool = True) -> None:
        creation_flags = os.O_CREAT | os.O_EXCL if is_new else 0
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | creation_flags, 0o600)

    def write(self, data: Buffer) -> int:
        return os.write(self._fd, data)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def sync(self) -> None:
        _sync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class RealDisk:
    """A folder of the operating system, created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock_fd: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise JournalError(f"journal {folder}: cannot be made: {failure.strerror}") from None

    @property
    def path(self) -> str:
        return str(self._folder)

    def names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir() if path.is_file())

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def read_part(self, name: str, offset: int, size_bytes: int) -> bytes:
        with (self._folder / name).open("rb") as file:
            file.seek(offset)
            return file.read(size_bytes)

    def size(self, name: str) -> int:
        return (self._folder / name).stat().st_size

    def create(self, name: str) -> DiskFile:
        return RealFile(self._folder / name)

    def extend(self, name: str) -> DiskFile:
        return RealFile(self._folder / name, is_new=False)

    def cut(self, name: str, size_bytes: int) -> None:
        fd = os.open(self._folder / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size_bytes)
            _sync(fd)
        finally:
            os.close(fd)

    def rewrite(self, name: str, offset: int) -> None:
        fd = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(fd).st_size
            while offset < size_bytes:
                data = os.pread(fd, REWRITE_BYTES, offset)
                if not data:
                    raise OSError(errno.EIO, "the file became shorter")
                offset += os.pwrite(fd, data, offset)
        finally:
            os.close(fd)

    def rename(self, name: str, to: str) -> None:
        os.replace(self._folder / name, self._folder / to)
        self.sync_names()

    def remove(self, name: str) -> None:
        (self._folder / name).unlink()

    def sync_names(self) -> None:
        fd = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self) -> None:
        try:
            fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._lock(fd)
            except BaseException:
                os.close(fd)
                raise
        except OSError as failure:
            raise JournalError(
                f"journal {self.path}: cannot be locked: {failure.strerror}"
            ) from failure
        self._lock_fd = fd

    def _lock(self, fd: int) -> None:
        """Lock an open file and write this process's id into it. Raises OSError, JournalError."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            raise JournalError(
                f"journal {self.path}: in use by another process (pid {holder})"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def unlock(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def _sync(fd: int) -> None:
    """Sync data and size, also through the drive's cache on systems that can request it."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)

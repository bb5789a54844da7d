"""RecordedDisk: a disk that records its operations on files as steps, for a copy of the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from roadstead.journal.disk import Buffer, Disk, DiskFile
from roadstead.journal_copy.messages import Step, StepKind


class StepRecorder(Protocol):
    """Receiver of the steps, in order."""

    def record(self, step: Step) -> None: ...


class _RecordedFile:
    """A file whose appends and syncs are recorded.

    key: number of the open file in `RecordedDisk`, which has its present name: a file may be
    renamed while it is open. size_bytes: the size when it was opened.
    """

    def __init__(self, disk: RecordedDisk, file: DiskFile, key: int, size_bytes: int) -> None:
        self._disk, self._file, self._key = disk, file, key
        # The offset of the next append.
        self._size_bytes = size_bytes

    def write(self, data: Buffer) -> int:
        written = self._file.write(data)
        name = self._disk.name_of(self._key)
        step = Step(StepKind.APPEND, name, offset=self._size_bytes, data=bytes(data[:written]))
        self._size_bytes += written
        self._disk.steps.record(step)
        return written

    def sync(self) -> None:
        # Sent before the sync, so that the copy's disk and this one work at the same time.
        self._disk.steps.record(Step(StepKind.SYNC, self._disk.name_of(self._key)))
        self._disk.send()
        self._file.sync()

    def size(self) -> int:
        return self._file.size()

    def close(self) -> None:
        self._disk.forget(self._key)
        self._file.close()


class RecordedDisk:
    """A disk that carries out each operation and then records it as a step.

    A sync of a file is recorded first. Not recorded are the lock, and `rewrite`, which writes the
    bytes that a file has already.

    steps: receives the steps. send: is called before a file is synced, to send the recorded steps.
    """

    def __init__(
        self, disk: Disk, steps: StepRecorder, send: Callable[[], None] = lambda: None
    ) -> None:
        self.steps, self.send = steps, send
        self._disk = disk
        # By key of an open file: its present name. Keys are numbers in order of opening.
        self._names: dict[int, str] = {}
        self._opened = 0

    @property
    def path(self) -> str:
        return self._disk.path

    def names(self) -> list[str]:
        return self._disk.names()

    def read(self, name: str) -> bytes:
        return self._disk.read(name)

    def read_part(self, name: str, offset: int, size_bytes: int) -> bytes:
        return self._disk.read_part(name, offset, size_bytes)

    def size(self, name: str) -> int:
        return self._disk.size(name)

    def create(self, name: str) -> DiskFile:
        file = self._disk.create(name)
        self.steps.record(Step(StepKind.CREATE, name))
        return self._open(file, name, 0)

    def extend(self, name: str) -> DiskFile:
        return self._open(self._disk.extend(name), name, self._disk.size(name))

    def _open(self, file: DiskFile, name: str, size_bytes: int) -> DiskFile:
        self._opened += 1
        self._names[self._opened] = name
        return _RecordedFile(self, file, self._opened, size_bytes)

    def name_of(self, key: int) -> str:
        """Return the present name of an open file."""
        return self._names[key]

    def forget(self, key: int) -> None:
        self._names.pop(key, None)

    def cut(self, name: str, size_bytes: int) -> None:
        self._disk.cut(name, size_bytes)
        self.steps.record(Step(StepKind.CUT, name, offset=size_bytes))

    def rewrite(self, name: str, offset: int) -> None:
        self._disk.rewrite(name, offset)

    def rename(self, name: str, to: str) -> None:
        self._disk.rename(name, to)
        # An open file that is replaced keeps its name here, wrongly; but `FileJournal` only closes
        # such a file.
        self._names = {key: to if each == name else each for key, each in self._names.items()}
        self.steps.record(Step(StepKind.RENAME, name, to))

    def remove(self, name: str) -> None:
        self._disk.remove(name)
        self.steps.record(Step(StepKind.REMOVE, name))

    def sync_names(self) -> None:
        self._disk.sync_names()
        # Without a name: a sync of the directory.
        self.steps.record(Step(StepKind.SYNC))

    def lock(self) -> None:
        self._disk.lock()

    def unlock(self) -> None:
        self._disk.unlock()

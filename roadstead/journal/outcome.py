"""OutcomeFile: the outcome of a run as a file next to its journal, written part by part."""

from __future__ import annotations

from roadstead.journal.disk import Disk, DiskFile, append_all
from roadstead.journal.headers import NEW_OUTCOME, OUTCOME
from roadstead.journal.records import JournalError


class OutcomeFile:
    """The file `outcome`. Until it is complete and durable, its name is `outcome.new`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: DiskFile | None = None
        self._size_bytes = 0
        self._is_complete = False

    def store(self, offset: int, data: bytes, *, is_last: bool) -> int:
        """Append a part at an offset; return the size of the file so far.

        A part that does not begin at the end of the file, or arrives after the last one, changes
        nothing: the caller continues at the returned size. JournalError if it cannot be written.
        """
        try:
            if self._file is None and not offset and not self._is_complete:
                self._begin()
            if self._file is not None and offset == self._size_bytes:
                self._append(self._file, data)
                if is_last:
                    self._finish(self._file)
        except OSError as failure:
            raise JournalError(
                f"journal {self._disk.path}: the outcome of the run cannot be written: "
                f"{failure.strerror or failure}"
            ) from failure
        return self._size_bytes

    def _begin(self) -> None:
        if NEW_OUTCOME in self._disk.names():
            self._disk.remove(NEW_OUTCOME)
        self._file, self._size_bytes = self._disk.create(NEW_OUTCOME), 0

    def _append(self, file: DiskFile, data: bytes) -> None:
        for written in append_all(file, data):
            self._size_bytes += written

    def _finish(self, file: DiskFile) -> None:
        file.sync()
        file.close()
        self._file = None
        self._disk.rename(NEW_OUTCOME, OUTCOME)
        self._is_complete = True

"""End of the reading of a segment, or of a whole journal: read and unread bytes."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.journal.headers import Header


@dataclass(frozen=True, slots=True)
class UnreadBytes:
    """The bytes of a file, from an offset to its end, that are not read; nor is any later file.

    lsn: the first record that is left out. was_durable: something confirms that the bytes were
    durable; otherwise they were never acknowledged, unless the machine lost synced data.
    """

    name: str
    offset: int
    size_bytes: int
    lsn: int
    why: str
    was_durable: bool = True

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.why}; left out from offset {self.offset}: {self.size_bytes} bytes"
            f", records from {self.lsn} on"
        )


class DamagedError(Exception):
    """The reader found damage. unread: from there on."""

    def __init__(self, unread: UnreadBytes) -> None:
        super().__init__(str(unread))
        self.unread = unread


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of a journal whose writer shut down cleanly: number of records, and digest."""

    records: int
    digest: int


@dataclass(slots=True)
class SegmentEnd:
    """A segment up to where it was read.

    size_bytes, digest, next_lsn: at the end of the frames that were read. is_continued: the last of
    these is CONTINUED. confirmed_bytes: how many of the first bytes the frames confirm as durable.
    unread: the bytes after the frames.
    """

    name: str
    header: Header
    size_bytes: int
    digest: int
    next_lsn: int
    is_continued: bool = False
    confirmed_bytes: int = 0
    unread: UnreadBytes | None = None

    @property
    def is_empty(self) -> bool:
        return self.next_lsn == self.header.first_lsn

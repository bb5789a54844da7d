"""Messages between the sender and the receiver of a journal copy, and the steps that they contain.

A binder *pairs* with a copy before it sends steps: it learns which files the copy has, and the copy
refuses earlier binders from then on. Attempts to pair are numbered. The copy's process has a
number, too (its incarnation), since a new process may find other files.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from roadstead.protocol.errors import RoadsteadError

CHUNK_BYTES = 4 << 20
"""Bytes of files in one message."""

MAX_WAITING_BYTES = 64 << 20
"""Bytes of steps that wait for the copy. With more, the sender drops them and catches up from the
files instead, so that a slow copy does not fill the memory of the binder's process."""


class CopyFencedError(RoadsteadError):
    """A newer binder uses the copy, or it was promoted: this binder must acknowledge nothing."""


class StepKind(StrEnum):
    """Operations on files.

    CREATE: an empty file. APPEND: bytes at an offset, which is the file's size. SYNC: make a file
    durable; without a name, the names of the folder. CUT: shorten a file to an offset. RENAME:
    give a file another name, durably. REMOVE: delete a file. ASIDE: move all files of the folder to
    another folder, because they are those of another journal.
    """

    CREATE = "create"
    APPEND = "append"
    SYNC = "sync"
    CUT = "cut"
    RENAME = "rename"
    REMOVE = "remove"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on a file. to: the new name of RENAME."""

    kind: StepKind
    name: str = ""
    to: str = ""
    offset: int = 0
    data: bytes = b""


Pairing = tuple[int, int]
"""Epoch of the binder (number of its incarnation), and number of its attempt to pair with a copy.

Later pairings are higher.
"""


@dataclass(frozen=True, slots=True)
class CopyBegin:
    """Binder → copy: pair with this binder, and report the files. Idempotent."""

    epoch: int
    attempt: int

    @property
    def pairing(self) -> Pairing:
        return self.epoch, self.attempt


@dataclass(frozen=True, slots=True)
class CopyWrite:
    """Binder → copy: carry out these steps durably. Idempotent.

    copy: the incarnation of the copy whose files the steps continue; another one ignores them.
    number: of the message within its pairing, from 1. lsn: after this message, the copy certainly
    has this record and all earlier ones. is_complete: after this message, the copy has everything
    that was ever acknowledged.
    """

    epoch: int
    attempt: int
    copy: int
    number: int
    steps: tuple[Step, ...]
    lsn: int = 0
    is_complete: bool = True

    @property
    def pairing(self) -> Pairing:
        return self.epoch, self.attempt


@dataclass(frozen=True, slots=True)
class CopyFile:
    """A file of a copy. digest: of its bytes."""

    name: str
    size_bytes: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class CopyState:
    """Copy → binder: the pairing, and the number of the last message that is durable.

    copy: the copy's incarnation. files: the files of its folder, if no `CopyWrite` of the pairing
    was carried out yet; else none.
    """

    epoch: int = 0
    attempt: int = 0
    copy: int = 0
    number: int = 0
    files: tuple[CopyFile, ...] = ()

    @property
    def pairing(self) -> Pairing:
        return self.epoch, self.attempt


@dataclass(frozen=True, slots=True)
class Promote:
    """Supervisor → copy: become the journal. epoch: of the binder that will open it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """Copy → supervisor: the answer to `Promote`. lsn: of the last record that it certainly has.

    why: the reason why it is not promoted; "" if it is.
    """

    lsn: int = 0
    why: str = ""

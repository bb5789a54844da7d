"""The folder of a journal copy: which files are copied, and the mark of an incomplete copy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from roadstead.journal.disk import Disk
from roadstead.journal.headers import NEW_OUTCOME, NEW_SEGMENT, NEW_SNAPSHOT, OUTCOME
from roadstead.journal_copy.messages import CHUNK_BYTES, CopyFile

INCOMPLETE = "copy-is-incomplete"
"""The file in the folder of a copy that may lack acknowledged records: it is not a journal."""

_COPIED = re.compile(r"journal-\d{20}\.segment|snapshot-\d{20}\.snapshot")
_OTHERS = frozenset({NEW_SEGMENT, NEW_SNAPSHOT, OUTCOME, NEW_OUTCOME})


def is_copied(name: str) -> bool:
    """Whether a copy has the file of this name, too."""
    return name in _OTHERS or _COPIED.fullmatch(name) is not None


def copied_names(disk: Disk) -> list[str]:
    """Return the names of the files that a copy has, too."""
    return [name for name in disk.names() if is_copied(name)]


def digest_of(disk: Disk, name: str, size_bytes: int) -> bytes:
    """Return a digest of the first bytes of a file.

    A CRC would not do: headers and frames end with their own CRC, and the CRC of any data followed
    by its CRC is the same constant.
    """
    digest = hashlib.blake2b(digest_size=16)
    for offset in range(0, size_bytes, CHUNK_BYTES):
        digest.update(disk.read_part(name, offset, min(CHUNK_BYTES, size_bytes - offset)))
    return digest.digest()


def copied_files(disk: Disk) -> Iterator[CopyFile]:
    """Yield the files that are copied, with their sizes and digests."""
    for name in copied_names(disk):
        size_bytes = disk.size(name)
        yield CopyFile(name, size_bytes, digest_of(disk, name, size_bytes))


def free_name(folder: Path) -> Path:
    """Return the first unused name of FOLDER.1, FOLDER.2 and so on, in the folder's directory."""
    number = 1
    while (path := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    return path

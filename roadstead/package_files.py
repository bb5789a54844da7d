"""The files of this package, and a digest of them: the same build has the same one everywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE_FOLDER: Final = Path(__file__).resolve().parent

SHIPPED: Final = (".py", ".yaml", ".typed")
"""Endings of the files that belong to the package."""


def package_files() -> Iterator[tuple[str, bytes]]:
    """Yield the path below the package's folder and the contents of each file, links followed."""
    for folder, folders, names in os.walk(PACKAGE_FOLDER, followlinks=True):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        for name in sorted(names):
            if name.endswith(SHIPPED):
                path = Path(folder, name)
                yield path.relative_to(PACKAGE_FOLDER).as_posix(), path.read_bytes()


@cache
def package_digest() -> str:
    """Return a digest of the package's files, computed once for a process."""
    digest = hashlib.sha256()
    for path, content in package_files():
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]

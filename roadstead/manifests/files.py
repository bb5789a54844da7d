"""Reading of files, folders, globs and standard input."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn

from roadstead.protocol.documents import SIZE_MAX_BYTES
from roadstead.protocol.errors import InputError

STDIN = "-"
PIECE_BYTES = 1 << 20
"""How much of a file is read at once."""
SUFFIXES = (".yaml", ".yml", ".json")
_GLOB_CHARS = frozenset("*?[")


def read_texts(paths: Sequence[str], *, stdin: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield (source, text) of every file of the paths, each file once, folders in sorted order.

    Raises:
        InputError: a path without a file, or a file that cannot be read or is too large.
    """
    read_paths: set[str] = set()
    for path in paths:
        for file in [STDIN] if path == STDIN else _files(path):
            real_path = file if file == STDIN else os.path.realpath(file)
            if real_path not in read_paths:
                read_paths.add(real_path)
                yield _read_stdin(stdin) if file == STDIN else _read_file(file)


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        return _folder(path)
    if os.path.exists(path):
        return [path]
    if not _GLOB_CHARS & set(path):
        raise InputError("does not exist", source=path)
    files = [name for name in sorted(glob.glob(path, recursive=True)) if not os.path.isdir(name)]
    if not files:
        raise InputError("matches no file", source=path)
    return files


def _folder(path: str) -> list[str]:
    files = [
        str(Path(folder, name))
        for folder, _, names in os.walk(path, onerror=_refuse_folder)
        for name in names
        if name.endswith(SUFFIXES)
    ]
    if not files:
        raise InputError(f"holds no {', '.join(f'*{suffix}' for suffix in SUFFIXES)}", source=path)
    return sorted(files)


def _refuse_folder(error: OSError) -> NoReturn:
    raise InputError(f"cannot be read: {error.strerror}", source=str(error.filename)) from None


def _read_file(path: str) -> tuple[str, bytes]:
    try:
        with open(path, "rb") as file:
            return path, _bounded(file, path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from None


def _read_stdin(stdin: BinaryIO) -> tuple[str, bytes]:
    return "standard input", _bounded(stdin, "standard input")


def _bounded(file: BinaryIO, source: str) -> bytes:
    # In pieces: a single `read` of the maximum would allocate all of it at once.
    pieces, size = [], 0
    while piece := file.read(PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > SIZE_MAX_BYTES:
            raise InputError(f"is larger than {SIZE_MAX_BYTES} bytes", source=source)
    return b"".join(pieces)

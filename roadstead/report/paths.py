"""Checks that outputs can be written, made before the work of a command, which may take long."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from roadstead.protocol.errors import InputError

JOURNAL_FOLDER: Final = "journal"
"""Name of the folder of the journal in an output directory."""


def check_folder(folder: Path, *, source: str = "", field: str = "") -> None:
    """Raise InputError unless the folder is writable, or can be created.

    source, field: where the folder's name comes from; by default the error names the folder.
    """
    why = _why_not(folder)
    if why and source:
        raise InputError(why, source=source, field=field, value=f'"{folder}"')
    if why:
        raise InputError(why, source=str(folder))


def entries(folder: Path) -> list[Path]:
    """The entries of a folder; empty for one that can be created.

    Raises InputError as `check_folder`, and if the folder cannot be read.
    """
    check_folder(folder)
    try:
        return list(folder.iterdir()) if folder.exists() else []
    except NotADirectoryError as error:
        raise InputError("is not a directory", source=str(folder)) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(folder)) from error


def check_file(path: Path, *, may_replace: bool = True) -> None:
    """Raise InputError unless the file can be written in an existing folder.

    may_replace: an existing file may be replaced.
    """
    try:
        is_folder, exists, has_folder = (
            path.is_dir(),
            path.exists(),
            path.absolute().parent.is_dir(),
        )
    except (OSError, ValueError) as failure:
        raise InputError(f"cannot be written: {_text(failure)}", source=str(path)) from failure
    if is_folder:
        raise InputError("is a directory", source=str(path))
    if not has_folder:
        raise InputError("cannot be written: there is no such directory", source=str(path))
    if not os.access(path if exists else path.absolute().parent, os.W_OK):
        raise InputError("cannot be written: no permission", source=str(path))
    if exists and not may_replace:
        raise InputError("exists; --force replaces it", source=str(path))


def _why_not(folder: Path) -> str:
    """Reason that a folder cannot be written or created; "" if it can be."""
    try:
        path = folder.absolute()
        # The folder, or the nearest parent that exists.
        nearest = next(each for each in (path, *path.parents) if _exists(each))
        if not nearest.is_dir():
            return (
                "is not a directory"
                if nearest == path
                else f"cannot be made: {nearest} is not a directory"
            )
        if os.access(nearest, os.W_OK | os.X_OK):
            return ""
    except (OSError, ValueError) as failure:
        return f"cannot be used: {_text(failure)}"
    if nearest == path:
        return "cannot be written: no permission"
    return f"cannot be made: no permission to write in {nearest}"


def _exists(path: Path) -> bool:
    """Whether the path exists, dangling links included. Raises OSError or ValueError."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _text(failure: Exception) -> str:
    return getattr(failure, "strerror", None) or str(failure)

"""Reading of whole files, within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from roadstead.protocol.errors import InputError

MAX_TEXT_BYTES: Final = 1 << 20
"""Maximum size of a configuration, settings, scenario or similar text; manifests may be larger."""


def read_bytes(path: str | Path, max_bytes: int) -> bytes:
    """Read a file; InputError if it cannot be read or is larger than `max_bytes`."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot be read: {reason}", source=str(path)) from error
    if len(content) > max_bytes:
        raise InputError(f"is larger than {max_bytes} bytes", source=str(path))
    return content


def read_text(path: str | Path, max_bytes: int) -> str:
    """Read a file as UTF-8, without a byte order mark. Raises as `read_bytes`, with the line."""
    content = read_bytes(path, max_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8 text", source=str(path), obj=f"line {line}") from error

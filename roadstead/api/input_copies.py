"""Copies of a scenario's inputs in the folder of its runs: inputs/DIGEST/NAME.

With them a run is played again from its folder alone. DIGEST is of the name and the content of a
file, so each file is copied once. A file that is too large has only its SHA-256 in `run.json`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from roadstead.api.run_folder import DOCUMENT_FILE, INPUTS_FOLDER, StoredInput, replace_text
from roadstead.config.files import read_bytes
from roadstead.config.scenario.read import ScenarioFile
from roadstead.protocol.errors import InputError
from roadstead.scenario.inputs import input_files

COPY_MAX_BYTES: Final = 64 << 20
"""Maximum size of a file that is copied."""

COPIES_MAX_BYTES: Final = 256 << 20
"""Maximum size of all copies; later files are not copied."""


def store_inputs(folder: Path, file: ScenarioFile) -> tuple[StoredInput, ...]:
    """Copy the files of a scenario that was compiled, and write its document.

    Raises InputError for a file that cannot be read or written.
    """
    stored: list[StoredInput] = []
    # By path, so that a file that is named in several places is read once.
    copies: dict[Path, str] = {}
    left_bytes = COPIES_MAX_BYTES
    try:
        (folder / INPUTS_FOLDER).mkdir(exist_ok=True)
        document = json.dumps(file.document, indent=2, default=str)
        replace_text(folder / DOCUMENT_FILE, f"{document}\n")
        for place, path in input_files(file):
            name = file.name_of(path)
            if path not in copies:
                size_bytes = path.stat().st_size
                copies[path] = ""
                if size_bytes <= min(COPY_MAX_BYTES, left_bytes):
                    copies[path] = _copy(folder, path, name)
                    left_bytes -= size_bytes
            stored.append(StoredInput(place=place, name=name, copied_to=copies[path]))
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(problem, source=str(folder / INPUTS_FOLDER)) from error
    return tuple(stored)


def _copy(folder: Path, path: Path, name: str) -> str:
    """Copy a file; return its path relative to the folder. Raises OSError, InputError."""
    content = read_bytes(path, COPY_MAX_BYTES)
    digest = hashlib.sha256(name.encode(errors="surrogateescape") + b"\0" + content).hexdigest()
    copied_to = f"{INPUTS_FOLDER}/{digest[:32]}/{path.name}"
    (folder / copied_to).parent.mkdir(exist_ok=True)
    (folder / copied_to).write_bytes(content)
    return copied_to

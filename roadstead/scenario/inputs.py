"""Digests of everything that a compiled scenario was read from."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Final

from roadstead.config.scenario.read import ScenarioFile
from roadstead.manifests.files import read_texts
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.scenario.compile import manifest_paths

DOCUMENT: Final = "scenario"
"""Name of the scenario itself, with those that it extends."""


def input_digests(file: ScenarioFile) -> tuple[InputDigest, ...]:
    """Return the digests of a scenario, which must have been compiled, and of the files it names.

    The scenario's own digest is that of its content, so comments do not change it. Names of files
    are relative to its directory. Raises InputError for a file that can no longer be read.
    """
    text = json.dumps(file.document, sort_keys=True, default=str)
    found = [InputDigest(DOCUMENT, hashlib.sha256(text.encode()).hexdigest())]
    for path in file.named_files:
        found.append(InputDigest(_name(file, path), digest_of_file(path).sha256))
    if paths := manifest_paths(file):
        for source, content in read_texts(paths, stdin=io.BytesIO(b"")):
            digest = hashlib.sha256(content).hexdigest()
            found.append(InputDigest(_name(file, Path(source)), digest))
    return tuple(found)


def _name(file: ScenarioFile, path: Path) -> str:
    return os.path.relpath(path, file.main.directory)

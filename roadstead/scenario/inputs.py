"""Digests of everything that a compiled scenario was read from."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from roadstead.config.scenario.read import ScenarioFile
from roadstead.manifests.files import read_texts
from roadstead.report.result import InputDigest, digest_of_file
from roadstead.scenario.compile import manifest_paths, manifest_places

DOCUMENT: Final = "scenario"
"""Name of the scenario itself, with those that it extends."""


def input_digests(file: ScenarioFile) -> tuple[InputDigest, ...]:
    """Return the digests of a scenario, which must have been compiled, and of the files it names.

    The scenario's own digest is that of its content, so comments do not change it. Names of files
    are relative to its directory. Raises InputError for a file that can no longer be read.
    """
    return (document_digest(file), *FileDigests().of(file))


def document_digest(file: ScenarioFile) -> InputDigest:
    """Return the digest of a scenario's content, without the files that it names."""
    text = json.dumps(file.document, sort_keys=True, default=str)
    return InputDigest(DOCUMENT, hashlib.sha256(text.encode()).hexdigest())


class FileDigests:
    """Compute digests of the files of scenarios that were compiled, of each file once."""

    def __init__(self) -> None:
        self._digested: set[object] = set()

    def of(self, file: ScenarioFile) -> Iterator[InputDigest]:
        """Yield the digests of the files of a scenario that no earlier one has. InputError."""
        for path in dict.fromkeys(file.named_files.values()):
            if self._is_new(path):
                yield InputDigest(file.name_of(path), digest_of_file(path).sha256)
        paths = manifest_paths(file)
        if paths and self._is_new(tuple(paths)):
            for source, content in read_texts(paths, stdin=io.BytesIO(b"")):
                digest = hashlib.sha256(content).hexdigest()
                yield InputDigest(file.name_of(Path(source)), digest)

    def _is_new(self, key: object) -> bool:
        is_new = key not in self._digested
        self._digested.add(key)
        return is_new


def input_files(file: ScenarioFile) -> Iterator[tuple[str, Path]]:
    """Yield (place in the document, file) for all files of a scenario that was compiled.

    Manifests are in the order in which they are read, each once. Raises InputError.
    """
    yield from file.named_files.items()
    yielded: set[str] = set()
    for place, paths in manifest_places(file):
        for source, _ in read_texts(paths, stdin=io.BytesIO(b"")):
            real = os.path.realpath(source)
            if real not in yielded:
                yielded.add(real)
                yield place, Path(source)

"""The results of a sweep, stored one by one: a file of lines, from which a stopped sweep continues.

The first line is a header with the plan of the sweep, each further one a result, in JSON:

    {"format": "roadstead-sweep", "version": 1, "code": "…", "tasks": 12, "plan": {…}}
    {"task": 3, "result": …}

A process that is killed may leave a part of a line at the end; the next process that opens the file
cuts it off.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, cast

from roadstead.package_files import package_digest
from roadstead.protocol.errors import InputError, cut_short
from roadstead.sweeps.tasks import Plain

RESULTS_FILE_NAME: Final = "results.jsonl"
"""Name of the file in the output folder of a sweep."""

FORMAT: Final = "roadstead-sweep"
VERSION: Final = 1
LINE_MAX_BYTES: Final = 1 << 24
REMEDY: Final = "name a new directory"

NOT_JSON: Final = (ValueError, RecursionError)


def header_of(plan: Mapping[str, Plain], tasks: int) -> dict[str, Plain]:
    """Return the header of a sweep.

    plan: all that decides its results, in JSON's types. tasks: their number.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "code": package_digest(),
        "tasks": tasks,
        "plan": dict(plan),
    }


class ResultsFile:
    """The open file; locked, so that no second process continues the same sweep."""

    def __init__(self, file: BinaryIO, path: Path, stored: Mapping[int, Plain]) -> None:
        self._file, self._path = file, path
        self._stored = dict(stored)

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Plain]) -> ResultsFile:
        """Make the file, or empty it. InputError if it cannot be written."""
        file = _locked(path)
        # An error closes the file, which unlocks it.
        with ExitStack() as on_error:
            on_error.callback(file.close)
            created = cls._emptied(file, path, header)
            on_error.pop_all()
        return created

    @classmethod
    def _emptied(cls, file: BinaryIO, path: Path, header: Mapping[str, Plain]) -> ResultsFile:
        try:
            file.truncate(0)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error
        emptied = cls(file, path, {})
        emptied._append(header)
        return emptied

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Plain]) -> ResultsFile:
        """Open the file of the same plan, or make it if it does not exist.

        InputError if it is of another plan or of other code of Roadstead, or no such file.
        """
        file = _locked(path)
        with ExitStack() as on_error:
            on_error.callback(file.close)
            contents = _read(file, path)
            if contents is None:
                opened = cls._emptied(file, path, header)
            else:
                stored_header, results = contents
                _check_same(stored_header, header, path)
                opened = cls(file, path, results)
            on_error.pop_all()
        return opened

    def stored(self) -> Mapping[int, Plain]:
        """Return the results by task."""
        return self._stored

    def add(self, task: int, result: Plain) -> None:
        """Append a result. InputError if the file cannot be written."""
        self._append({"task": task, "result": result})
        self._stored[task] = result

    def _append(self, document: Mapping[str, Plain]) -> None:
        line = json.dumps(document).encode() + b"\n"
        try:
            # One write: if the process is killed, only the last line may be incomplete.
            written = self._file.write(line)
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise InputError(problem, source=str(self._path)) from error
        if written != len(line):
            raise InputError("cannot be written: the disk is full", source=str(self._path))

    def close(self) -> None:
        """Close the file, which unlocks it. A second call does nothing."""
        self._file.close()


def refuse_unfinished(path: Path) -> None:
    """Raise InputError if there is a file of a sweep with fewer results than tasks.

    InputError also for a file that cannot be read, or is none of a sweep.
    """
    try:
        with path.open("rb") as file:
            contents = _read(file, path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=str(path)) from error
    if contents is None:
        return
    header, results = contents
    if len(results) < int(str(header["tasks"])):
        problem = f"holds an unfinished sweep: continue it with --resume, or {REMEDY}"
        raise InputError(problem, source=str(path))


def _locked(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(path)) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InputError("is in use by another process", source=str(path)) from error
    return cast("BinaryIO", file)


def _read(file: BinaryIO, path: Path) -> tuple[dict[str, Plain], dict[int, Plain]] | None:
    """Return the header and the results; None for a file without a complete header.

    Cuts off a last line without its end. InputError for anything else that is not such a file.
    """
    file.seek(0)
    content = file.read()
    complete_bytes = content.rfind(b"\n") + 1
    lines = content[:complete_bytes].splitlines()
    # A process that was killed while it wrote leaves part of a line; its task is run again.
    if complete_bytes < len(content) and file.writable():
        file.truncate(complete_bytes)
    if not lines:
        return None
    header = _json_object(lines[0], path, 1)
    total = _count_or_none(header.get("tasks"))
    is_header = header.get("format") == FORMAT and header.get("version") == VERSION
    if not is_header or total is None or not isinstance(header.get("plan"), dict):
        problem = f"is no file of results of a sweep (format {FORMAT}, version {VERSION})"
        raise InputError(problem, source=str(path))
    results: dict[int, Plain] = {}
    for number, line in enumerate(lines[1:], 2):
        row = _json_object(line, path, number)
        task = _count_or_none(row.get("task"))
        if task is None or task >= total or "result" not in row:
            problem = f"must have a result, and a task below {total}"
            raise InputError(problem, source=str(path), field=f"line {number}")
        results[task] = row["result"]
    return header, results


def _count_or_none(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _json_object(line: bytes, path: Path, number: int) -> dict[str, Plain]:
    if len(line) > LINE_MAX_BYTES:
        problem = f"is longer than {LINE_MAX_BYTES:,} bytes"
        raise InputError(problem, source=str(path), field=f"line {number}")
    try:
        document = json.loads(line)
    except NOT_JSON as error:
        raise InputError("is no JSON", source=str(path), field=f"line {number}") from error
    if not isinstance(document, dict):
        raise InputError("must be an object", source=str(path), field=f"line {number}")
    return document


def _check_same(stored: Mapping[str, Plain], wanted: Mapping[str, Plain], path: Path) -> None:
    """Raise InputError, with the first difference, unless both headers are equal."""
    before, now = _as_json(stored), _as_json(wanted)
    if before == now:
        return
    plan, wanted_plan = before.pop("plan"), now.pop("plan")
    if isinstance(plan, dict) and isinstance(wanted_plan, dict):
        for key in {**plan, **wanted_plan}:
            if plan.get(key) != wanted_plan.get(key):
                stored_text = cut_short(json.dumps(plan.get(key)))
                text = cut_short(json.dumps(wanted_plan.get(key)))
                problem = f"was begun with {stored_text}, and this command has {text}: {REMEDY}"
                raise InputError(problem, source=str(path), field=key)
    problem = f"was begun by other code of Roadstead, whose results may differ: {REMEDY}"
    raise InputError(problem, source=str(path))


def _as_json(header: Mapping[str, Plain]) -> dict[str, Plain]:
    document: dict[str, Plain] = json.loads(json.dumps(dict(header)))
    return document

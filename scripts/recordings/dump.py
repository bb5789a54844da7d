"""Our own answers, written for each case in the form of the recording."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from scripts.recordings.suites import Answer


def write_answers(folder: Path, answers: list[Answer]) -> list[Path]:
    """Write our answers for one recorded file; return the files written.

    `folder`/suite/file has the first path's answer: the recording's suite, name and nodes, and our
    decisions in place of the recorded ones. The answer of another path gets a file of its own, with
    the path in its name, only if it differs.
    """
    written: list[Path] = []
    for answer in answers:
        same = answer.result.ours == answers[0].result.ours
        if answer is not answers[0] and same:
            continue
        name = answer.file.name
        if answer is not answers[0]:
            name = f"{name.removesuffix('.json.gz')}.{answer.path_name}.json.gz"
        target = folder / answer.suite / name
        target.parent.mkdir(parents=True, exist_ok=True)
        document = {**answer.header, "path": answer.path_name, **answer.result.ours}
        data = json.dumps(document, separators=(",", ":")).encode()
        target.write_bytes(gzip.compress(data, mtime=0))
        written.append(target)
    return written

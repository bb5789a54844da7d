"""Structured logs: one JSON object per line, one file per process, if the run has a log folder.

    {"at": "2026-01-31T12:00:00.123456+00:00", "level": "info", "actor": "scheduler-0",
     "event": "batch decided", "pods": 512, "placed": 510}

Logging never fails a run: for a folder that cannot be written, one warning is printed on standard
error.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

ROOT = "roadstead"
"""Name of the parent of all loggers; the logger of an actor is `roadstead.<actor>`."""

MAX_ERROR_CHARS = 8_192
"""Characters of a traceback in one line; its end is kept, which names the error."""

LOG_SUFFIX = ".jsonl"

Field = str | int | float | bool | None
"""Value of a field of a log line."""


class JsonLines(logging.Formatter):
    """Formatter of a record as one line of JSON; the fields of `log` are keys of the object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Field] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "actor": record.name.removeprefix(f"{ROOT}."),
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)[-MAX_ERROR_CHARS:]
        return json.dumps(line, default=str)


def open_log(folder: str, process: str) -> None:
    """Write the logs of this process to `folder/process.jsonl`; a folder "" opens none.

    Without a log, only warnings are printed. Opening the same log again changes nothing.
    """
    root = logging.getLogger(ROOT)
    if not folder:
        return
    path = Path(folder) / f"{process}{LOG_SUFFIX}"
    # A log in another folder stays open: it is that of another run in this process.
    opened = [each for each in root.handlers if isinstance(each, logging.FileHandler)]
    if any(handler.baseFilename == str(path.resolve()) for handler in opened):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path.resolve(), encoding="utf-8")
    except OSError as failure:
        root.warning("cannot write logs to %s: %s", folder, failure.strerror)
        return
    handler.setFormatter(JsonLines())
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False


def log_folder() -> Path | None:
    """Return the folder of this process's log; None if no log is open."""
    handlers = logging.getLogger(ROOT).handlers
    files = (each for each in handlers if isinstance(each, logging.FileHandler))
    return next((Path(each.baseFilename).parent for each in files), None)


def close_logs() -> None:
    """Close the log that `open_log` opened in this process."""
    root = logging.getLogger(ROOT)
    for handler in list(root.handlers):
        if isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
            handler.close()


def log(actor: str, event: str, **fields: Field) -> None:
    """Log one event of an actor, with fields."""
    logging.getLogger(f"{ROOT}.{actor}").info(event, extra={"fields": fields})

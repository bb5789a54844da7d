"""Warnings of a run's processes for the user: kept in each process, shown by the driver.

    logger of a process ──► ProcessWarnings ── reply to STATUS ──► WarningLimit ──► user

STATUS is the message by which the supervisor, in the driver, reads the state of each actor.
Both ends are bounded: a plugin that warns for each pod fills neither memory nor the terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final
from weakref import WeakSet

from roadstead.actors.logs import ROOT

MAX_LINES: Final = 20
"""Number of warnings that a process keeps, and of those that the driver shows in `WINDOW_S`."""

WINDOW_S: Final = 60.0

MAX_CHARS: Final = 300
"""Characters of one warning; longer ones are cut."""

LOG_HINT: Final = "--log DIR writes all warnings of Roadstead"


class ProcessWarnings(logging.Handler):
    """The first `MAX_LINES` warnings of this process since the last `collect`.

    It is a handler of the loggers of Roadstead and of all others, such as those of users' plugins.
    """

    def __init__(self, process: str) -> None:
        """process: its name, which is part of each line."""
        super().__init__(logging.WARNING)
        self._process = process
        # Weak: a record, perhaps with a traceback, is dropped once it has passed the loggers.
        self._handled: WeakSet[logging.LogRecord] = WeakSet()
        self._lines: list[str] = []
        self._left_out = 0

    def open(self) -> None:
        """Begin to keep warnings."""
        # With a log file, records of the logger ROOT do not propagate to the root logger (None), so
        # both need the handler.
        for name in (ROOT, None):
            logging.getLogger(name).addHandler(self)

    def close(self) -> None:
        """Keep no further warnings."""
        for name in (ROOT, None):
            logging.getLogger(name).removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record as one line, as `logging` requires it."""
        if record in self._handled:
            # Both loggers pass it to this handler.
            return
        self._handled.add(record)
        if len(self._lines) >= MAX_LINES:
            self._left_out += 1
            return
        try:
            self._lines.append(self._line(record))
        except Exception:
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> str:
        actor = record.name.removeprefix(f"{ROOT}.")
        who = self._process if actor == self._process else f"{self._process} ({actor})"
        text = f"{who}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            failure = record.exc_info[1]
            text += f" ({type(failure).__name__}: {failure})"
        text = " ".join(text.split())
        return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"

    def collect(self) -> tuple[str, ...]:
        """Return and forget the lines; the last one counts the warnings that were left out."""
        self.acquire()
        try:
            lines, left_out = self._lines, self._left_out
            self._lines, self._left_out = [], 0
        finally:
            self.release()
        if left_out:
            lines.append(f"{self._process}: {left_out:,} further warnings")
        return tuple(lines)


class WarningLimit:
    """Selection of the warnings that the user sees: `MAX_LINES` in each `WINDOW_S`.

    _began_s: start of the present window. _shown, _left_out: numbers of lines in it.
    """

    def __init__(self) -> None:
        self._began_s = float("-inf")
        self._shown = self._left_out = 0

    def admitted(self, lines: Iterable[str], now_s: float) -> list[str]:
        """Return the lines to show now, after a count of those that the last window left out."""
        admitted: list[str] = []
        if now_s >= self._began_s + WINDOW_S:
            admitted += self.left_out()
            self._began_s, self._shown = now_s, 0
        for line in lines:
            if self._shown < MAX_LINES:
                self._shown += 1
                admitted.append(line)
            else:
                self._left_out += 1
        return admitted

    def left_out(self) -> list[str]:
        """Return a line with the number of lines left out since the last such line; [] if none."""
        count, self._left_out = self._left_out, 0
        return [f"{count:,} further warnings are not shown; {LOG_HINT}"] if count else []

"""Transcript: the last messages that an actor handled, for the error that ends a run.

    message ──► note ──► method, size … ──► excerpt: a few lines after an unexpected error's text
                   └───► bytes ───────────► save: a file next to the logs (`--log`), for replay

Only the last notes and bytes are kept (`MAX_NOTED`, `MAX_KEPT_BYTES`). A message costs two appends;
its bytes are not copied.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from roadstead.actors.interface import TRANSCRIPT, clock_s
from roadstead.actors.logs import log, log_folder
from roadstead.actors.messages.common import STATUS
from roadstead.actors.messages.queueing import QUEUE_STATE
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.errors import cut_short
from roadstead.protocol.plain_data import CodecError, DecodeLimits, pack, unpack

MAX_NOTED = 64
"""Number of messages whose method, size and sender are kept."""

MAX_KEPT_BYTES, MAX_KEPT = 256 * 1024, 4096
"""Bytes, and number, of the messages that are kept in full. These contain names and facts of pods;
they are written only if the user asked for logs, to a file that only its owner can read."""

EXCERPT_MAX_LINES = 8
"""Maximum number of lines, each for consecutive messages of one method from one sender."""

NAME_MAX_CHARS = 64
"""Length of a noted method or sender: a broken sender may send names of any length."""

ERROR_MAX_CHARS = 8_192
"""Length of the error's text in a file."""

POLLED = (STATUS.name, QUEUE_STATE.name)
"""Requests that are sent several times a second and change nothing. They are left out, since they
would displace the messages that led to the error."""

SUFFIX = ".transcript"
_MAGIC = b"RSTRANS1"
# Twice the bytes of the messages, for the fields around them.
_LIMITS = DecodeLimits(max_bytes=2 * MAX_KEPT_BYTES)


class _MessageNote(NamedTuple):
    at_s: float
    method: str
    size: int
    sender: str
    epoch: int


@dataclass(frozen=True, slots=True)
class SavedMessage:
    """One envelope as it was received. at_s: by the clock of the actor's loop."""

    at_s: float
    data: bytes


@dataclass(frozen=True, slots=True)
class SavedTranscript:
    """Content of a file: the last of the `handled` messages of an actor, oldest first."""

    actor: str
    error: str
    handled: int
    messages: tuple[SavedMessage, ...]

    @property
    def is_complete(self) -> bool:
        """Whether no message is missing, so that a replay raises the same error.

        The replay needs an actor that is built in the same way; a binder also needs its journal as
        it was at the start.
        """
        return len(self.messages) == self.handled


class Transcript:
    """The last messages of one incarnation of an actor.

    _handled: number of messages so far. _kept: time and bytes of the last ones. _saved: path of the
    file, "" if it could not be written, None before the first error.
    """

    __slots__ = ("_actor", "_handled", "_kept", "_kept_bytes", "_notes", "_saved")

    def __init__(self, actor: str) -> None:
        self._actor = actor
        self._handled = 0
        self._notes: deque[_MessageNote] = deque(maxlen=MAX_NOTED)
        self._kept: deque[tuple[float, bytes]] = deque()
        self._kept_bytes = 0
        self._saved: str | None = None

    def note(self, envelope: Envelope, data: bytes) -> None:
        """Keep a message that is about to be handled. data: the envelope's bytes."""
        if envelope.kind in POLLED:
            return
        now_s, size = clock_s(), len(data)
        method, sender = envelope.kind[:NAME_MAX_CHARS], envelope.token[:NAME_MAX_CHARS]
        self._notes.append(_MessageNote(now_s, method, size, sender, envelope.epoch))
        self._handled += 1
        self._kept.append((now_s, data))
        self._kept_bytes += size
        # A message that is too large is removed with all before it, so that there are no gaps.
        while self._kept_bytes > MAX_KEPT_BYTES or len(self._kept) > MAX_KEPT:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def excerpt(self, error: str) -> str:
        """Return the last messages in a few lines that begin with `TRANSCRIPT`; "" if none.

        For the first error, the messages are also saved next to the logs.
        """
        if not self._notes:
            return ""
        now_s = clock_s()
        groups = [
            list(each) for _, each in groupby(self._notes, lambda m: (m.method, m.sender, m.epoch))
        ]
        lines = [_line(group, now_s) for group in groups[-EXCERPT_MAX_LINES:]]
        shown = sum(map(len, groups[-EXCERPT_MAX_LINES:]))
        lines.insert(0, f"{TRANSCRIPT}{self._actor}, {shown} of {self._handled}, oldest first:")
        if self._saved is None:
            self._saved = self._save(error)
        if self._saved:
            lines.append(f"  All that is kept of them: {self._saved}")
        # A path may contain bytes that are not UTF-8.
        return "\n".join(lines).encode(errors="backslashreplace").decode()

    def _save(self, error: str) -> str:
        """Write the messages next to the logs; return the path, "" without logs or on failure."""
        folder = log_folder()
        if folder is None:
            return ""
        text = error[:ERROR_MAX_CHARS]
        messages = tuple(SavedMessage(at_s, data) for at_s, data in self._kept)
        saved = SavedTranscript(self._actor, text, self._handled, messages)
        path = folder / f"{self._actor}{SUFFIX}"
        try:
            # A new file: one of an earlier run may be a link, or readable by others.
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + pack(to_wire(saved)))
        except OSError as failure:
            log(self._actor, "the transcript cannot be written", why=failure.strerror)
            return ""
        return str(path)


def _line(group: list[_MessageNote], now_s: float) -> str:
    """Return the line for consecutive messages of one method from one sender."""
    last = group[-1]
    times = f" x {len(group)}" if len(group) > 1 else ""
    sender = f"{_printable(last.sender)} (epoch {last.epoch})" if last.sender else "the driver"
    size, ago_s = sum(each.size for each in group), now_s - last.at_s
    return f"  {_printable(last.method)}{times} from {sender}, {size:,} bytes, {ago_s:.3f} s before"


def _printable(name: str) -> str:
    return name if name.isprintable() else cut_short(name)


def read_transcript(path: Path) -> SavedTranscript:
    """Read the transcript that an actor wrote. CodecError for any other file."""
    with path.open("rb") as file:
        data = file.read(len(_MAGIC) + _LIMITS.max_bytes + 1)
    if not data.startswith(_MAGIC):
        raise CodecError("not a transcript")
    return from_wire(SavedTranscript, unpack(data[len(_MAGIC) :], _LIMITS, typed=True))

"""SIGINT and SIGTERM end a command as an exception does, once; a second one ends it at once.

Upstream: none. Shells expect the exit status 128 + signal.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

SHELLS_BASE = 128
"""A process that a signal ended has this much more than its number as exit status, in shells."""


class Interrupted(KeyboardInterrupt):
    """A command was asked to end. kept: what of its work is kept, and how it is continued."""

    def __init__(self, signum: int, kept: str = "") -> None:
        super().__init__(signum)
        self.signum = signum
        self.kept = kept

    @property
    def status(self) -> int:
        """The exit status of the command."""
        return SHELLS_BASE + self.signum

    def __str__(self) -> str:
        return f"Interrupted by {signal.Signals(self.signum).name}. {self.kept}".rstrip()


class _Handler:
    """What signals do: raise where the main thread is, or call what is set for the time being."""

    def __init__(self) -> None:
        self.instead: Callable[[], None] | None = None
        self.came: int | None = None

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if self.came is not None:
            os._exit(SHELLS_BASE + signum)
        self.came = signum
        if self.instead is None:
            raise Interrupted(signum)
        self.instead()


_current: list[_Handler] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """While it lasts, SIGINT and SIGTERM raise Interrupted in the main thread.

    In another thread, and for signals that this process ignores, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _Handler()
    before = {each: signal.getsignal(each) for each in SIGNALS}
    heard = [each for each in SIGNALS if before[each] is not signal.SIG_IGN]
    _current.append(handler)
    try:
        for each in heard:
            signal.signal(each, handler)
        yield
    finally:
        _current.remove(handler)
        for each in heard:
            signal.signal(each, before[each])


@contextmanager
def interrupting_by(cancel: Callable[[], None]) -> Iterator[None]:
    """While it lasts, a signal calls `cancel`, which has the work inside end by itself.

    Interrupted afterwards, whatever came of the work, where a signal came.
    """
    if not _current:
        yield
        return
    handler = _current[-1]
    handler.instead = cancel
    try:
        yield
    finally:
        handler.instead = None
        if handler.came is not None:
            raise Interrupted(handler.came)

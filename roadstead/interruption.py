"""SIGINT and SIGTERM: the first raises an exception, a second one ends the process immediately.

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
"""Base of the exit status of a process that a signal ended; the signal's number is added."""


class Interrupted(KeyboardInterrupt):
    """A command was interrupted by a signal.

    kept: for the message, which part of its work is kept, and how to continue it.
    """

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
    """Signal handler: raises in the main thread, or calls `instead` while that is set."""

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
    """Let SIGINT and SIGTERM raise Interrupted in the main thread, inside the block.

    Nothing changes in another thread, and for signals that this process ignores.
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
    """Let a signal call `cancel` inside the block, so that the work there ends in order.

    After the block Interrupted is raised if there was a signal, whatever the result of the work.
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

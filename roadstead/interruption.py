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

SIGNAL_STATUS_BASE = 128
"""Base of the exit status of a process that a signal ended; the signal's number is added."""


class Interrupted(KeyboardInterrupt):
    """A command was interrupted by a signal.

    kept: sentence for the message: which part of the work is kept, and how to continue it.
    """

    def __init__(self, signum: int, kept: str = "") -> None:
        super().__init__(signum)
        self.signum = signum
        self.kept = kept

    @property
    def status(self) -> int:
        """The exit status of the command."""
        return SIGNAL_STATUS_BASE + self.signum

    def __str__(self) -> str:
        return f"Interrupted by {signal.Signals(self.signum).name}. {self.kept}".rstrip()


class _Handler:
    """Signal handler: raises Interrupted, or calls `cancel` if it is set; exits on a second signal.

    received: number of the first signal, None before it.
    """

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.received: int | None = None

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(SIGNAL_STATUS_BASE + signum)
        self.received = signum
        if self.cancel is None:
            raise Interrupted(signum)
        self.cancel()


_current: list[_Handler] = []
"""The handlers of the `interruptible` blocks of the main thread, the innermost last."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise Interrupted in the main thread, inside the block.

    Does nothing in another thread, which cannot set handlers, and leaves ignored signals ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _Handler()
    handlers_before = {each: signal.getsignal(each) for each in SIGNALS}
    handled = [each for each in SIGNALS if handlers_before[each] is not signal.SIG_IGN]
    _current.append(handler)
    try:
        for each in handled:
            signal.signal(each, handler)
        yield
    finally:
        _current.remove(handler)
        for each in handled:
            signal.signal(each, handlers_before[each])


@contextmanager
def cancelling_on_signal(cancel: Callable[[], None]) -> Iterator[None]:
    """Let a signal call `cancel` inside the block instead of raising, so that work ends in order.

    If there was a signal, Interrupted is raised after the block, whatever the result of the work.
    """
    if not _current:
        yield
        return
    handler = _current[-1]
    handler.cancel = cancel
    try:
        yield
    finally:
        handler.cancel = None
        if handler.received is not None:
            raise Interrupted(handler.received)

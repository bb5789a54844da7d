"""An event loop with virtual time: when nothing is ready, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from roadstead.protocol.errors import RoadsteadError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

VIRTUAL_START_S = 1_000.0
"""Start of virtual time: not 0, which a program may take for "no time"."""


class StalledError(RoadsteadError):
    """Nothing is ready, and no timer is set: the loop would wait forever."""


class _JumpingSelector(selectors.SelectSelector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = VIRTUAL_START_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise StalledError("the simulation stalled: no timer, no message, no work")
        self.now_s += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` is in virtual seconds. No threads, no sockets."""

    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        self.late_s: Callable[[], float] = lambda: 0.0
        """Delay of the next timer, whether of a sleep or a deadline."""
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now_s

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_on_time(when + self.late_s(), callback, *args, context=context)

    def call_on_time(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback like `call_at`, but never late."""
        return super().call_at(when, callback, *args, context=context)


def run_virtual(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on a new virtual loop. StalledError if it would wait forever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())

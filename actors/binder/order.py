"""Batches of one scheduler are committed in the order in which they were decided.

A later batch may rest on what an earlier one takes or leaves: overtaken, it is refused and its
pods are tried again. Sending waits for the batch before, the binder for the number before; neither
waits for long, since a message may be lost, and order is no promise.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

HOLD_S = 0.05
"""How long a batch waits for the one before it: many times what a message takes."""

MAX_HELD = 64
"""Batches of one scheduler that wait at the binder; more are taken as they come."""


class SendOrder:
    """A scheduler's part: numbers its batches, from 1, as they were decided."""

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None
        self._number = 0

    def begin(self) -> Turn:
        """The turn of the next batch; to be called in the order in which batches are decided."""
        turn = Turn(self, self._last)
        self._last = turn.over
        return turn

    def number(self) -> int:
        self._number += 1
        return self._number


@dataclass(slots=True)
class Turn:
    """The turn of one batch. `over` is set once it was sent, or will not be."""

    order: SendOrder
    before: asyncio.Event | None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def comes(self) -> int:
        """The number of the batch, once the one before is on its way, or late."""
        if self.before is not None and not self.before.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_S):
                    await self.before.wait()
        self.before = None
        self.over.set()
        return self.order.number()


@dataclass(slots=True)
class _Stream:
    """Batches of one life of a scheduler. next: the number that is due."""

    epoch: int
    next: int = 1
    held: dict[asyncio.Future[None], int] = field(default_factory=dict)


class BindOrder:
    """The binder's part: holds a batch back until those before it have come."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}

    async def turn(self, owner: str, epoch: int, number: int) -> None:
        """Return when a batch is due, late, or comes a second time. 0: of no order."""
        stream = self._streams.get(owner)
        if stream is None or stream.epoch < epoch:
            stream = self._streams[owner] = _Stream(epoch)
        if not number or stream.epoch > epoch:
            return
        if number > stream.next and len(stream.held) < MAX_HELD:
            await self._hold(stream, number)
        if number >= stream.next:
            stream.next = number + 1
            for future, held in list(stream.held.items()):
                if held <= stream.next and not future.done():
                    future.set_result(None)

    async def _hold(self, stream: _Stream, number: int) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stream.held[future] = number
        try:
            async with asyncio.timeout(HOLD_S):
                await future
        except TimeoutError:
            return
        finally:
            del stream.held[future]

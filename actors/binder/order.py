"""Order of a scheduler's batches: they are committed in the order in which they were decided.

A later batch may depend on the placements or evictions of an earlier one; if it overtakes that
batch, it is refused and its pods are tried again. The scheduler sends a batch after the previous
one, and the binder waits for the batch with the previous number. Both waits are short, because a
message may be lost: the order is likely, not guaranteed.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

HOLD_S = 0.05
"""How long a batch waits for the previous one: many times the delay of a message."""

MAX_WAITING = 64
"""Maximum number of one scheduler's batches that wait at the binder; others are not delayed."""


class SendOrder:
    """The scheduler's side: numbers its batches, from 1, as they are sent.

    That is the order of their decision, unless one is late for its turn. _last: `ended` of the last
    turn. _number: of the batch that was sent last.
    """

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None
        self._number = 0

    def begin(self) -> Turn:
        """Return the turn of the next batch; call it in the order in which batches are decided."""
        turn = Turn(self, self._last)
        self._last = turn.ended
        return turn

    def next_number(self) -> int:
        """Return the number of the batch that is sent now."""
        self._number += 1
        return self._number


@dataclass(slots=True)
class Turn:
    """The turn of one batch.

    ended: set when the batch is sent, or will not be sent. before: `ended` of the previous batch.
    """

    order: SendOrder
    before: asyncio.Event | None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_turn(self) -> int:
        """Return the number of the batch, once the previous one is sent, or `HOLD_S` is over."""
        if self.before is not None and not self.before.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_S):
                    await self.before.wait()
        self.before = None
        self.ended.set()
        return self.order.next_number()


@dataclass(slots=True)
class _SchedulerBatches:
    """Batches of one incarnation of a scheduler.

    next: the number that is due. waiting: numbers of the batches that wait, by future.
    """

    epoch: int
    next: int = 1
    waiting: dict[asyncio.Future[None], int] = field(default_factory=dict)


class BindOrder:
    """The binder's side: holds a batch back until the previous ones were received."""

    def __init__(self) -> None:
        self._by_scheduler: dict[str, _SchedulerBatches] = {}

    async def wait_for_previous(self, owner: str, epoch: int, number: int) -> None:
        """Return when a batch is due or has waited `HOLD_S`.

        A repeated batch and one of an earlier epoch do not wait. number: of the batch; 0 if it has
        none, then it does not wait either.
        """
        batches = self._by_scheduler.get(owner)
        if batches is None or batches.epoch < epoch:
            batches = self._by_scheduler[owner] = _SchedulerBatches(epoch)
        if not number or batches.epoch > epoch:
            return
        if number > batches.next and len(batches.waiting) < MAX_WAITING:
            await self._hold(batches, number)
        if number >= batches.next:
            batches.next = number + 1
            for future, waiting_number in list(batches.waiting.items()):
                if waiting_number <= batches.next and not future.done():
                    future.set_result(None)

    async def _hold(self, batches: _SchedulerBatches, number: int) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batches.waiting[future] = number
        try:
            async with asyncio.timeout(HOLD_S):
                await future
        except TimeoutError:
            return
        finally:
            del batches.waiting[future]

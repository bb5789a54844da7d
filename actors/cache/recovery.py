"""The cache's part in a recovery: ends for attempts whose scheduler or time is over.

It asks the binder about assumptions whose time is over (I6), and compares the cache with one made
anew (upstream's cache debugger does so on SIGUSR2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.cache.room_reports import RoomReports
from roadstead.actors.logs import log
from roadstead.actors.messages.recovery import (
    RESOLVE,
    STORAGE_LOG,
    Attempts,
    Owner,
    OwnerEnds,
)
from roadstead.actors.names import BINDER, CACHE
from roadstead.actors.seam import NOTHING, Directory, PatientRef, clock_s
from roadstead.cache import BinderAnswer, SchedulerCache
from roadstead.protocol.errors import RoadsteadError

EXPIRY_S = 1.0
"""How often the cache looks for assumptions whose time is over."""

COMPARE_S = 60.0
"""How often the cache compares itself with one made anew."""

COMPARE_MOST = 100_000
"""Nodes and pods beyond which it does so only when asked: nothing else goes on meanwhile."""


class CacheRecovery:
    """Ends attempts that nobody else ends."""

    def __init__(
        self, cache: SchedulerCache, room: RoomReports, directory: Directory, call_s: float
    ) -> None:
        self._cache, self._room = cache, room
        self._directory, self._call_s = directory, call_s
        self._minding: asyncio.Task[None] | None = None

    async def owner_ends(self, end: OwnerEnds) -> None:
        """A scheduler's earlier lives are over: what is bound is confirmed, the rest forgotten."""
        owner, nodes = end.owner, dict(zip(end.uids, end.nodes, strict=True))
        await self._room.report(self._cache.end_owner(owner.name, owner.epoch, nodes))
        if self._cache.orphaned_claims(owner.name, owner.epoch):
            await self._end_claims(owner)

    async def _end_claims(self, owner: Owner) -> None:
        """What the binder committed of claims stays; the rest is free, as nobody asks for it."""
        binder = PatientRef(self._directory.find(BINDER))
        changes = (await binder.call(STORAGE_LOG, NOTHING, timeout_s=self._call_s)).changes
        committed = {claim.key for change in changes for claim in change.claims}
        self._cache.end_claims(owner.name, owner.epoch, committed)

    def mind(self) -> None:
        """Begin to look after assumptions, once there can be any."""
        if self._minding is None:
            self._minding = asyncio.create_task(self._mind(), name="cache expiry")

    async def _mind(self) -> None:
        compared_s = clock_s()
        while True:
            await asyncio.sleep(EXPIRY_S)
            try:
                await self.expire()
            except RoadsteadError as failure:
                log(CACHE, "the binder was not reached", why=str(failure))
            counted = self._cache.state.core.placements
            size = len(counted.nodes) + len(counted)
            if clock_s() - compared_s >= COMPARE_S and size <= COMPARE_MOST:
                compared_s = clock_s()
                self._report(self._cache.differences())

    async def expire(self) -> None:
        """Ask the binder about assumptions whose time is over; its answers end them."""
        asks = self._cache.expire(clock_s())
        if not asks:
            return
        binder = self._directory.find(BINDER)
        ask = Attempts(tuple(each.uid for each in asks), tuple(each.token for each in asks))
        found = await binder.call(RESOLVE, ask, timeout_s=self._call_s)
        answers = [
            BinderAnswer(each.uid, each.token, node or None)
            for each, node in zip(asks, found.nodes, strict=True)
        ]
        outcome = self._cache.resolve(answers)
        log(CACHE, "assumptions were over", asked=len(asks), unheeded=outcome.late)
        await self._room.report(outcome.freed)

    def compare(self) -> list[str]:
        """Differences from a cache made anew of what this one knows, one line each."""
        lines = self._cache.differences()
        self._report(lines)
        return lines

    def _report(self, lines: Sequence[str]) -> None:
        log(
            CACHE, "compared with one made anew", differences=len(lines), first="; ".join(lines[:5])
        )

    def crashed(self) -> None:
        """Nobody looks after assumptions any more."""
        if self._minding is not None:
            self._minding.cancel()

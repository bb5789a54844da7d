"""The cache's part in a recovery: ends for attempts whose scheduler or time is over.

It asks the binder about assumptions whose time is over (I6), and compares the cache with one made
anew (upstream's cache debugger does so on SIGUSR2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.cache.attempts import AttemptEnds
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
from roadstead.cache import BinderWord, CacheCore
from roadstead.placements import TableStore
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
        self, core: CacheCore, attempts: AttemptEnds, directory: Directory, call_s: float
    ) -> None:
        self._core, self._attempts = core, attempts
        self._directory, self._call_s = directory, call_s
        self._minding: asyncio.Task[None] | None = None

    async def owner_ends(self, end: OwnerEnds) -> None:
        """A scheduler's earlier lives are over: what is bound is confirmed, the rest forgotten."""
        attempts = self._attempts
        nodes = dict(zip(end.uids, end.nodes, strict=True))
        orphans = attempts.of_earlier_lives(end.owner)
        bound = {uid: node for uid, _ in orphans if (node := nodes.get(uid))}
        attempts.confirm(bound)
        ends = [(uid, token) for uid, token in orphans if uid not in bound]
        deleted = attempts.deleted(uid for uid, _ in ends)
        attempts.forget(ends)
        await attempts.report_room(deleted)
        if attempts.orphaned_claims(end.owner):
            await self._end_claims(end.owner)

    async def _end_claims(self, owner: Owner) -> None:
        """What the binder committed of claims stays; the rest is free, as nobody asks for it."""
        binder = PatientRef(self._directory.find(BINDER))
        changes = (await binder.call(STORAGE_LOG, NOTHING, timeout_s=self._call_s)).changes
        committed = {claim.key for change in changes for claim in change.claims}
        self._attempts.end_claims(self._attempts.orphaned_claims(owner), committed)

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
            size = len(self._core.placements.nodes) + len(self._core.placements)
            if clock_s() - compared_s >= COMPARE_S and size <= COMPARE_MOST:
                compared_s = clock_s()
                self._report(self._differences())

    async def expire(self) -> None:
        """Ask the binder about assumptions whose time is over; its answers end them."""
        asks = self._core.expire(clock_s())
        if not asks:
            return
        binder = self._directory.find(BINDER)
        ask = Attempts(tuple(each.uid for each in asks), tuple(each.token for each in asks))
        found = await binder.call(RESOLVE, ask, timeout_s=self._call_s)
        answers = [
            BinderWord(each.uid, each.token, node or None)
            for each, node in zip(asks, found.nodes, strict=True)
        ]
        # By then: who is gone may be forgotten at once, where many expire together.
        counted = [each.uid for each in answers if self._core.node_of(each.uid) is not None]
        pods = {uid: self._attempts.pod(uid) for uid in counted}
        applied = self._attempts.resolve(answers)
        late = len({each.uid for each in answers} - {each.uid for each in applied})
        log(CACHE, "assumptions were over", asked=len(asks), unheeded=late)
        freed = [pods[each.uid] for each in applied if each.node_name is None]
        await self._attempts.report_room(freed)

    def compare(self) -> list[str]:
        """Differences from a cache made anew of what this one knows, one line each."""
        lines = self._differences()
        self._report(lines)
        return lines

    def _differences(self) -> list[str]:
        again = self._core.rebuild(TableStore())
        found = self._core.compare(again)
        ours, theirs = self._core.placements.store, again.placements.store
        assert isinstance(ours, TableStore)
        assert isinstance(theirs, TableStore)
        return found + ours.table.differences(theirs.table)

    def _report(self, lines: Sequence[str]) -> None:
        log(
            CACHE, "compared with one made anew", differences=len(lines), first="; ".join(lines[:5])
        )

    def crashed(self) -> None:
        """Nobody looks after assumptions any more."""
        if self._minding is not None:
            self._minding.cancel()

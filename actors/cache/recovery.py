"""The cache's part in a recovery: it ends attempts of replaced schedulers, and expired ones.

It requests the outcome of expired assumptions from the binder (I6 in docs/invariants.md). It also
compares the cache with one rebuilt from scratch (upstream's cache debugger does so on SIGUSR2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.cache.release_reports import ReleaseReports
from roadstead.actors.interface import NOTHING, Directory, ResendingRef, clock_s
from roadstead.actors.logs import log
from roadstead.actors.messages.recovery import (
    RESOLVE,
    STORAGE_LOG,
    EndOwner,
    OwnerEpoch,
    ResolveAttempts,
)
from roadstead.actors.names import BINDER, CACHE
from roadstead.cache import BinderAnswer, SchedulerCache
from roadstead.protocol.errors import RoadsteadError

EXPIRY_S = 1.0
"""Interval between two searches for expired assumptions."""

COMPARE_S = 60.0
"""Interval between two comparisons with a cache rebuilt from scratch."""

COMPARED_MAX = 5_000
"""Most nodes plus pods that are compared at intervals; larger clusters only on SIGUSR2. A
comparison takes up to 50 µs for each, and blocks the actor: 0.6 s without a bind at 12,500 nodes.
"""


class CacheRecovery:
    """End attempts whose scheduler does not end them. reports: sends freed pods to the queue."""

    def __init__(
        self, cache: SchedulerCache, reports: ReleaseReports, directory: Directory, call_s: float
    ) -> None:
        self._cache, self._reports = cache, reports
        self._directory, self._call_s = directory, call_s
        self._expiring: asyncio.Task[None] | None = None

    async def end_owner(self, end: EndOwner) -> None:
        """End a scheduler's earlier incarnations: confirm bound pods and forget the others."""
        owner, node_of = end.owner, dict(zip(end.uids, end.nodes, strict=True))
        await self._reports.report(self._cache.end_owner(owner.name, owner.epoch, node_of))
        # Removed pods whose claims the replaced scheduler left bound in the cache.
        if self._cache.orphaned_claims(owner.name, owner.epoch):
            await self._end_claims(owner)

    async def _end_claims(self, owner: OwnerEpoch) -> None:
        """Keep claims that the binder committed and free the others of the replaced scheduler."""
        binder = ResendingRef(self._directory.find(BINDER))
        changes = (await binder.call(STORAGE_LOG, NOTHING, timeout_s=self._call_s)).changes
        committed = {claim.key for change in changes for claim in change.claims}
        self._cache.end_claims(owner.name, owner.epoch, committed)

    def start_expiring(self) -> None:
        """Start the task that expires assumptions, unless it runs."""
        if self._expiring is None:
            self._expiring = asyncio.create_task(self._expire_forever(), name="cache expiry")

    async def _expire_forever(self) -> None:
        compared_s = clock_s()
        while True:
            await asyncio.sleep(EXPIRY_S)
            try:
                await self.expire()
            except RoadsteadError as failure:
                log(CACHE, "the binder was not reached", why=str(failure))
            placements = self._cache.state.core.placements
            size = len(placements.nodes) + len(placements)
            if clock_s() - compared_s >= COMPARE_S and size <= COMPARED_MAX:
                compared_s = clock_s()
                self._log_differences(self._cache.differences())

    async def expire(self) -> None:
        """End expired assumptions as the binder answers: bound, or never to be bound."""
        requests = self._cache.expire(clock_s())
        if not requests:
            return
        binder = self._directory.find(BINDER)
        request = ResolveAttempts(
            tuple(each.uid for each in requests), tuple(each.token for each in requests)
        )
        # Not resent after a failure: the cache repeats the request after its `ask_again_s`.
        pod_nodes = await binder.call(RESOLVE, request, timeout_s=self._call_s)
        answers = [
            BinderAnswer(each.uid, each.token, node or None)
            for each, node in zip(requests, pod_nodes.nodes, strict=True)
        ]
        # outcome.late: number of attempts that ended before the answer.
        outcome = self._cache.resolve(answers)
        log(CACHE, "assumptions expired", requests=len(requests), late=outcome.late)
        await self._reports.report(outcome.freed)

    def compare(self) -> list[str]:
        """Return the differences from a cache rebuilt from scratch, one line each."""
        lines = self._cache.differences()
        self._log_differences(lines)
        return lines

    def _log_differences(self, lines: Sequence[str]) -> None:
        first = "; ".join(lines[:5])
        log(CACHE, "compared with a rebuilt cache", differences=len(lines), first=first)

    def cancel(self) -> None:
        """Cancel the task that expires assumptions."""
        if self._expiring is not None:
            self._expiring.cancel()

"""WorkerRefill: sends the whole state (a fill) to workers that missed a change of the cluster.

The cache sends every change to the workers, which evaluate nodes for the schedulers.

missed a change ──► pause ──► fill ──► filled: later changes follow
                      ▲         └── no answer, or another change is missed
                      └──────────────┴──► after `FILLS` (3) fills in vain: left behind, it is sent
                                          no more changes until its process is replaced
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from roadstead.actors.logs import log
from roadstead.actors.names import CACHE
from roadstead.protocol.errors import RoadsteadError

FILLS = 3
"""Number of fills before a worker is left behind. The messages of a fill are resent, like changes:
a worker that answers none in three fills does not answer schedulers either."""

PAUSE_S = 1.0
"""Pause before each fill: the worker has just missed a deadline and may need time to recover."""


class WorkerRefill:
    """Fill workers one at a time, because each fill sends the whole cluster.

    fill: sends a worker the whole state, or raises. is_behind: whether a worker receives no
    changes.
    """

    def __init__(
        self, fill: Callable[[str], Awaitable[None]], is_behind: Callable[[str], bool]
    ) -> None:
        self._fill, self._is_behind = fill, is_behind
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._fill_lock = asyncio.Lock()

    def begin(self, name: str) -> None:
        """Start to fill a worker again, unless that is under way."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._run(name), name=f"refill {name}")

    def is_under_way(self, name: str) -> bool:
        """Whether a worker is being filled again, or waits for that."""
        return name in self._tasks

    async def _run(self, name: str) -> None:
        try:
            await self._refill(name)
        finally:
            # Not in a done callback, which runs later: if the worker missed a change in between,
            # `begin` would start no new task.
            self._tasks.pop(name, None)

    async def _refill(self, name: str) -> None:
        for number in range(1, FILLS + 1):
            await asyncio.sleep(PAUSE_S)
            async with self._fill_lock:
                # The worker may have been replaced and filled meanwhile.
                if not self._is_behind(name):
                    return
                try:
                    await self._fill(name)
                except RoadsteadError as failure:
                    log(
                        CACHE,
                        "worker not filled again",
                        worker=name,
                        tries=number,
                        why=str(failure),
                    )
            if not self._is_behind(name):
                log(CACHE, "worker filled again", worker=name, tries=number)
                return
        log(CACHE, "worker left behind", worker=name, tries=FILLS)

    def cancel_all(self) -> None:
        """Cancel all fills."""
        for task in self._tasks.values():
            task.cancel()

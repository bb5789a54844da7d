"""WorkerRefill: workers that missed a change of the stream are filled again, a few times.

missed a change ──► pause ──► fill ──► filled: changes come behind it
                      ▲         └── no answer, or another change is missed
                      └──────────────┴──► after `TRIES`: left behind until another life of it
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from roadstead.actors.logs import log
from roadstead.actors.names import CACHE
from roadstead.protocol.errors import RoadsteadError

TRIES = 3
"""How often a worker is filled again before it is left behind. Each try sends the whole cluster,
and each message of it as often as any change: who answers none of them answers no asks either."""

PAUSE_S = 1.0
"""How long a worker has to recover before each try: it has just missed a deadline."""


class WorkerRefill:
    """Fills one worker at a time, since the messages of a fill are the whole cluster.

    fill: sends a worker all that there is, or raises. is_behind: whether a worker is sent no
    changes.
    """

    def __init__(
        self, fill: Callable[[str], Awaitable[None]], is_behind: Callable[[str], bool]
    ) -> None:
        self._fill, self._is_behind = fill, is_behind
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._one = asyncio.Lock()

    def begin(self, name: str) -> None:
        """Fill a worker again, unless that is under way."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._run(name), name=f"refill {name}")

    def is_under_way(self, name: str) -> bool:
        """Whether a worker is about to be filled again."""
        return name in self._tasks

    async def _run(self, name: str) -> None:
        try:
            await self._refill(name)
        finally:
            # Not in a callback, which comes later: what is missed by then would begin nothing.
            self._tasks.pop(name, None)

    async def _refill(self, name: str) -> None:
        for number in range(1, TRIES + 1):
            await asyncio.sleep(PAUSE_S)
            async with self._one:
                # Another life of it was filled meanwhile.
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
        log(CACHE, "worker left behind", worker=name, tries=TRIES)

    def crashed(self) -> None:
        """Nobody is filled any more."""
        for task in self._tasks.values():
            task.cancel()

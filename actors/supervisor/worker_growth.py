"""WorkerGrowth: starts further workers when CPUs of the joined Ray cluster become free.

    waiting ── `POLL_S` later, CPUs are free ──► starting, while the run continues
       ▲ ▲                                          │
       │ └── no room, or a new process is lost ─────┤
       │                                            ▼
       └── the supervisor takes them over ◄────── started

New workers take rows of the present ones. So the supervisor then replaces all schedulers and
workers, in their processes, by ones that divide the nodes by the new number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roadstead.actors.interface import Factory, Ref, Runtime, clock_s
from roadstead.actors.logs import log
from roadstead.actors.names import worker_name
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan

POLL_S = 30.0
"""Interval between two reads of the cluster's free CPUs. Each growth costs the run a pause of a
second or two."""

GroupsOf = Callable[[RunPlan], Mapping[str, Mapping[str, Factory]]]
"""Returns the processes of a plan: process → actor → factory."""


@dataclass(frozen=True, slots=True)
class StartedWorkers:
    """Further workers that answer. plan: the run's, with their number. refs: by name."""

    plan: RunPlan
    refs: Mapping[str, Ref]


def grown_count(present: int, maximum: int, room: int) -> int:
    """Return the number of workers with `room` for more; `present` if too few could be added.

    At least half as many again, or up to the maximum: so a cluster that grows node by node pauses
    the run a few times only. A single worker would save no time.
    """
    possible = min(maximum, present + room)
    wanted = min(maximum, max(2, present + (present + 1) // 2))
    return possible if possible >= wanted else present


class WorkerGrowth:
    """Start workers on free CPUs, up to `RunPlan.workers_max`.

    _polled_s: time of the last read of free CPUs. _starting: the task that starts workers.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._polled_s: float | None = None
        self._starting: asyncio.Task[StartedWorkers | None] | None = None

    def step(self, plan: RunPlan, groups_of: GroupsOf) -> StartedWorkers | None:
        """Return workers that were started since the last call; read free CPUs if it is time."""
        if plan.settings.workers >= plan.workers_max:
            return None
        if self._starting is None:
            self._poll_if_due(plan, groups_of)
            return None
        if not self._starting.done():
            return None
        starting, self._starting = self._starting, None
        return starting.result()

    def _poll_if_due(self, plan: RunPlan, groups_of: GroupsOf) -> None:
        now_s = clock_s()
        if self._polled_s is None:
            # The number at the start was chosen by the CPUs that were free then.
            self._polled_s = now_s
        if now_s - self._polled_s >= POLL_S:
            self._polled_s = now_s
            self._starting = asyncio.create_task(self._start(plan, groups_of))

    async def _start(self, plan: RunPlan, groups_of: GroupsOf) -> StartedWorkers | None:
        settings = plan.settings
        try:
            room = await self._runtime.room_for_workers() or 0
        except RoadsteadError as failure:
            # The nodes could not be checked, for example: a run does not end for want of workers.
            log("supervisor", "the room for workers is unknown", why=str(failure))
            return None
        count = grown_count(settings.workers, plan.workers_max, room)
        if count == settings.workers:
            return None
        names = [worker_name(index) for index in range(settings.workers, count)]
        log("supervisor", "starting further workers", workers=", ".join(names))
        grown_plan = replace(plan, settings=settings.model_copy(update={"workers": count}))
        groups = groups_of(grown_plan)
        try:
            refs = await self._runtime.start(
                {name: groups[name] for name in names}, timeout_s=settings.deadlines.start_s
            )
        except RoadsteadError as failure:
            # The run keeps the workers that it has.
            log("supervisor", "further workers did not start", why=str(failure))
            await self._abandon(names)
            return None
        except asyncio.CancelledError:
            await self._abandon(names)
            raise
        return StartedWorkers(grown_plan, refs)

    async def _abandon(self, names: list[str]) -> None:
        if self._runtime.lost():
            # Ray kills processes through the part of it that ended.
            return
        for name in names:
            await self._runtime.kill(name)

    async def cancel(self) -> None:
        """Abandon workers that are being started, or were and are not taken over yet."""
        starting, self._starting = self._starting, None
        if starting is None:
            return
        starting.cancel()
        (outcome,) = await asyncio.gather(starting, return_exceptions=True)
        if isinstance(outcome, StartedWorkers):
            await self._abandon(list(outcome.refs))

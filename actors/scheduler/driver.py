"""Driver: answers the requests of a scheduler (`Need`) with messages, sleeps and threads.

    Scheduler.step ── Need ──► messages, the loop, threads ── answer ──► its next step

Leases are renewed while it waits. It makes no decision about pods. Each need is explained at its
class in `roadstead.cycle.needs` and `roadstead.scheduler.needs`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from roadstead.actors.binder.order import SendOrder, Turn
from roadstead.actors.drive import drive
from roadstead.actors.interface import clock_s
from roadstead.actors.runtime.kernel_loader import KernelLoader
from roadstead.actors.scheduler.extender_calls import call_extenders
from roadstead.actors.scheduler.peers import Peers
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.actors.scheduler.scorers import MAX_UNSCORED, Scorers
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.needs import (
    ApplyWaiting,
    CallExtenders,
    CatchUp,
    ListBest,
    Phase,
    Prepare,
    ReadClock,
    ScoreClasses,
    WaitUntil,
    YieldToMessages,
)
from roadstead.cycle.scopes import Scope
from roadstead.kernel.best_rows import BestRows
from roadstead.scheduler.needs import BindPods, Need, RunConcurrently, Steps
from roadstead.scheduler.scheduler import BatchDone, Scheduler
from roadstead.scheduler.volumes import SchedulerVolumes

T = TypeVar("T")
"""Result of awaited work."""


class Driver:
    """Driver of one scheduler. peers: messages to queue, cache and binder.

    failure: the exception that ended a binding cycle, and with it the scheduler. _binding: tasks of
    binding cycles. _order: sends binds in the order in which their binding cycles began.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        peers: Peers,
        nodes: SchedulerNodes,
        *,
        kernel: KernelLoader,
        scorers: Scorers | None,
        volumes: SchedulerVolumes,
        inflight_max_batches: int,
    ) -> None:
        self.failure: BaseException | None = None
        self._scheduler = scheduler
        self._peers = peers
        self._nodes = nodes
        self._kernel = kernel
        self._scorers = scorers
        self._volumes = volumes
        self._binding: set[asyncio.Task[None]] = set()
        self._binding_slots = asyncio.Semaphore(inflight_max_batches)
        self._order = SendOrder()
        self._phase, self._phase_began = "", 0.0

    async def step(self) -> BatchDone | None:
        """Run one batch of the scheduler, or a lease if it has no undecided pods (None)."""
        self._phase = ""
        return await drive(self._scheduler.step(clock_s()), self.handle)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel and return all binding cycles; binds that were sent to the binder stay valid."""
        tasks = [*self._binding]
        for task in tasks:
            task.cancel()
        return tasks

    async def handle(self, need: Need) -> object:
        """Return the answer to a request of the scheduling loop."""
        match need:
            case Phase(name):
                self._begin_phase(name)
            case Prepare(pods):
                # Applies the changes of claims in the cache's answers. `pods`: their number.
                self._volumes.catch_up()
                return self._kernel.compiled_kernel(pods)
            case CatchUp(is_again):
                performer = self._scheduler.performer
                # The state is read once for a batch, even if the catch-up is repeated.
                performer.metrics.reads += not is_again
                # seq: number of the last change in the cache's answers.
                await self._nodes.catch_up(performer.seq)
            case ApplyWaiting():
                await self._nodes.apply_waiting()
            case ScoreClasses(scope, pods):
                await self._score(scope, pods)
            case ListBest():
                return await self._list_best(need)
            case WaitUntil(at_s):
                await self._sleep_until(at_s)
            case YieldToMessages():
                await asyncio.sleep(0)
            case _:
                return await self._handle_any(need)
        return clock_s()

    async def _handle_any(self, need: Need) -> object:
        """Return the answer to a request of the loop or of a binding cycle."""
        match need:
            case ReadClock():
                return clock_s()
            case CallExtenders(extenders, work):
                return await call_extenders(extenders, work)
            case RunConcurrently(steps):
                self._start_binding(steps)
                return None
        return await self._peers.handle(need)

    def _start_binding(self, steps: Steps[None]) -> None:
        task = asyncio.create_task(self._bind(steps, self._order.begin()))
        self._binding.add(task)
        task.add_done_callback(self._end_binding)

    def _end_binding(self, task: asyncio.Task[None]) -> None:
        """Forget the task of a binding cycle; keep the first failure."""
        self._binding.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failure = self.failure or failure

    async def _bind(self, steps: Steps[None], turn: Turn) -> None:
        """Run a binding cycle. turn: when it may send its binds."""

        async def handle(need: Need) -> object:
            if not isinstance(need, BindPods):
                return await self._handle_any(need)
            return await self._peers.bind(need, await turn.wait_turn())

        async with self._binding_slots:
            try:
                await drive(steps, handle)
            finally:
                turn.ended.set()

    async def _score(self, scope: Scope, pods: Sequence[PodInCycle]) -> None:
        if self._scorers is None:
            return
        scheduler = self._scheduler
        # The undecided pods begin with those of the batch. `MAX_UNSCORED` is the size of the next
        # batch, if workers score it.
        undecided = scheduler.core.undecided(len(pods) + MAX_UNSCORED)
        in_scope = scheduler.cycle.in_scope(scope, undecided)
        # The pods after those of the batch are scored while the batch is decided.
        await self._with_renewals(self._scorers.score(scope.builder, pods, in_scope[len(pods) :]))

    async def _list_best(self, need: ListBest) -> BestRows | None:
        if self._scorers is None:
            return None
        return await self._with_renewals(self._scorers.list_best(need))

    async def _sleep_until(self, at_s: float) -> None:
        """Sleep until a time, and renew leases meanwhile."""
        while (left_s := at_s - clock_s()) > 0:
            await asyncio.sleep(min(left_s, self._scheduler.leasing.renew_every_s))
            await self._renew()

    async def _with_renewals(self, work: Coroutine[None, None, T]) -> T:
        """Await work and return its result; renew leases meanwhile."""
        working = asyncio.create_task(work)
        every_s = self._scheduler.leasing.renew_every_s
        try:
            while not (await asyncio.wait({working}, timeout=every_s))[0]:
                await self._renew()
        finally:
            working.cancel()
        return await working

    async def _renew(self) -> None:
        await drive(self._scheduler.leasing.renew(clock_s()), self._peers.handle)

    def _begin_phase(self, phase: str) -> None:
        if self._phase:
            self._peers.add_time(self._phase, self._phase_began)
        self._phase, self._phase_began = phase, time.perf_counter()

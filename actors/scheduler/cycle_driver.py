"""CycleDriver: meets what a scheduler's cycle needs, over actors.

    SchedulingCycle.decide ── Need ──► messages, the loop, threads ── answer ──► its next step

Leases are renewed while it waits. What a batch is and where it ends is not decided here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import TypeVar

from roadstead.actors.scheduler.effects import EffectRunner
from roadstead.actors.scheduler.held_nodes import HeldNodes
from roadstead.actors.scheduler.kernel_loader import KernelLoader
from roadstead.actors.scheduler.leasing import Leasing
from roadstead.actors.scheduler.outside import call_outside
from roadstead.actors.scheduler.scorers import NEAR, Scorers
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.seam import clock_s
from roadstead.attempts.core import AttemptsCore
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.lanes import Lane
from roadstead.cycle.needs import (
    ApplyWaiting,
    CallExtenders,
    CatchUp,
    Need,
    Pause,
    Phase,
    Prepare,
    ReadClock,
    ScoreClasses,
    Steps,
    WaitUntil,
)
from roadstead.cycle.scheduling_cycle import Decided, SchedulingCycle

T = TypeVar("T")


async def drive(steps: Steps[T], meet: Callable[[Need], Awaitable[object]]) -> T:
    """The result of steps whose needs are met one by one; what `meet` raises ends them."""
    with closing(steps):
        answer: object = None
        while True:
            try:
                need = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await meet(need)


class CycleDriver:
    """Drives the cycle of one scheduler."""

    def __init__(
        self,
        cycle: SchedulingCycle,
        core: AttemptsCore,
        effects: EffectRunner,
        leasing: Leasing,
        nodes: HeldNodes,
        *,
        kernel: KernelLoader,
        scorers: Scorers | None,
        volumes: SchedulerVolumes,
    ) -> None:
        self.cycle = cycle
        self._core = core
        self._effects = effects
        self._leasing = leasing
        self._nodes = nodes
        self._kernel = kernel
        self._scorers = scorers
        self._volumes = volumes
        self._phase, self._phase_began = "", 0.0

    async def decide(self, lane: Lane, pods: Sequence[PodInCycle]) -> Decided:
        """As `SchedulingCycle.decide`. UnsettledError where changes do not come in time."""
        if self._effects.reads_failed:
            self.cycle.drop()
            self._effects.reads_failed = False
        self._phase = ""
        decided = await drive(self.cycle.decide(lane, pods, clock_s()), self.meet)
        self._effects.figures.passed_on = self.cycle.passed_on
        return decided

    async def meet(self, need: Need) -> object:
        """The answer to one need."""
        match need:
            case Phase(name):
                self._enter(name)
            case Prepare(pods):
                self._volumes.catch_up()
                return self._kernel.accelerator(pods)
            case CallExtenders(extenders, work):
                return await call_outside(extenders, work)
            case CatchUp(is_again):
                self._effects.figures.reads += not is_again
                await self._nodes.catch_up(self._effects.seq)
            case ApplyWaiting():
                await self._nodes.apply_waiting()
            case ScoreClasses(lane, pods):
                await self._score(lane, pods)
            case WaitUntil(at_s):
                await self._leasing.sleep_until(at_s)
            case Pause():
                await asyncio.sleep(0)
            case ReadClock():
                pass
        return clock_s()

    async def _score(self, lane: Lane, pods: Sequence[PodInCycle]) -> None:
        if self._scorers is None:
            return
        waiting = self.cycle.on_lane(lane, self._core.undecided(len(pods) + NEAR))
        work = self._scorers.ask(lane.cycle, pods, waiting[len(pods) :])
        await self._leasing.renewing(work)

    def _enter(self, phase: str) -> None:
        if self._phase:
            self._effects.spend(self._phase, self._phase_began)
        self._phase, self._phase_began = phase, time.perf_counter()

"""BatchDecider: which pods form a batch, on what state they are decided, and where the batch ends.

    next: pods, lane ──► read the state ──► think ──► decide ──► decisions
                              ▲                         │
                              └── stale, and a pod fits nowhere: read and decide again

Actor messages go out on the way: workers are asked to score new classes, extenders are called.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile

from roadstead.actors.scheduler.effects import EffectRunner
from roadstead.actors.scheduler.held_nodes import HeldNodes
from roadstead.actors.scheduler.kernel_loader import KernelLoader
from roadstead.actors.scheduler.lanes import Lane
from roadstead.actors.scheduler.leasing import Leasing
from roadstead.actors.scheduler.preemption import after_failure
from roadstead.actors.scheduler.scorers import NEAR, Scorers
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.seam import clock_s
from roadstead.attempts.core import AttemptsCore
from roadstead.config.settings import Settings
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.gangs import gives_up
from roadstead.cycle.jobs import Thinking, first_job
from roadstead.cycle.narrowing import Narrower
from roadstead.cycle.partitions import Partition
from roadstead.cycle.table_cycle import TableCycle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak

DECISIONS_AT_ONCE = 128
"""Decisions between two looks at the loop, so that answers are not kept waiting."""


class BatchDecider:
    """Decides the batches of one scheduler on the nodes that it holds.

    partition: the nodes that it decides on first; None where it has all.
    """

    def __init__(
        self,
        core: AttemptsCore,
        effects: EffectRunner,
        leasing: Leasing,
        nodes: HeldNodes,
        settings: Settings,
        profiles: Mapping[str, Profile],
        *,
        narrower: Narrower | None,
        partition: Partition | None,
        thinking: Thinking,
        kernel: KernelLoader,
        scorers: Scorers | None,
        volumes: SchedulerVolumes,
    ) -> None:
        self._core = core
        self._effects = effects
        self._leasing = leasing
        self._nodes = nodes
        self._settings = settings
        self._profiles = profiles
        self._narrower = narrower
        self._partition = partition
        self._thinking = thinking
        self._kernel = kernel
        self._scorers = scorers
        self._volumes = volumes
        self._waiting = next(iter(profiles.values())).waiting
        self._tie_break = TieBreak(settings.tie_break, settings.seed)
        self._own = self._everywhere = Lane(self._new_cycle(profiles))
        if partition is not None:
            bounded = {name: each.within(partition.nodes) for name, each in profiles.items()}
            self._own = Lane(self._new_cycle(bounded), is_own=True)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All lanes: over all nodes, and over own ones, where there are some."""
        return tuple({id(each): each for each in (self._everywhere, self._own)}.values())

    def _new_cycle(self, profiles: Mapping[str, Profile]) -> TableCycle:
        settings = self._settings
        # Own nodes and all nodes are decided on apart from each other.
        lanes = 2 if settings.concurrency == "partitioned" else 1
        return TableCycle(
            self._nodes.table,
            profiles,
            self._tie_break,
            narrower=self._narrower,
            sharers=lanes * settings.scheduler_count,
        )

    def next(self, undecided: Sequence[PodInCycle]) -> tuple[Lane, Sequence[PodInCycle]]:
        """The pods to decide next, and on which lane."""
        lane = self._lane_of(undecided[0])
        if self._partition is not None:
            undecided = [pod for pod in undecided if self._lane_of(pod) is lane]
        pods = lane.cycle.together(undecided)
        if self._scorers is not None:
            pods = self._scorers.near(lane.cycle, pods)
        return lane, first_job(pods) if self._thinking.takes_time else pods

    def _lane_of(self, pod: PodInCycle) -> Lane:
        partition = self._partition
        if partition is None or not partition.is_local(pod) or self._own.cycle.narrows(pod):
            return self._everywhere
        return self._own

    async def decide(self, lane: Lane, pods: Sequence[PodInCycle]) -> tuple[list[Decision], int]:
        """Decisions for the first of the pods, and how many of these are settled by them.

        As many as one reading settles (at least one). Settled without a decision are those that go
        on to all nodes.
        """
        staleness_s = self._settings.staleness_s
        if self._effects.reads_failed:
            for each in self.lanes:
                each.drop()
            self._effects.reads_failed = False
        wait_s = self._thinking.wait_s(pods)
        if self._settings.concurrency == "exact":
            # Alone, it may as well read after it has thought.
            await self._think(wait_s)
            wait_s = 0.0
        is_fresh = not lane.serves(clock_s(), staleness_s)
        if is_fresh:
            await self._read(lane)
        if wait_s:
            await self._think(wait_s)
            if lane.is_older(clock_s(), staleness_s):
                is_fresh = True
                await self._read(lane)
        decided = await self._decide_read(lane, pods, is_fresh=is_fresh)
        if not is_fresh and not decided[1]:
            await self._read(lane)
            decided = await self._decide_read(lane, pods, is_fresh=True)
        return decided

    async def _think(self, wait_s: float) -> None:
        until_s = clock_s() + wait_s
        while (left_s := until_s - clock_s()) > 0:
            await asyncio.sleep(min(left_s, self._leasing.renew_every_s))
            await self._leasing.renew()

    async def _decide_read(
        self, lane: Lane, pods: Sequence[PodInCycle], *, is_fresh: bool
    ) -> tuple[list[Decision], int]:
        """As `_decide`, on what was read on a lane."""
        started = time.perf_counter()
        self._volumes.catch_up()
        lane.cycle.accelerator = self._kernel.accelerator(len(pods))

        async def decide(batch: BatchRun) -> tuple[list[Decision], int]:
            self._effects.spend("evaluate", started)
            return await self._decide_on(lane, batch, pods, is_fresh=is_fresh)

        if self._scorers is not None:
            waiting = self._core.undecided(len(pods) + NEAR)
            coming = [pod for pod in waiting if self._lane_of(pod) is lane][len(pods) :]
            await self._leasing.renewing(self._scorers.ask(lane.cycle, pods, coming))
            if is_fresh and not self._thinking.takes_time:
                # Attempts may have ended while workers answered.
                await self._nodes.catch_up(self._effects.seq)
        return await self._nodes.decide(lane.cycle, pods, decide)

    async def _read(self, lane: Lane) -> None:
        """Apply the changes of the cluster that came."""
        began_s = clock_s()
        self._effects.figures.reads += 1
        await self._nodes.catch_up(self._effects.seq)
        lane.read(began_s)

    async def _decide_on(
        self, lane: Lane, batch: BatchRun, pods: Sequence[PodInCycle], *, is_fresh: bool
    ) -> tuple[list[Decision], int]:
        started = time.perf_counter()
        decisions: list[Decision] = []
        place = 0
        while place < len(pods):
            coming = pods[place : place + DECISIONS_AT_ONCE]
            if lane.is_own:
                coming = [*takewhile(lambda pod: self._lane_of(pod) is lane, coming)]
            if not coming:
                place += 1
                continue
            if run := batch.decide_run(coming):
                decisions += run
                place += len(run)
                await asyncio.sleep(0)
                continue
            decision = batch.decide(coming[0])
            if decision is None or not (is_fresh or decision.node_name):
                lane.drop()
                break
            place += 1
            if self._goes_on(lane, decision):
                continue
            decision, has_tried = await self._after_failure(lane, batch, decision)
            decisions.append(decision)
            if has_tried or gives_up(decision, decisions, self._waiting):
                # What follows from it changes the tables on which the next pod is decided.
                lane.drop()
                break
            if place % DECISIONS_AT_ONCE == 0:
                await asyncio.sleep(0)
                if lane.is_older(clock_s(), self._settings.staleness_s):
                    break
        self._effects.spend("decide", started)
        return decisions, place

    def _goes_on(self, lane: Lane, decision: Decision) -> bool:
        """Whether a pod that fits no own node goes on to all nodes."""
        if self._partition is None or not lane.is_own or decision.diagnosis is None:
            return False
        self._partition.pass_on(decision.pod)
        self._effects.figures.passed_on += 1
        return True

    async def _after_failure(
        self, lane: Lane, batch: BatchRun, decision: Decision
    ) -> tuple[Decision, bool]:
        """A decision with what PostFilter says, and whether preemption was tried for it."""
        if decision.diagnosis is None:
            return decision, False
        profile = self._profiles[decision.pod.info.facts.scheduler_name]
        extenders = lane.cycle.extenders
        return await after_failure(decision, profile, self._tie_break, batch, extenders)

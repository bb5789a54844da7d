"""Scheduler: a shell around CycleCore, and TableCycle over a node table of its own.

    lease ─► begin batch ─► decide ─► assume ─► bind ─► confirm, done
                               │                  └──► forget, requeue
                               └─► requeue, note why

One loop leases and decides; binding goes on beside it, as upstream's binding cycle does, because a
decided pod is assumed and the next batch sees it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from roadstead.actors.logs import ROOT, log
from roadstead.actors.messages import ActorStatus, DeltaBatch
from roadstead.actors.messages.recovery import Restore
from roadstead.actors.names import index_of
from roadstead.actors.scheduler.held_nodes import HeldNodes, UnsettledError
from roadstead.actors.scheduler.kernel_loader import KernelLoader
from roadstead.actors.scheduler.lanes import Lane
from roadstead.actors.scheduler.leasing import Leasing
from roadstead.actors.scheduler.preemption import after_failure
from roadstead.actors.scheduler.scorers import NEAR, Scorers
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.seam import NOTHING, Directory, Nothing, clock_s, failure_out
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.core import CycleCore
from roadstead.cycle.gangs import gives_up
from roadstead.cycle.jobs import Thinking, first_job
from roadstead.cycle.partitions import Partition
from roadstead.cycle.table_cycle import TableCycle
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.chain import Extenders
from roadstead.facts.pod import PodFacts
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.run import RunPlan, build_narrower, build_profiles

DECISIONS_AT_ONCE = 128
"""Decisions between two looks at the loop, so that answers are not kept waiting."""


class SchedulerActor(Leasing):
    """One scheduler of a run."""

    def __init__(
        self,
        name: str,
        plan: RunPlan,
        directory: Directory,
        *,
        epoch: int = 1,
        is_new: bool = False,
        caller_of: CallerOf | None = None,
    ) -> None:
        """is_new: it takes the place of another one, and first waits for all nodes.
        caller_of: reaches extenders, over HTTP unless told otherwise.
        """
        self._name = name
        self._plan = plan
        self._directory = directory
        self._classes = PodClasses()
        self._members = GroupMembers()
        self._profiles = build_profiles(plan, self._classes, members=self._members)
        super().__init__(plan, SchedulerVolumes(next(iter(self._profiles.values())).storage))
        self._waiting = next(iter(self._profiles.values())).waiting
        settings = plan.settings
        self._tie_break = TieBreak(settings.tie_break, settings.seed)
        self._narrower = build_narrower(plan, caller_of)
        self._extenders = Extenders() if self._narrower is None else self._narrower.extenders
        self._nodes = HeldNodes(name, plan, self._classes, is_new=is_new, epoch=epoch)
        self._scorers = Scorers(name, plan, directory, self._nodes) if settings.workers else None
        self._own = self._everywhere = Lane(self._new_cycle(self._profiles))
        self._partition: Partition | None = None
        if settings.concurrency == "partitioned":
            self._partition = part = Partition(settings, index_of(name), self._nodes.partition_of)
            bounded = {name: each.within(part.nodes) for name, each in self._profiles.items()}
            self._own = Lane(self._new_cycle(bounded), is_own=True)
        self._thinking = Thinking(settings.decision_time)
        self._kernel = KernelLoader(name, enabled=settings.kernel)
        self._epoch = epoch
        self.core = CycleCore(name, self._epoch, self._profiles)
        self._loop: asyncio.Task[None] | None = None
        self._batches = 0

    def _new_cycle(self, profiles: Mapping[str, Profile]) -> TableCycle:
        settings = self._plan.settings
        # Own nodes and all nodes are decided on apart from each other.
        lanes = 2 if settings.concurrency == "partitioned" else 1
        return TableCycle(
            self._nodes.table,
            profiles,
            self._tie_break,
            narrower=self._narrower,
            sharers=lanes * settings.scheduler_count,
        )

    async def apply(self, batch: DeltaBatch) -> Nothing:
        """Changes of the cluster, from the cache."""
        return await self._nodes.apply(batch)

    async def restore(self, part: Restore) -> Nothing:
        """All that the cluster holds, in parts, for a new life."""
        return await self._nodes.restore(part)

    def key_of(self, facts: PodFacts) -> str | None:
        """A pod of these facts that waits to be decided here."""
        waiting = self.core.undecided(self._plan.settings.batch)
        return next((pod.key for pod in waiting if pod.info.facts == facts), None)

    async def run(self, _: Nothing) -> Nothing:
        """Sets the scheduler going; told twice, it goes on."""
        if self._loop is None:
            self._loop = asyncio.create_task(self._go_on(), name=self._name)
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """Takes no more pods; what is at the binder stays there."""
        tasks = [*self._binding, *([self._loop] if self._loop is not None else [])]
        if self._scorers is not None:
            self._scorers.end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return NOTHING

    def crashed(self) -> None:
        """Nothing goes on."""
        if self._scorers is not None:
            self._scorers.end()
        for task in (*self._binding, *([self._loop] if self._loop is not None else [])):
            task.cancel()

    async def _go_on(self) -> None:
        try:
            while True:
                await self._step()
        except asyncio.CancelledError:
            raise
        except Exception as failure:
            logging.getLogger(f"{ROOT}.{self._name}").exception("cannot go on")
            self._failure = failure

    async def _step(self) -> None:
        """One lease or one batch."""
        await self._perform(self.core.tick(clock_s()))
        undecided = self.core.undecided(self._plan.settings.batch)
        await self._renew()
        if not undecided:
            await self._lease()
            return
        lane, pods = self._next(undecided)
        began_s = clock_s()
        try:
            decisions, settled = await self._decide(lane, pods)
        except UnsettledError as unsettled:
            log(self._name, "batch begins anew", why=str(unsettled))
            return
        finally:
            self._figures.busy_s += clock_s() - began_s
        lane.cycle.settled(len(pods), settled)
        self._figures.decided += len(decisions)
        await self._perform(self.core.decided(decisions, lane.cycle.row_versions))
        self._batches += 1
        log(
            self._name,
            "batch decided",
            pods=len(pods),
            decided=len(decisions),
            placed=sum(decision.node_name is not None for decision in decisions),
        )

    def _next(self, undecided: Sequence[PodInCycle]) -> tuple[Lane, Sequence[PodInCycle]]:
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

    async def _decide(self, lane: Lane, pods: Sequence[PodInCycle]) -> tuple[list[Decision], int]:
        """Decisions for the first of the pods, and how many of these are settled by them.

        As many as one reading settles (at least one). Settled without a decision are those that go
        on to all nodes.
        """
        staleness_s = self._plan.settings.staleness_s
        if self._reads_failed:
            self._own.drop()
            self._everywhere.drop()
            self._reads_failed = False
        wait_s = self._thinking.wait_s(pods)
        if self._plan.settings.concurrency == "exact":
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
            await asyncio.sleep(min(left_s, self._renew_s))
            await self._renew()

    async def _decide_read(
        self, lane: Lane, pods: Sequence[PodInCycle], *, is_fresh: bool
    ) -> tuple[list[Decision], int]:
        """As `_decide`, on what was read on a lane."""
        started = time.perf_counter()
        self._volumes.catch_up()
        lane.cycle.accelerator = self._kernel.accelerator(len(pods))

        async def decide(batch: BatchRun) -> tuple[list[Decision], int]:
            self._spend("evaluate", started)
            return await self._decide_on(lane, batch, pods, is_fresh=is_fresh)

        if self._scorers is not None:
            waiting = self.core.undecided(len(pods) + NEAR)
            coming = [pod for pod in waiting if self._lane_of(pod) is lane][len(pods) :]
            await self._meanwhile_renewed(self._scorers.ask(lane.cycle, pods, coming))
            if is_fresh and not self._thinking.takes_time:
                # Attempts may have ended while workers answered.
                await self._nodes.catch_up(self._seq)
        return await self._nodes.decide(lane.cycle, pods, decide)

    async def _meanwhile_renewed(self, work: Coroutine[None, None, None]) -> None:
        """Work that may take longer than leases last."""
        working = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({working}, timeout=self._renew_s))[0]:
                await self._renew()
        finally:
            working.cancel()
        await working

    async def _read(self, lane: Lane) -> None:
        """Apply the changes of the cluster that came."""
        began_s = clock_s()
        self._figures.reads += 1
        await self._nodes.catch_up(self._seq)
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
                if lane.is_older(clock_s(), self._plan.settings.staleness_s):
                    break
        self._spend("decide", started)
        return decisions, place

    def _goes_on(self, lane: Lane, decision: Decision) -> bool:
        """Whether a pod that fits no own node goes on to all nodes."""
        if self._partition is None or not lane.is_own or decision.diagnosis is None:
            return False
        self._partition.pass_on(decision.pod)
        self._figures.passed_on += 1
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

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        status = ActorStatus(
            f"had decided {self._batches} batches and bound {counts.bound_total} pods; "
            f"{counts.live} pods were under way",
            timings_s=tuple(self._spent_s.items()),
            counts=(
                ("batches", self._batches),
                ("bound", counts.bound_total),
                *self._kernel.coverage.counts(),
            ),
            figures=self._figures.told(),
        )
        if self._failure is None:
            return status
        failure = failure_out(self._failure)
        return replace(
            status, error=failure.text, error_kind=failure.kind, error_parts=failure.parts
        )

"""Scheduler: a shell around CycleCore and ShardedCycle.

    lease ─► begin batch with the workers ─► decide ─► assume ─► bind ─► confirm, done
                                                │                  └──► forget, requeue
                                                └─► requeue, note why

One loop leases and decides; binding goes on beside it, as upstream's binding cycle does, because a
decided pod is assumed and the next batch sees it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from roadstead.actors.held_nodes import HeldNodes, HoldsNodes
from roadstead.actors.kernel_loader import KernelLoader
from roadstead.actors.logs import ROOT, log
from roadstead.actors.messages import (
    LEASE,
    ActorStatus,
    LeaseAsk,
)
from roadstead.actors.names import CACHE, QUEUE, shard_names
from roadstead.actors.preemption import after_failure
from roadstead.actors.roster import RosterCopy
from roadstead.actors.rounds import UnsettledError, begin_batch
from roadstead.actors.scheduler_effects import SchedulerEffects
from roadstead.actors.seam import (
    NOTHING,
    DeadlineError,
    Directory,
    Nothing,
    Ref,
    clock_s,
    failure_out,
)
from roadstead.actors.volumes import SchedulerVolumes
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.core import CycleCore
from roadstead.cycle.gangs import gives_up
from roadstead.cycle.sharded import ShardedCycle
from roadstead.extenders.chain import Extenders
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.run import RunPlan, build_narrower, build_profiles

LEASE_WAIT_S = 0.5
DECISIONS_AT_ONCE = 64
"""Decisions between two looks at the loop, so that answers are not kept waiting."""


class SchedulerActor(SchedulerEffects, HoldsNodes):
    """One scheduler of a run."""

    def __init__(
        self,
        name: str,
        plan: RunPlan,
        directory: Directory,
        *,
        epoch: int = 1,
        is_new: bool = False,
    ) -> None:
        """is_new: it takes the place of another one, and first waits for nodes it may hold."""
        self._name = name
        self._plan = plan
        self._directory = directory
        self._classes = PodClasses()
        self._profiles = build_profiles(plan, self._classes)
        super().__init__(plan, SchedulerVolumes(next(iter(self._profiles.values())).storage))
        self._waiting = next(iter(self._profiles.values())).waiting
        settings = plan.settings
        tie_break = self._tie_break = TieBreak(settings.tie_break, settings.seed)
        self._narrower = build_narrower(plan)
        self._extenders = Extenders() if self._narrower is None else self._narrower.extenders
        self._roster = RosterCopy(whole=self._extenders.wants_manifests)
        self._nodes = (
            None
            if settings.nodes_at == "workers"
            else HeldNodes(
                *(name, plan, directory, self._classes, self._profiles),
                tie_break=tie_break,
                narrower=self._narrower,
                is_new=is_new,
                epoch=epoch,
            )
        )
        self._cycle = (
            ShardedCycle(self._classes, self._profiles, tie_break, narrower=self._narrower)
            if self._nodes is None
            else self._nodes.cycle
        )
        self._kernel = KernelLoader(name, enabled=settings.kernel)
        self._epoch = epoch
        self.core = CycleCore(name, self._epoch, self._profiles)
        self._loop: asyncio.Task[None] | None = None
        self._batches = 0

    async def run(self, _: Nothing) -> Nothing:
        """Sets the scheduler going; told twice, it goes on."""
        if self._loop is None:
            self._loop = asyncio.create_task(self._go_on(), name=self._name)
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """Takes no more pods; what is at the binder stays there."""
        tasks = [*self._binding, *([self._loop] if self._loop is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return NOTHING

    def crashed(self) -> None:
        """Nothing goes on."""
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
        if not undecided:
            await self._lease()
            return
        pods = self._cycle.together(undecided)
        try:
            decisions = await self._decide(pods)
        except UnsettledError as unsettled:
            log(self._name, "batch begins anew", why=str(unsettled))
            return
        self._cycle.settled(len(pods), len(decisions))
        await self._perform(self.core.decided(decisions))
        self._batches += 1
        log(
            self._name,
            "batch decided",
            pods=len(pods),
            decided=len(decisions),
            placed=sum(decision.node_name is not None for decision in decisions),
        )

    async def _lease(self) -> None:
        ask = LeaseAsk(self._name, self._epoch, self._plan.settings.batch, LEASE_WAIT_S)
        started = time.perf_counter()
        queue = self._ref(QUEUE).ref
        try:
            leased = await queue.call(LEASE, ask, timeout_s=self._call_s + LEASE_WAIT_S)
        except DeadlineError:
            # Whatever it lent comes back to it when the lease is over.
            return
        self._spend("lease", started)
        if leased.lease_id:
            pods = [
                self._in_cycle(identity, facts, attempt)
                for (identity, facts), attempt in zip(
                    leased.pods.pods(), leased.attempts, strict=True
                )
            ]
            await self._perform(self.core.lease(leased.lease_id, pods))

    def _in_cycle(self, identity: PodIdentity, facts: PodFacts, attempt: int) -> PodInCycle:
        profile = self._profiles[facts.scheduler_name]
        info = self._classes.info(facts)
        signature = profile.class_of(info, identity.uid)
        return PodInCycle(identity.uid, identity.key, info, signature, attempt)

    async def _decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decisions for the first of the pods, as many as one evaluation settles (at least one)."""
        workers = [self._ref(name) for name in shard_names(self._plan.settings)]
        started = time.perf_counter()
        if self._cycle.narrows(pods[0]):
            self._cycle.roster = await self._roster.take(self._ref(CACHE), self._call_s)
            self._reached(self._roster.worker_seqs)
        self._volumes.catch_up()
        self._cycle.accelerator = self._kernel.accelerator(len(pods))
        nodes = self._nodes
        if nodes is not None:
            await nodes.catch_up(self._seqs[0])
        if nodes is None or self._cycle.narrows(pods[0]):
            batch = await begin_batch(self._cycle, pods, workers, self._seqs, self._call_s)
            self._spend("evaluate", started)
            return await self._decide_on(batch, pods, workers)
        with nodes.deciding(pods) as (batch, decisions):
            self._spend("evaluate", started)
            decisions += await self._decide_on(batch, pods, workers)
        await nodes.go_on()
        return decisions

    async def _decide_on(
        self, batch: BatchRun, pods: Sequence[PodInCycle], workers: Sequence[Ref]
    ) -> list[Decision]:
        started = time.perf_counter()
        decisions: list[Decision] = []
        while len(decisions) < len(pods):
            coming = pods[len(decisions) : len(decisions) + DECISIONS_AT_ONCE]
            if run := batch.decide_run(coming):
                decisions += run
                await asyncio.sleep(0)
                continue
            pod = coming[0]
            decision = batch.decide(pod)
            if decision is None:
                break
            decision, has_tried = await after_failure(
                decision,
                self._profiles[pod.info.facts.scheduler_name],
                self._tie_break,
                self._cycle,
                workers,
                self._seqs,
                self._call_s,
            )
            decisions.append(decision)
            if has_tried:
                # What follows from it changes the tables on which the next pod is decided.
                break
            if gives_up(decision, decisions, self._waiting):
                break
            if len(decisions) % DECISIONS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._spend("decide", started)
        return decisions

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
        )
        if self._failure is None:
            return status
        failure = failure_out(self._failure)
        return replace(
            status, error=failure.text, error_kind=failure.kind, error_parts=failure.parts
        )

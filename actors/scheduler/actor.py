"""Scheduler: a shell around AttemptsCore and SchedulingCycle, with a node table of its own.

    lease ─► begin batch ─► decide ─► assume ─► bind ─► confirm, done
                               │                  └──► forget, requeue
                               └─► requeue, note why

One loop leases and decides; binding goes on beside it, as upstream's binding cycle does, because a
decided pod is assumed and the next batch sees it. The parts: Leasing gets the pods, SchedulingCycle
decides them on the nodes that HeldNodes keeps, CycleDriver meets what it needs for that, and
EffectRunner performs what the core asks for then.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from roadstead.actors.logs import ROOT, log
from roadstead.actors.messages import ActorStatus, DeltaBatch
from roadstead.actors.messages.recovery import Restore
from roadstead.actors.names import index_of
from roadstead.actors.scheduler.cycle_driver import CycleDriver
from roadstead.actors.scheduler.effects import EffectRunner
from roadstead.actors.scheduler.figures import Figures
from roadstead.actors.scheduler.held_nodes import HeldNodes, UnsettledError
from roadstead.actors.scheduler.kernel_loader import KernelLoader
from roadstead.actors.scheduler.leasing import Leasing
from roadstead.actors.scheduler.scorers import Scorers
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.seam import NOTHING, Directory, Nothing, clock_s, failure_out
from roadstead.attempts.core import AttemptsCore
from roadstead.cycle.jobs import Thinking
from roadstead.cycle.partitions import Partition
from roadstead.cycle.scheduling_cycle import CycleParts, SchedulingCycle
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.chain import Extenders
from roadstead.facts.pod import PodFacts
from roadstead.framework.members import GroupMembers
from roadstead.nodes.pod_info import PodClasses
from roadstead.run import RunPlan, build_narrower, build_profiles


class SchedulerActor:
    """One scheduler of a run. members: who of each gang is bound."""

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
        settings = plan.settings
        self.members = GroupMembers()
        classes = PodClasses()
        profiles = build_profiles(plan, classes, members=self.members)
        volumes = SchedulerVolumes(next(iter(profiles.values())).storage)
        self._narrower = build_narrower(plan, caller_of)
        extenders = Extenders() if self._narrower is None else self._narrower.extenders
        self._nodes = HeldNodes(name, plan, classes, is_new=is_new, epoch=epoch)
        self._scorers = Scorers(name, plan, directory, self._nodes) if settings.workers else None
        self._kernel = KernelLoader(name, enabled=settings.kernel)
        self.core = AttemptsCore(name, epoch, profiles)
        self._effects = EffectRunner(self.core, plan, directory, volumes, extenders, Figures())
        thinking, partition = Thinking(settings.decision_time), None
        if settings.concurrency == "partitioned":
            partition = Partition(settings, index_of(name), self._nodes.partition_of)
        self._leasing = Leasing(
            *(self.core, self._effects, settings, profiles, classes, self.members),
            thinking=thinking,
            partition=partition,
        )
        shorten = None if self._scorers is None else self._scorers.near
        parts = CycleParts(self._nodes, settings, profiles, self._narrower, partition, shorten)
        self._driver = CycleDriver(
            *(SchedulingCycle(parts, thinking), self.core, self._effects),
            *(self._leasing, self._nodes),
            kernel=self._kernel,
            scorers=self._scorers,
            volumes=volumes,
        )
        self._loop: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._batches = 0

    @property
    def failure(self) -> BaseException | None:
        """Why the scheduler cannot go on."""
        return self._failure or self._effects.failure

    @property
    def figures(self) -> Figures:
        """What it did so far."""
        return self._effects.figures

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
        await asyncio.gather(*self._cancel(), return_exceptions=True)
        return NOTHING

    def crashed(self) -> None:
        """Nothing goes on."""
        self._cancel()

    def _cancel(self) -> list[asyncio.Task[None]]:
        """All tasks, which end."""
        if self._scorers is not None:
            self._scorers.end()
        tasks = self._effects.cancel()
        if self._loop is not None:
            self._loop.cancel()
            tasks.append(self._loop)
        return tasks

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
        await self._effects.perform(self.core.tick(clock_s()))
        undecided = self.core.undecided(self._plan.settings.batch)
        await self._leasing.renew()
        if not undecided:
            await self._leasing.lease()
            return
        lane, pods = self._driver.cycle.next(undecided)
        began_s = clock_s()
        try:
            decisions, settled = await self._driver.decide(lane, pods)
        except UnsettledError as unsettled:
            log(self._name, "batch begins anew", why=str(unsettled))
            return
        finally:
            self.figures.busy_s += clock_s() - began_s
        lane.cycle.settled(len(pods), settled)
        self.figures.decided += len(decisions)
        await self._effects.perform(self.core.decided(decisions, lane.cycle.row_versions))
        self._batches += 1
        log(
            self._name,
            "batch decided",
            pods=len(pods),
            decided=len(decisions),
            placed=sum(decision.node_name is not None for decision in decisions),
        )

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        status = ActorStatus(
            f"had decided {self._batches} batches and bound {counts.bound_total} pods; "
            f"{counts.live} pods were under way",
            timings_s=tuple(self._effects.spent_s.items()),
            counts=(
                ("batches", self._batches),
                ("bound", counts.bound_total),
                *self._kernel.coverage.counts(),
            ),
            figures=self.figures.told(),
        )
        if self.failure is None:
            return status
        failure = failure_out(self.failure)
        return replace(
            status, error=failure.text, error_kind=failure.kind, error_parts=failure.parts
        )

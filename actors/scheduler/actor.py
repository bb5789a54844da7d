"""SchedulerActor: runs the core `Scheduler` on a node table of its own.

Scheduler (core) ── needs ──► Driver ──► SchedulerNodes, kernel, scorers
                                └──────► Peers: queue, cache, binder
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import replace

from roadstead.actors.interface import NOTHING, Directory, Nothing, encode_failure
from roadstead.actors.logs import ROOT, log
from roadstead.actors.messages import ActorStatus, ChangesApplied, PackedChanges, PageRequest
from roadstead.actors.messages.recovery import Restore
from roadstead.actors.messages.scheduling import ScorePage
from roadstead.actors.names import index_of
from roadstead.actors.runtime.kernel_loader import KernelLoader
from roadstead.actors.scheduler.driver import Driver
from roadstead.actors.scheduler.peers import Peers
from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.actors.scheduler.scorers import Scorers
from roadstead.attempts.commands import PodReport, ReportKind
from roadstead.attempts.core import AttemptsCore
from roadstead.bench.machine import own_peak_bytes
from roadstead.cycle.partitions import Partition
from roadstead.cycle.scheduling_cycle import CycleParts
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import PodFacts
from roadstead.framework.members import GroupMembers
from roadstead.nodes.pod_class import PodClasses
from roadstead.run import RunPlan, build_node_search, build_profiles
from roadstead.scheduler.metrics import SchedulerMetrics
from roadstead.scheduler.scheduler import Scheduler
from roadstead.scheduler.scores import Scores
from roadstead.scheduler.volumes import SchedulerVolumes


class SchedulerActor:
    """One scheduler of a run.

    members: the bound pods of each gang. _loop: the task that leases and decides. _failed: number
    of attempts without a node (UNSCHEDULABLE), and of those that ended with an error (FAILED).
    """

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
        """is_new: it replaces another scheduler, and first waits for the whole cluster state.
        caller_of: makes the callers of extenders; over HTTP by default.
        """
        self._name = name
        self._plan = plan
        settings = plan.settings
        self.members = GroupMembers()
        # Classes of pods are compared by identity: profiles, node table and cycle share one pool.
        classes = PodClasses()
        profiles = build_profiles(plan, classes, members=self.members)
        volumes = SchedulerVolumes(next(iter(profiles.values())).storage)
        self._node_search = build_node_search(plan, caller_of)
        extenders = Extenders() if self._node_search is None else self._node_search.extenders
        self._nodes = SchedulerNodes(name, plan, classes, is_new=is_new, epoch=epoch)
        self._scorers = Scorers(name, plan, directory, self._nodes) if settings.workers else None
        self._kernel = KernelLoader(name, enabled=settings.kernel)
        partition = None
        if settings.concurrency == "partitioned":
            partition = Partition(settings, index_of(name), self._nodes.partition_of)
        # Shortens batches for which workers evaluate classes.
        limit_batch = None if self._scorers is None else self._scorers.limit_batch
        self.core = AttemptsCore(name, epoch, profiles)
        self._scores = Scores()
        self._scheduler = Scheduler(
            self.core,
            CycleParts(self._nodes, settings, profiles, self._node_search, partition, limit_batch),
            *(volumes, extenders, classes, self.members),
            profile=settings.scheduler_profiles[index_of(name)],
            on_failure=self._log_failure,
            scores=self._scores,
        )
        self._peers = Peers(name, epoch, directory, settings.deadlines.call_s)
        self._driver = Driver(
            *(self._scheduler, self._peers, self._nodes),
            kernel=self._kernel,
            scorers=self._scorers,
            volumes=volumes,
            inflight_max_batches=settings.bounds.inflight_max_batches,
        )
        self._loop: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._batches = 0
        self._failed: Counter[str] = Counter()

    @property
    def failure(self) -> BaseException | None:
        """Reason that the scheduler cannot continue."""
        return self._failure or self._driver.failure

    @property
    def metrics(self) -> SchedulerMetrics:
        """The metrics, counted where the commands of the core are performed."""
        return self._scheduler.performer.metrics

    async def apply(self, changes: PackedChanges) -> ChangesApplied:
        """Apply changes of the cluster, from the cache."""
        return await self._nodes.apply(changes)

    async def restore(self, part: Restore) -> Nothing:
        """Apply one part of the whole cluster state, for a new incarnation."""
        return await self._nodes.restore(part)

    def key_of(self, facts: PodFacts) -> str | None:
        """Return the key of an undecided pod with these facts; None if there is none.

        If a call of a user's plugin does not return, the error names this pod.
        """
        waiting = self.core.undecided(self._plan.settings.batch)
        return next((pod.key for pod in waiting if pod.pod_class.facts == facts), None)

    async def run(self, _: Nothing) -> Nothing:
        """Start the scheduler's loop, unless it runs."""
        if self._loop is None:
            self._loop = asyncio.create_task(self._run_forever(), name=self._name)
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """Stop leasing pods; binds that were sent to the binder stay valid."""
        await asyncio.gather(*self._cancel(), return_exceptions=True)
        return NOTHING

    def release(self) -> None:
        """Cancel all tasks."""
        self._cancel()

    def _cancel(self) -> list[asyncio.Task[None]]:
        """Cancel all tasks and return them."""
        if self._scorers is not None:
            self._scorers.end()
        tasks = self._driver.cancel()
        if self._loop is not None:
            self._loop.cancel()
            tasks.append(self._loop)
        return tasks

    async def _run_forever(self) -> None:
        try:
            while True:
                await self._step()
        except asyncio.CancelledError:
            raise
        except Exception as failure:
            logging.getLogger(f"{ROOT}.{self._name}").exception("cannot continue")
            self._failure = failure

    async def _step(self) -> None:
        """Run one lease or one batch."""
        done = await self._driver.step()
        if done is None:
            # It leased pods.
            return
        if done.retry_reason:
            log(self._name, "batch begins anew", why=done.retry_reason)
            return
        self._batches += 1
        if done.decided > done.placed:
            self._failed[ReportKind.UNSCHEDULABLE] += done.decided - done.placed
        counts = {"pods": done.pods, "decided": done.decided, "placed": done.placed}
        log(self._name, "batch decided", **counts)

    def _log_failure(self, report: PodReport) -> None:
        if report.kind is ReportKind.FAILED:
            self._failed[report.kind] += 1
        log(self._name, f"attempt {report.kind}", pod=report.key, why=report.message)

    def _memory(self) -> tuple[tuple[str, float], ...]:
        """Return the peak memory of the process; () unless the process is the scheduler's own."""
        if self._plan.settings.runtime != "ray":
            return ()
        return (("memory_bytes", float(own_peak_bytes())),)

    async def scores(self, request: PageRequest) -> ScorePage:
        """Return one page of the scores of the chosen nodes."""
        page = self._scores.page(request.start, request.count)
        return ScorePage(*page, len(self._scores))

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        # counts.live: leased pods whose attempts have not ended.
        status = ActorStatus(
            f"had decided {self._batches} batches and bound {counts.bound_total} pods; "
            f"{counts.live} pods were under way",
            timings_s=tuple(self._peers.spent_s.items()),
            counts=(
                ("batches", self._batches),
                ("bound", counts.bound_total),
                *self._kernel.decision_counts.counts(),
            ),
            metrics=(
                *self.metrics.by_name(),
                *((f"attempt {kind}", float(count)) for kind, count in self._failed.items()),
                ("under_way", float(counts.live)),
                *self._memory(),
            ),
        )
        if self.failure is None:
            return status
        failure = encode_failure(self.failure)
        return replace(
            status, error=failure.text, error_kind=failure.kind, error_parts=failure.parts
        )

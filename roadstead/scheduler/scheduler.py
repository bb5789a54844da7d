"""Scheduler: one scheduler's loop, around AttemptsCore and SchedulingCycle.

    lease ─► begin batch ─► decide ─► assume ─► bind ─► confirm, done
                               │                  └──► forget, requeue
                               └─► requeue, note why

One loop leases and decides. Binding runs concurrently, as upstream's binding cycle does: a decided
pod is assumed, so the next batch is decided with it. The parts: Leasing gets the pods,
SchedulingCycle decides them on the nodes of a scope, and Performer carries out the commands of the
core.

Upstream: pkg/scheduler/scheduler.go (Run) and schedule_one.go (ScheduleOne), batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roadstead.attempts.commands import PodReport
from roadstead.attempts.core import AttemptsCore
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.needs import READ_CLOCK, CatchUpTimeoutError, time_after
from roadstead.cycle.scheduling_cycle import CycleParts, Decided, SchedulingCycle
from roadstead.cycle.scopes import Scope
from roadstead.extenders.sequence import Extenders
from roadstead.framework.members import GroupMembers
from roadstead.nodes.pod_class import PodClasses
from roadstead.scheduler.leasing import Leasing
from roadstead.scheduler.needs import Steps
from roadstead.scheduler.performer import Performer
from roadstead.scheduler.scores import Scores
from roadstead.scheduler.volumes import SchedulerVolumes


@dataclass(frozen=True, slots=True)
class BatchDone:
    """Numbers of pods of a batch: all, decided, placed.

    retry_reason: why the batch must begin again; "" if it was decided.
    """

    pods: int
    decided: int = 0
    placed: int = 0
    retry_reason: str = ""


class Scheduler:
    """Lease pods, decide them, and carry out the consequences.

    core: has the leased pods and their attempts. parts: parts of its cycle; the driver keeps their
    node table up to date. volumes: storage state, and claims that its attempts bind. classes: the
    pod classes of this process. members: numbers of bound pods of gangs. profile: scheduler name
    of the pods that it leases, "" for all. on_failure: see `Performer`. scores: records the scores
    of all decisions; None if nothing reads them, as they need more memory with each decision.
    """

    def __init__(
        self,
        core: AttemptsCore,
        parts: CycleParts,
        volumes: SchedulerVolumes,
        extenders: Extenders,
        classes: PodClasses,
        members: GroupMembers,
        *,
        profile: str = "",
        on_failure: Callable[[PodReport], None],
        scores: Scores | None = None,
    ) -> None:
        settings, latency = parts.settings, SimulatedLatency(parts.settings.decision_time)
        self.core = core
        self.cycle = SchedulingCycle(parts, latency)
        self.performer = Performer(core, settings, volumes, extenders, on_failure)
        self.scores = scores
        self.leasing = Leasing(
            *(core, self.performer, settings, parts.profiles, classes, members),
            profile=profile,
            latency=latency,
            partition=parts.partition,
        )
        self._max_pods = settings.batch

    def step(self, now_s: float) -> Steps[BatchDone | None]:
        """Lease pods, or decide one batch and carry out the consequences; None after a lease."""
        yield from self.performer.perform(self.core.tick(now_s))
        undecided = self.core.undecided(self._max_pods)
        now_s = yield from time_after(READ_CLOCK)
        yield from self.leasing.renew(now_s)
        if not undecided:
            yield from self.leasing.lease()
            return None
        scope, pods = self.cycle.next(undecided)
        return (
            yield from self._batch(scope, pods, self.cycle.pods_of_chain(scope, pods, undecided))
        )

    def _batch(
        self, scope: Scope, pods: Sequence[PodInCycle], chain_pods: Sequence[PodInCycle]
    ) -> Steps[BatchDone]:
        performer = self.performer
        if performer.must_reread:
            # A decision on the state that was read has failed: drop it, to read it again.
            self.cycle.drop()
            performer.must_reread = False
        began_s = now_s = yield from time_after(READ_CLOCK)
        decided: Decided | None = None
        retry_reason = ""
        try:
            decided = yield from self.cycle.decide(scope, pods, now_s, chain_pods)
        except CatchUpTimeoutError as failure:
            retry_reason = str(failure)
        now_s = yield from time_after(READ_CLOCK)
        performer.metrics.busy_s += now_s - began_s
        performer.metrics.passed_on = self.cycle.passed_on
        if decided is None:
            return BatchDone(len(pods), retry_reason=retry_reason)
        # Without the number of pods that were decided or passed on.
        decisions, _ = decided
        performer.metrics.decided += len(decisions)
        if self.scores is not None:
            self.scores.record(decisions)
        # By node: the version of each row that the decisions of this batch read.
        read_versions = scope.builder.row_versions
        yield from performer.perform(self.core.decided(decisions, read_versions))
        placed = sum(decision.node_name is not None for decision in decisions)
        return BatchDone(len(pods), len(decisions), placed)

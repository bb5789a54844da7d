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
from collections.abc import Container, Sequence
from dataclasses import replace

from roadstead.actors.kernel_loader import KernelLoader
from roadstead.actors.logs import ROOT, log
from roadstead.actors.messages import (
    ASSUME,
    BIND,
    LEASE,
    REPORT,
    SETTLE,
    ActorStatus,
    AssumeBatch,
    BindBatch,
    GivenBack,
    LeaseAsk,
    LeaseReport,
    PendingNote,
    PodBatch,
    Settle,
    pod_batch,
)
from roadstead.actors.messages import BindAnswer as WireAnswer
from roadstead.actors.names import BINDER, CACHE, QUEUE, worker_name
from roadstead.actors.preemption import after_failure, carry_out
from roadstead.actors.roster import RosterCopy
from roadstead.actors.rounds import UnsettledError, begin_batch
from roadstead.actors.seam import (
    NOTHING,
    DeadlineError,
    Directory,
    Nothing,
    PatientRef,
    clock_s,
    failure_out,
)
from roadstead.actors.volumes import SchedulerVolumes
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.core import CycleCore
from roadstead.cycle.effects import (
    AskBinder,
    Assume,
    Bind,
    Confirm,
    Done,
    Effect,
    FinishBinding,
    Forget,
    Nominate,
    Report,
    Requeue,
    RequeueItem,
)
from roadstead.cycle.gangs import gives_up
from roadstead.cycle.pods import Attempt, BindAnswer, BindOutcome
from roadstead.cycle.sharded import ShardedCycle
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.chain import Extenders
from roadstead.facts.pod import PodFacts, PodIdentity, unnominated
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.protocol.status import unschedulable
from roadstead.run import RunPlan, build_narrower, build_profiles

LEASE_WAIT_S = 0.5
DECISIONS_AT_ONCE = 64
"""Decisions between two looks at the loop, so that answers are not kept waiting."""

NOBODY_GONE = PodBatch((), (), (), ())

_OUTCOMES = {
    "": BindOutcome.BOUND,
    "constraint": BindOutcome.CONFLICT,
    "unknown_node": BindOutcome.CONFLICT,
    "already_bound": BindOutcome.TAKEN,
    "deleted": BindOutcome.GONE,
}
"""What a binder's cause means to the cycle; any other one fails the attempt."""


class SchedulerActor:
    """One scheduler of a run."""

    def __init__(self, name: str, plan: RunPlan, directory: Directory, *, epoch: int = 1) -> None:
        self._name = name
        self._plan = plan
        self._directory = directory
        self._classes = PodClasses()
        self._profiles = build_profiles(plan, self._classes)
        self._waiting = next(iter(self._profiles.values())).waiting
        settings = plan.settings
        tie_break = self._tie_break = TieBreak(settings.tie_break, settings.seed)
        self._narrower = build_narrower(plan)
        self._extenders = Extenders() if self._narrower is None else self._narrower.extenders
        self._roster = RosterCopy(whole=self._extenders.wants_manifests)
        self._cycle = ShardedCycle(
            self._classes, self._profiles, tie_break, narrower=self._narrower
        )
        self._kernel = KernelLoader(name, enabled=settings.kernel)
        self._epoch = epoch
        self.core = CycleCore(name, self._epoch, self._profiles)
        self._seqs = [0] * settings.shards
        self._refs: dict[str, PatientRef] = {}
        self._loop: asyncio.Task[None] | None = None
        self._binding: set[asyncio.Task[None]] = set()
        self._may_bind = asyncio.Semaphore(settings.bounds.inflight_max_batches)
        self._failure: BaseException | None = None
        self._spent_s: dict[str, float] = {}
        self._batches = 0
        self._volumes = SchedulerVolumes(next(iter(self._profiles.values())).storage)

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
        workers = [self._ref(worker_name(index)) for index in range(len(self._seqs))]
        started = time.perf_counter()
        if self._cycle.narrows(pods[0]):
            self._cycle.roster = await self._roster.take(self._ref(CACHE), self._call_s)
            self._reached(self._roster.worker_seqs)
        self._volumes.catch_up()
        self._cycle.accelerator = self._kernel.accelerator(len(pods))
        batch = await begin_batch(self._cycle, pods, workers, self._seqs, self._call_s)
        self._spend("evaluate", started)
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

    async def _perform(self, effects: Sequence[Effect]) -> None:
        """Performs effects in order; binding goes on beside."""
        finishing: tuple[Attempt, ...] = ()
        gone = NOBODY_GONE
        notes = _notes(effects)
        forgotten = (effect.attempts for effect in effects if isinstance(effect, Forget))
        freed = {attempt.uid for attempts in forgotten for attempt in attempts}
        for effect in effects:
            if isinstance(effect, Assume):
                await self._assume(effect.attempts)
            elif isinstance(effect, FinishBinding):
                finishing = effect.attempts
            elif isinstance(effect, (Bind, AskBinder)):
                self._start_binding(finishing, effect.attempts)
                finishing = ()
            elif isinstance(effect, Forget):
                self._volumes.drop([attempt.token for attempt in effect.attempts])
                await self._settle(Settle(forget=_pairs(effect.attempts), finish=(), confirm=()))
            elif isinstance(effect, Confirm):
                self._volumes.drop([attempt.token for attempt in effect.attempts])
                uids = tuple(attempt.uid for attempt in effect.attempts)
                await self._settle(Settle(forget=(), finish=(), confirm=uids))
            elif isinstance(effect, Nominate):
                gone = await self._nominate(effect)
            elif isinstance(effect, (Done, Requeue)):
                await self._report(effect, notes, gone, freed)
                notes, gone = (), NOBODY_GONE
        if notes:
            await self._send_report(LeaseReport(0, (), (), notes))

    async def _assume(self, attempts: Sequence[Attempt]) -> None:
        started = time.perf_counter()
        batch = AssumeBatch(
            _pods(attempts),
            tuple(a.node_name for a in attempts),
            tuple(a.token for a in attempts),
            self._volumes.known,
        )
        answer = await self._ref(CACHE).call(ASSUME, batch, timeout_s=self._call_s)
        self._reached(answer.worker_seqs)
        self._volumes.take(answer.storage, answer.volumes)
        refused = [(token, unschedulable(why)) for token, why in answer.refused]
        not_taken = {token for token, _ in refused}
        accepted = [a.token for a in attempts if a.token not in not_taken]
        self._spend("assume", started)
        await self._perform(self.core.assumed(accepted, refused, clock_s()))

    def _start_binding(self, finishing: Sequence[Attempt], attempts: Sequence[Attempt]) -> None:
        task = asyncio.create_task(self._bind(tuple(finishing), tuple(attempts)))
        self._binding.add(task)
        task.add_done_callback(self._bound_or_failed)

    def _bound_or_failed(self, task: asyncio.Task[None]) -> None:
        self._binding.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = self._failure or failure

    async def _bind(self, finishing: Sequence[Attempt], attempts: Sequence[Attempt]) -> None:
        async with self._may_bind:
            if finishing:
                await self._settle(Settle(forget=(), finish=_pairs(finishing), confirm=()))
                attempts = await self._bind_outside(attempts)
            if not attempts:
                return
            batch = BindBatch(
                self._name,
                self._epoch,
                _pods(attempts),
                tuple(a.node_name for a in attempts),
                tuple(a.token for a in attempts),
                self._volumes.of([a.token for a in attempts]),
            )
            started = time.perf_counter()
            binder = self._ref(BINDER).ref
            try:
                answer = await binder.call(BIND, batch, timeout_s=self._call_s)
            except DeadlineError:
                await self._perform(self.core.lost([a.token for a in attempts]))
                return
            self._spend("bind", started)
            answers = [_answer(each) for each in answer.answers]
            await self._perform(self.core.bind_answered(answers))

    async def _bind_outside(self, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        """Has extenders bind the pods that they bind; those to be committed, failures left out."""
        refused = []
        for attempt in attempts:
            if not self._extenders.binder_of(attempt.facts):
                continue
            target = _identity(attempt), attempt.facts, attempt.node_name
            try:
                await asyncio.to_thread(self._extenders.bind, *target)
            except ExtenderError as failure:
                refused.append(BindAnswer(attempt.token, BindOutcome.FAILED, message=str(failure)))
        if not refused:
            return attempts
        await self._perform(self.core.bind_answered(refused))
        failed = {answer.token for answer in refused}
        return [attempt for attempt in attempts if attempt.token not in failed]

    async def _settle(self, message: Settle) -> None:
        message = replace(message, known_changes=self._volumes.known)
        answer = await self._ref(CACHE).call(SETTLE, message, timeout_s=self._call_s)
        self._reached(answer.worker_seqs)
        self._volumes.take(answer.storage)

    def _reached(self, worker_seqs: Sequence[int]) -> None:
        pairs = zip(self._seqs, worker_seqs, strict=True)
        self._seqs = [max(known, told) for known, told in pairs]

    async def _nominate(self, effect: Nominate) -> PodBatch:
        """Evicts victims and nominates; those that are gone."""
        started = time.perf_counter()
        binder, cache = self._ref(BINDER), self._ref(CACHE)
        known = self._volumes.known
        effects, gone, answer = await carry_out(
            effect, self.core, binder, cache, known, self._call_s
        )
        self._reached(answer.worker_seqs)
        self._volumes.take(answer.storage)
        self._spend("preempt", started)
        await self._perform(effects)
        return gone

    async def _report(
        self,
        effect: Done | Requeue,
        notes: tuple[PendingNote, ...],
        gone: PodBatch,
        freed: Container[str],
    ) -> None:
        if isinstance(effect, Done):
            await self._send_report(LeaseReport(effect.lease_id, effect.uids, (), notes))
            return
        back = tuple(_given_back(item, freed) for item in effect.items)
        await self._send_report(LeaseReport(effect.lease_id, (), back, notes, gone))

    async def _send_report(self, report: LeaseReport) -> None:
        started = time.perf_counter()
        await self._ref(QUEUE).call(REPORT, report, timeout_s=self._call_s)
        self._spend("report", started)

    @property
    def _call_s(self) -> float:
        return self._plan.settings.deadlines.call_s

    def _ref(self, name: str) -> PatientRef:
        found = self._refs.get(name)
        if found is None:
            found = self._refs[name] = PatientRef(self._directory.find(name))
        return found

    def _spend(self, phase: str, started: float) -> None:
        self._spent_s[phase] = self._spent_s.get(phase, 0.0) + time.perf_counter() - started

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


def _pods(attempts: Sequence[Attempt]) -> PodBatch:
    return pod_batch((_identity(each), unnominated(each.facts)) for each in attempts)


def _identity(attempt: Attempt) -> PodIdentity:
    namespace = attempt.facts.namespace
    return PodIdentity(attempt.uid, namespace, attempt.key.removeprefix(f"{namespace}/"))


def _pairs(attempts: Sequence[Attempt]) -> tuple[tuple[str, str], ...]:
    return tuple((attempt.uid, attempt.token) for attempt in attempts)


def _answer(wire: WireAnswer) -> BindAnswer:
    outcome = _OUTCOMES.get(wire.cause, BindOutcome.FAILED)
    message = ", ".join((wire.cause, *wire.reasons)) if wire.cause else ""
    return BindAnswer(wire.token, outcome, wire.node_name, message)


def _given_back(item: RequeueItem, freed: Container[str]) -> GivenBack:
    return GivenBack(
        item.uid,
        str(item.reason),
        item.rejected_by,
        item.nominated_node,
        item.preempts,
        item.pending,
        item.uid in freed,
    )


def _notes(effects: Sequence[Effect]) -> tuple[PendingNote, ...]:
    return tuple(
        PendingNote(each.uid, each.key, each.message, each.reasons, each.plugins)
        for effect in effects
        if isinstance(effect, Report)
        for each in effect.reports
    )

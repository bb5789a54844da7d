"""EffectRunner: performs what a scheduler's core asks for: assume, bind, settle, report.

    effects of the core ──► perform, in order ──► answers go into the core ──► its next effects
                                └── Bind: a task of its own, as upstream's binding cycle

A decided pod is assumed before it is bound, so that the next batch is decided meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial

from roadstead.actors.binder.order import SendOrder, Turn
from roadstead.actors.logs import log
from roadstead.actors.messages import (
    ASSUME,
    BIND,
    NO_PODS,
    REPORT,
    SETTLE,
    AssumeBatch,
    BindAnswers,
    BindBatch,
    LeaseReport,
    PodBatch,
    Settle,
    pod_columns,
)
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.scheduler.figures import Figures
from roadstead.actors.scheduler.outside import call_outside
from roadstead.actors.scheduler.preemption import carry_out
from roadstead.actors.scheduler.volumes import SchedulerVolumes
from roadstead.actors.seam import (
    TRIES,
    ActorLostError,
    DeadlineError,
    Directory,
    PatientRef,
    clock_s,
)
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.effects import (
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
    ReportKind,
    Requeue,
    RequeueItem,
    RequeueReason,
)
from roadstead.attempts.pods import Attempt, BindAnswer, BindOutcome
from roadstead.cycle.jobs import job_of
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.chain import Extenders
from roadstead.facts.pod import PodIdentity
from roadstead.protocol.status import unschedulable
from roadstead.queue.reports import GivenBack, PendingNote
from roadstead.run import RunPlan

_OUTCOMES = {
    "": BindOutcome.BOUND,
    "constraint": BindOutcome.CONFLICT,
    "unknown_node": BindOutcome.CONFLICT,
    "version": BindOutcome.CONFLICT,
    "transaction": BindOutcome.CONFLICT,
    "expired": BindOutcome.CONFLICT,
    "changed": BindOutcome.CONFLICT,
    # The binder has enough to flush: that says nothing of the pod.
    "busy": BindOutcome.CONFLICT,
    "already_bound": BindOutcome.TAKEN,
    "deleted": BindOutcome.GONE,
}
"""What a binder's cause means to the cycle; any other one fails the attempt."""


class EffectRunner:
    """Performs the effects of one scheduler's core by calls to cache, binder and queue.

    seq: the last change of the cluster that must be on the table for the next batch. failure: what
    ended a binding task, and with it the scheduler. spent_s: seconds by phase.
    reads_failed: something that was decided on the state as read was refused since. figures: what
    the scheduler did, of which this counts the binder's answers.
    """

    def __init__(
        self,
        core: AttemptsCore,
        plan: RunPlan,
        directory: Directory,
        volumes: SchedulerVolumes,
        extenders: Extenders,
        figures: Figures,
    ) -> None:
        self.seq = 0
        self.failure: BaseException | None = None
        self.spent_s: dict[str, float] = {}
        self.reads_failed = False
        self.call_s = plan.settings.deadlines.call_s
        self._core = core
        self._directory = directory
        self._refs: dict[str, PatientRef] = {}
        self._binding: set[asyncio.Task[None]] = set()
        self._may_bind = asyncio.Semaphore(plan.settings.bounds.inflight_max_batches)
        self._order = SendOrder()
        self._losses = 0
        self._volumes = volumes
        self._extenders = extenders
        self.figures = figures
        self._news: dict[str, int] = {}
        self._checks_versions = plan.settings.conflicts == "version"
        self._is_whole = plan.settings.transaction == "all-or-nothing"

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel all binding tasks; what is at the binder stays there."""
        tasks = [*self._binding]
        for task in tasks:
            task.cancel()
        return tasks

    async def perform(self, effects: Sequence[Effect]) -> None:
        """Performs effects in order; binding goes on beside."""
        finishing: tuple[Attempt, ...] = ()
        gone = NO_PODS
        notes = _notes(effects)
        _log_failures(self._core.owner, effects)
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
                self.reads_failed = True
                self._volumes.drop([attempt.token for attempt in effect.attempts])
                await self.settle(Settle(forget=_pairs(effect.attempts), finish=(), confirm=()))
            elif isinstance(effect, Confirm):
                self._volumes.drop([attempt.token for attempt in effect.attempts])
                uids = tuple(attempt.uid for attempt in effect.attempts)
                await self.settle(Settle(forget=(), finish=(), confirm=uids))
            elif isinstance(effect, Nominate):
                gone = await self._nominate(effect)
            elif isinstance(effect, (Done, Requeue)):
                await self._report(effect, notes, gone, freed)
                notes, gone = (), NO_PODS
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
        answer = await self.ref(CACHE).call(ASSUME, batch, timeout_s=self.call_s)
        self.seq = max(self.seq, answer.seq)
        self._volumes.take(answer.storage, answer.volumes)
        refused = [(token, unschedulable(why)) for token, why in answer.refused]
        not_taken = {token for token, _ in refused}
        self.reads_failed |= bool(refused)
        accepted = [a.token for a in attempts if a.token not in not_taken]
        self.spend("assume", started)
        await self.perform(self._core.assumed(accepted, refused, clock_s()))

    def bear(self, failure: DeadlineError | ActorLostError) -> None:
        """Goes on without an answer; raises where an actor stays away, who may be replaced."""
        self._losses += isinstance(failure, ActorLostError)
        if self._losses >= TRIES:
            raise failure

    def answered(self) -> None:
        """An actor answered: losses before it do not count."""
        self._losses = 0

    def _start_binding(self, finishing: Sequence[Attempt], attempts: Sequence[Attempt]) -> None:
        turn = self._order.begin()
        task = asyncio.create_task(self._bind(tuple(finishing), tuple(attempts), turn))
        self._binding.add(task)
        task.add_done_callback(self._bound_or_failed)

    def _bound_or_failed(self, task: asyncio.Task[None]) -> None:
        self._binding.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failure = self.failure or failure

    async def _bind(
        self, finishing: Sequence[Attempt], attempts: Sequence[Attempt], turn: Turn
    ) -> None:
        async with self._may_bind:
            try:
                if finishing:
                    await self.settle(Settle(forget=(), finish=_pairs(finishing), confirm=()))
                    attempts = await self._bind_outside(attempts)
                if not attempts:
                    return
                batch = self._bind_batch(attempts, await turn.comes())
            finally:
                turn.over.set()
            started = time.perf_counter()
            binder = self.ref(BINDER).ref
            try:
                answer = await binder.call(BIND, batch, timeout_s=self.call_s)
            except (DeadlineError, ActorLostError) as failure:
                self.bear(failure)
                await self.perform(self._core.lost([a.token for a in attempts]))
                return
            self.answered()
            self.spend("bind", started)
            self._take_note(attempts, answer)
            await self.perform(self._core.bind_answered(_answers(answer)))

    def _bind_batch(self, attempts: Sequence[Attempt], number: int) -> BindBatch:
        versions, whole = self._checks_versions, self._is_whole
        return BindBatch(
            self._core.owner,
            self._core.epoch,
            _pods(attempts),
            tuple(a.node_name for a in attempts),
            tuple(a.token for a in attempts),
            self._volumes.of([a.token for a in attempts]),
            tuple(a.read_version for a in attempts) if versions else (),
            tuple(job_of(a.facts) for a in attempts) if whole else (),
            number,
        )

    def _take_note(self, attempts: Sequence[Attempt], told: BindAnswers) -> None:
        """What answers of the binder say beside how attempts end."""
        causes = dict.fromkeys(told.tokens, "")
        causes |= {told.tokens[place]: cause for place, cause, _, _ in told.refused}
        self.figures.answered(attempts, causes)
        self.reads_failed |= bool(told.refused)
        if self._checks_versions:
            version_of = {each.token: each.row_version for each in told.answers}
            for each in attempts:
                if each.token in version_of:
                    known = self._news.get(each.node_name, 0)
                    self._news[each.node_name] = max(known, version_of[each.token])

    async def _bind_outside(self, attempts: Sequence[Attempt]) -> Sequence[Attempt]:
        """Has extenders bind the pods that they bind; those to be committed, failures left out."""
        refused = []
        for attempt in attempts:
            if not self._extenders.binder_of(attempt.facts):
                continue
            target = _identity(attempt), attempt.facts, attempt.node_name
            try:
                await call_outside(self._extenders, partial(self._extenders.bind, *target))
            except ExtenderError as failure:
                refused.append(BindAnswer(attempt.token, BindOutcome.FAILED, message=str(failure)))
        if not refused:
            return attempts
        await self.perform(self._core.bind_answered(refused))
        failed = {answer.token for answer in refused}
        return [attempt for attempt in attempts if attempt.token not in failed]

    async def settle(self, message: Settle) -> None:
        rows, self._news = tuple(self._news.items()), {}
        message = replace(message, known_changes=self._volumes.known, rows=rows)
        answer = await self.ref(CACHE).call(SETTLE, message, timeout_s=self.call_s)
        self.seq = max(self.seq, answer.seq)
        self._volumes.take(answer.storage)

    async def _nominate(self, effect: Nominate) -> PodBatch:
        """Evicts victims and nominates; those that are gone."""
        started = time.perf_counter()
        binder, cache = self.ref(BINDER), self.ref(CACHE)
        known = self._volumes.known
        effects, gone, answer = await carry_out(
            effect, self._core, binder, cache, known, self.call_s
        )
        self.seq = max(self.seq, answer.seq)
        self._volumes.take(answer.storage)
        self.spend("preempt", started)
        await self.perform(effects)
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
        await self.ref(QUEUE).call(REPORT, report, timeout_s=self.call_s)
        self.spend("report", started)

    def ref(self, name: str) -> PatientRef:
        found = self._refs.get(name)
        if found is None:
            found = self._refs[name] = PatientRef(self._directory.find(name))
        return found

    def spend(self, phase: str, started: float) -> None:
        self.spent_s[phase] = self.spent_s.get(phase, 0.0) + time.perf_counter() - started


def _pods(attempts: Sequence[Attempt]) -> PodBatch:
    uids, keys = [each.uid for each in attempts], [each.key for each in attempts]
    return pod_columns(uids, keys, [each.facts for each in attempts])


def _identity(attempt: Attempt) -> PodIdentity:
    namespace = attempt.facts.namespace
    return PodIdentity(attempt.uid, namespace, attempt.key.removeprefix(f"{namespace}/"))


def _pairs(attempts: Sequence[Attempt]) -> tuple[tuple[str, str], ...]:
    return tuple((attempt.uid, attempt.token) for attempt in attempts)


def _answers(told: BindAnswers) -> list[BindAnswer]:
    found = [
        BindAnswer(token, BindOutcome.BOUND, node)
        for token, node in zip(told.tokens, told.nodes, strict=True)
    ]
    for place, cause, reasons, _ in told.refused:
        outcome = _OUTCOMES.get(cause, BindOutcome.FAILED)
        found[place] = BindAnswer(told.tokens[place], outcome, "", ", ".join((cause, *reasons)))
    return found


def _given_back(item: RequeueItem, freed: Container[str]) -> GivenBack:
    return GivenBack(
        item.uid,
        str(item.reason),
        item.rejected_by,
        item.nominated_node,
        item.preempts,
        item.pending,
        # One that lost a race was placed somewhere, if only in the batch in which it was decided.
        item.uid in freed or item.reason is RequeueReason.CONFLICT,
    )


def _log_failures(name: str, effects: Sequence[Effect]) -> None:
    reports = (each for effect in effects if isinstance(effect, Report) for each in effect.reports)
    for each in reports:
        if each.kind is not ReportKind.UNSCHEDULABLE:
            log(name, f"attempt {each.kind}", pod=each.key, why=each.message)


def _notes(effects: Sequence[Effect]) -> tuple[PendingNote, ...]:
    return tuple(
        PendingNote(each.uid, each.key, each.message, each.reasons, each.plugins)
        for effect in effects
        if isinstance(effect, Report)
        for each in effect.reports
    )

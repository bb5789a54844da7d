"""Performer: performs the commands of a scheduler's core: assume, bind, report, ….

    commands of the core ──► needs, in order ──► answers go into the core ──► its next commands
                                └── Bind: concurrent steps, as upstream's binding cycle

Needs are requests to queue, cache and binder, which a driver answers (`roadstead.scheduler.needs`).

A decided pod is assumed before it is bound, so that the next batch is decided meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial

from roadstead.attempts.commands import (
    Assume,
    Bind,
    Command,
    Confirm,
    Done,
    FinishBinding,
    Forget,
    Nominate,
    PodReport,
    ReportKind,
    RequeueCause,
    RequeueItem,
    RequeuePods,
    RetryBind,
    SendReports,
)
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import Attempt, BindOutcome, BindResult
from roadstead.binder.answers import BindAnswers
from roadstead.binder.pods import RejectCause
from roadstead.cache.answers import CacheAnswer
from roadstead.config.settings import Settings
from roadstead.cycle.jobs import job_of
from roadstead.cycle.needs import READ_CLOCK, run_with_extenders, time_after
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.sequence import Extenders
from roadstead.facts.pod import Pod, identity_of
from roadstead.protocol.status import unschedulable
from roadstead.queue.reports import PendingReason, ReturnedPod
from roadstead.scheduler.metrics import SchedulerMetrics
from roadstead.scheduler.needs import (
    AssumePods,
    BindPods,
    ReportPods,
    RunConcurrently,
    Steps,
    UpdateAttempts,
    binder_answer,
    cache_answer,
)
from roadstead.scheduler.preempting import deallocated, evict_and_nominate
from roadstead.scheduler.volumes import SchedulerVolumes

_OUTCOMES = {
    "": BindOutcome.BOUND,
    RejectCause.CONSTRAINT: BindOutcome.CONFLICT,
    RejectCause.UNKNOWN_NODE: BindOutcome.CONFLICT,
    RejectCause.VERSION: BindOutcome.CONFLICT,
    RejectCause.TRANSACTION: BindOutcome.CONFLICT,
    RejectCause.EXPIRED: BindOutcome.CONFLICT,
    RejectCause.CHANGED: BindOutcome.CONFLICT,
    # Too many commits wait for the binder's flush, which is no fault of this pod: no backoff.
    RejectCause.BUSY: BindOutcome.CONFLICT,
    RejectCause.ALREADY_BOUND: BindOutcome.BOUND_ELSEWHERE,
    RejectCause.DELETED: BindOutcome.GONE,
}
"""Outcome of an attempt by the binder's cause; after any other cause the attempt has failed.

After CONFLICT the pod returns to the head of activeQ, after a failure with backoff.
"""


class Performer:
    """Perform the commands of one scheduler's core.

    on_failure: called with reports of failed attempts, and with warnings. seq: the number of the
    cache's change that must be on the table before the next batch. must_reread: cache or binder
    refused an attempt, or one was forgotten at the cache, so the state must be read again. metrics:
    those of the scheduler; this class counts the binder's answers. _new_versions: by node, row
    versions from the binder's answers, for the next update of the cache.
    """

    def __init__(
        self,
        core: AttemptsCore,
        settings: Settings,
        volumes: SchedulerVolumes,
        extenders: Extenders,
        on_failure: Callable[[PodReport], None],
    ) -> None:
        self.seq = 0
        self.must_reread = False
        self.metrics = SchedulerMetrics()
        self._core = core
        self._volumes = volumes
        self._extenders = extenders
        self._on_failure = on_failure
        self._new_versions: dict[str, int] = {}
        self._checks_versions = settings.conflicts == "version"
        self._is_all_or_nothing = settings.transaction == "all-or-nothing"

    def perform(
        self, commands: Sequence[Command], finished: Container[str] = frozenset()
    ) -> Steps[None]:
        """Perform commands in order; binding runs concurrently.

        finished: tokens of attempts for which FinishBinding was part of Assume (`bind_next`).
        """
        # Attempts for which FinishBinding is sent to the cache before Bind to the binder.
        finishing: tuple[Attempt, ...] = ()
        evicted: Sequence[Pod] = ()
        reasons = _pending_reasons(commands)
        for report in _failures(commands):
            self._on_failure(report)
        forgotten = (command.attempts for command in commands if isinstance(command, Forget))
        # UIDs of pods that were assumed and are not any more, so that their resources are free;
        # below also of pods for which claims of devices are deallocated.
        freed = {attempt.uid for attempts in forgotten for attempt in attempts}
        for command in commands:
            if isinstance(command, Assume):
                yield from self._assume(command.attempts)
            elif isinstance(command, FinishBinding):
                finishing = tuple(a for a in command.attempts if a.token not in finished)
            elif isinstance(command, (Bind, RetryBind)):
                yield RunConcurrently(self._bind(finishing, command.attempts))
                finishing = ()
            elif isinstance(command, Forget):
                self.must_reread = True
                self._volumes.drop([attempt.token for attempt in command.attempts])
                yield from self.update_attempts(forget=_pairs(command.attempts))
            elif isinstance(command, Confirm):
                self._volumes.drop([attempt.token for attempt in command.attempts])
                uids = tuple(attempt.uid for attempt in command.attempts)
                yield from self.update_attempts(confirm=uids)
            elif isinstance(command, Nominate):
                evicted = yield from self._nominate(command)
                freed |= {uid for _, uid in deallocated(command)}
            elif isinstance(command, Done):
                yield ReportPods(command.lease_id, command.uids, pending_reasons=reasons)
                reasons = ()
            elif isinstance(command, RequeuePods):
                returned = tuple(_returned_pod(item, freed) for item in command.items)
                yield ReportPods(
                    command.lease_id, returned=returned, pending_reasons=reasons, evicted=evicted
                )
                reasons, evicted = (), ()
        if reasons:
            yield ReportPods(0, pending_reasons=reasons)

    def update_attempts(
        self,
        *,
        forget: tuple[tuple[str, str], ...] = (),
        sent_to_binder: tuple[tuple[str, str], ...] = (),
        confirm: tuple[str, ...] = (),
    ) -> Steps[None]:
        """Send changes of attempts to the cache; apply its answer, `seq` included."""
        rows, self._new_versions = tuple(self._new_versions.items()), {}
        need = UpdateAttempts(forget, sent_to_binder, confirm, rows, self._volumes.known)
        self._apply_answer((yield from cache_answer(need)))

    def _apply_answer(self, answer: CacheAnswer) -> None:
        self.seq = max(self.seq, answer.seq)
        self._volumes.store_changes(answer.storage, answer.volumes)

    def _assume(self, attempts: Sequence[Attempt]) -> Steps[None]:
        bind_next = self._core.bind_next(attempts) and not any(
            self._extenders.has_binder_for(attempt.facts) for attempt in attempts
        )
        need = AssumePods(attempts, self._volumes.known, bind_next)
        answer = yield from cache_answer(need)
        self._apply_answer(answer)
        refused = [(token, unschedulable(why)) for token, why in answer.refused]
        refused_tokens = {token for token, _ in refused}
        self.must_reread |= bool(refused)
        accepted = [a.token for a in attempts if a.token not in refused_tokens]
        now_s = yield from time_after(READ_CLOCK)
        commands = self._core.assumed(accepted, refused, now_s)
        yield from self.perform(commands, frozenset(accepted if bind_next else ()))

    def _bind(self, finishing: Sequence[Attempt], attempts: Sequence[Attempt]) -> Steps[None]:
        # `finishing` is empty at a retry, whose pods extenders have bound already, and after an
        # assumption with `bind_next`, whose pods no extender binds.
        if finishing:
            yield from self.update_attempts(sent_to_binder=_pairs(finishing))
            attempts = yield from self._bind_by_extenders(attempts)
        if not attempts:
            return
        answer = yield from binder_answer(self._bind_pods(attempts))
        if answer is None:
            yield from self.perform(self._core.timed_out([a.token for a in attempts]))
            return
        self._record(attempts, answer)
        yield from self.perform(self._core.bind_answered(_bind_results(answer)))

    def _bind_pods(self, attempts: Sequence[Attempt]) -> BindPods:
        versions, all_or_nothing = self._checks_versions, self._is_all_or_nothing
        return BindPods(
            attempts,
            self._volumes.of([a.token for a in attempts]),
            tuple(a.read_version for a in attempts) if versions else (),
            tuple(job_of(a.facts) for a in attempts) if all_or_nothing else (),
        )

    def _record(self, attempts: Sequence[Attempt], answer: BindAnswers) -> None:
        """Count an answer, and store the versions of rows in it."""
        causes = dict.fromkeys(answer.tokens, "")
        causes |= {answer.tokens[index]: cause for index, cause, _, _ in answer.refused}
        self.metrics.answered(attempts, causes)
        self.must_reread |= bool(answer.refused)
        if self._checks_versions:
            version_of = {each.token: each.row_version for each in answer.answers}
            for each in attempts:
                if each.token in version_of:
                    known = self._new_versions.get(each.node_name, 0)
                    self._new_versions[each.node_name] = max(known, version_of[each.token])

    def _bind_by_extenders(self, attempts: Sequence[Attempt]) -> Steps[Sequence[Attempt]]:
        """Have extenders bind the pods that they handle; return the attempts that did not fail."""
        refused = []
        for attempt in attempts:
            if not self._extenders.has_binder_for(attempt.facts):
                continue
            target = identity_of(attempt.uid, attempt.key), attempt.facts, attempt.node_name
            try:
                yield from run_with_extenders(
                    self._extenders, partial(self._extenders.bind, *target)
                )
            except ExtenderError as failure:
                refused.append(BindResult(attempt.token, BindOutcome.FAILED, message=str(failure)))
        if not refused:
            return attempts
        yield from self.perform(self._core.bind_answered(refused))
        failed = {answer.token for answer in refused}
        return [attempt for attempt in attempts if attempt.token not in failed]

    def _nominate(self, command: Nominate) -> Steps[Sequence[Pod]]:
        """Evict victims and nominate pods; return the evicted ones."""
        commands, evicted, answer = yield from evict_and_nominate(
            command, self._core, self._volumes.known
        )
        self._apply_answer(answer)
        yield from self.perform(commands)
        return evicted


def _pairs(attempts: Sequence[Attempt]) -> tuple[tuple[str, str], ...]:
    return tuple((attempt.uid, attempt.token) for attempt in attempts)


def _bind_results(answer: BindAnswers) -> list[BindResult]:
    results = [
        BindResult(token, BindOutcome.BOUND, node)
        for token, node in zip(answer.tokens, answer.nodes, strict=True)
    ]
    for index, cause, reasons, _row_version in answer.refused:
        outcome = _OUTCOMES.get(cause, BindOutcome.FAILED)
        # A failure has upstream's text; any other refusal is explained by its cause.
        texts = reasons if cause == RejectCause.FAILED else (cause, *reasons)
        results[index] = BindResult(answer.tokens[index], outcome, "", ", ".join(texts))
    return results


def _returned_pod(item: RequeueItem, freed: Container[str]) -> ReturnedPod:
    return ReturnedPod(
        item.uid,
        str(item.reason),
        item.rejected_by,
        item.nominated_node,
        item.preempts,
        item.pending,
        # A pod that lost a race had been placed, if only in the batch in which it was decided.
        freed=item.uid in freed or item.reason is RequeueCause.CONFLICT,
    )


def _failures(commands: Sequence[Command]) -> Iterable[PodReport]:
    reports = (
        each for command in commands if isinstance(command, SendReports) for each in command.reports
    )
    return (each for each in reports if each.kind is not ReportKind.UNSCHEDULABLE)


def _pending_reasons(commands: Sequence[Command]) -> tuple[PendingReason, ...]:
    return tuple(
        PendingReason(each.uid, each.key, each.message, each.reasons, each.plugins)
        for command in commands
        if isinstance(command, SendReports)
        for each in command.reports
    )

"""AttemptsCore: state machine of leased pods, from decision to the end of the binding cycle.

States and events, as `scripts/diagrams.py` draws them from `attempts.pods.TABLE`:

    NEW           ── lease ──► LEASED
    LEASED        ── place ──► ASSUMING   ── reject ──► UNSCHEDULABLE   ── fail ──► FAILED
                  ── delete ──► GONE   ↺ lease
    ASSUMING      ── accept ──► ASSUMED   ── refuse ──► CONFLICT   ── delete ──► GONE   ↺ lease, ask
    ASSUMED       ── park ──► WAITING   ── permit ──► PERMITTED   ── reject ──► UNSCHEDULABLE
                  ── fail ──► FAILED
    WAITING       ── permit ──► PERMITTED   ── reject ──► UNSCHEDULABLE   ── delete ──► GONE
                  ↺ lease
    PERMITTED     ── bind ──► BINDING   ── fail ──► FAILED
    BINDING       ── ask ──► ASKED   ── commit ──► BOUND   ── fail ──► FAILED
                  ── refuse ──► CONFLICT   ── bound elsewhere, delete ──► GONE   ↺ lease
    ASKED         ── commit ──► BOUND   ── fail ──► FAILED   ── refuse ──► CONFLICT
                  ── bound elsewhere, delete ──► GONE   ↺ lease, ask
    BOUND         ── delete ──► GONE   ↺ lease
    UNSCHEDULABLE ── lease ──► LEASED
    FAILED        ── lease ──► LEASED
    CONFLICT      ── lease ──► LEASED
    GONE          ── lease ──► LEASED

`lease` of a pod that is under way: a newer lease, under which it stays in its state; for a BOUND
pod Done is sent again. `park`: a Permit plugin returned Wait. `ask`: cache or binder did not answer
in time, so the request is repeated. `bound elsewhere`: another attempt bound the pod.

ASSUMED (Reserve and Permit run) and PERMITTED (PreBind and Bind run) are entered and left within
one call. Every end without a bind is one method, `_end`: Unreserve in reverse order, Forget,
RequeuePods. A refusal up to Permit makes a pod unschedulable; from PreBind on it is a failure,
retried after backoff. After a bind request was sent, only the binder's answer or the deletion of
the pod ends the attempt: an acknowledged bind is never undone here.

Every call may be made twice with the same message; the second call changes nothing and returns no
new commands (except that `timed_out` repeats requests, and Forget may be repeated). The first
answer to a request counts; two different answers of the binder for one token are an error of the
binder. Plugins must not call the core: their decisions about waiting pods are recorded in
`Handle.waiting` and applied at the end of the call.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle, bindingCycle, handleBindingCycleError,
handleSchedulingFailure) and framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.attempts import steps
from roadstead.attempts.attempt_results import refused_by
from roadstead.attempts.attempt_store import AttemptStore
from roadstead.attempts.attempt_transitions import AttemptTransitions
from roadstead.attempts.commands import AttemptResult, Command, Outbox
from roadstead.attempts.pods import (
    ENDED_UNBOUND,
    TABLE,
    Attempt,
    AttemptCounts,
    AttemptEvent,
    AttemptRecord,
    AttemptState,
    BindOutcome,
    BindResult,
    decision_key,
    event_of,
    is_new_answer,
)
from roadstead.config.durations import Duration
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.profile import Profile
from roadstead.protocol.status import SUCCESS, Status


class AttemptsCore(AttemptTransitions):
    """The pods leased to one scheduler in one of its epochs.

    A newer lease has a larger number. profiles: by scheduler name. max_remembered: number of ended
    pods and attempts that are stored to recognize late copies of messages.
    """

    def __init__(
        self,
        owner: str,
        epoch: int,
        profiles: Mapping[str, Profile],
        max_remembered: int = 65_536,
    ) -> None:
        self.owner, self.epoch = owner, epoch
        self._profiles = profiles
        super().__init__(AttemptStore(f"{owner}/{epoch}/", max_remembered))
        self._waiting_registries = tuple(
            {id(each.waiting): each.waiting for each in profiles.values()}.values()
        )
        for registry in self._waiting_registries:
            registry.connect(
                self._store.find_waiting, self._store.all_waiting, self._store.all_before_permit
            )

    def lease(self, lease_id: int, pods: Sequence[PodInCycle]) -> list[Command]:
        """Add leased pods. A pod that is under way keeps its state, and belongs to this lease.

        Commands: Done for pods that this scheduler has bound already, and those that follow from
        plugins' recorded decisions about waiting pods. Raises KeyError, with nothing changed, for a
        pod whose scheduler name has no profile.
        """
        profiles = [self._profiles[pod.pod_class.facts.scheduler_name] for pod in pods]
        out = Outbox()
        new_records: dict[str, AttemptRecord] = {}
        for pod, profile in zip(pods, profiles, strict=True):
            known = self._store.pods.find(pod.uid)
            if known is None or known.state in ENDED_UNBOUND:
                if pod.uid not in new_records and (known is None or lease_id > known.lease_id):
                    new_records[pod.uid] = self._store.new(pod, profile, lease_id)
            elif lease_id > known.lease_id:
                self._lease_again(pod, profile, lease_id, known, out)
        # A pod that was leased before keeps its history of transitions, for errors.
        self._store.pods.inherit_histories(new_records.values())
        self._store.transition_all(list(new_records.values()), AttemptEvent.LEASE)
        return self._commands(out)

    def undecided(self, max_pods: int) -> tuple[PodInCycle, ...]:
        """Return the first pods that wait for a decision, including those of unfinished batches."""
        found = zip(range(max_pods), self._store.undecided.values(), strict=False)
        return tuple(record.pod for _, record in found)

    def decided(
        self, decisions: Sequence[Decision], read_versions: Mapping[str, int] | None = None
    ) -> list[Command]:
        """Record the decisions of a batch.

        read_versions: node → version of its row that the decisions read. Decisions for pods that
        were deleted or leased again since are ignored. Commands: Assume for placed pods; Nominate,
        RequeuePods and SendReports for the others. Raises, with nothing changed,
        IllegalTransitionError for a pod that waits for no decision, and UnsupportedError for one
        that a plugin does not support.
        """
        new: dict[str, Decision] = {}
        undecided = self._store.undecided
        for decision in decisions:
            uid = decision.pod.uid
            record = undecided.get(uid)
            is_current = record is not None and record.pod.attempt == decision.pod.attempt
            if is_current and uid not in new:
                new[uid] = decision
            else:
                self._ignore_late(decision, new.get(uid))
        # PostFilter may raise UnsupportedError: results are computed before anything changes.
        results = {uid: self._result(each) for uid, each in new.items() if each.node_name is None}
        out = Outbox()
        for uid, result in results.items():
            record = undecided[uid]
            record.decided = decision_key(new[uid])
            self._end(record, event_of(new[uid]), out, result)
        placed = {uid: each.node_name for uid, each in new.items() if each.node_name is not None}
        self._place(placed, read_versions or {}, out)
        return self._commands(out)

    def assumed(
        self, accepted: Sequence[str], refused: Sequence[tuple[str, Status]], now_s: float
    ) -> list[Command]:
        """Apply the cache's answers: accepted attempts run Reserve, Permit, PreBind and Bind.

        accepted: tokens. refused: (token, status). Commands: FinishBinding, then Bind; RequeuePods
        as conflict for attempts that the cache refused; Forget, RequeuePods and SendReports for
        attempts that a plugin refused; Forget for attempts that ended before they were accepted.
        Raises IllegalTransitionError for a token that was never issued.
        """
        answers = {**dict(refused), **dict.fromkeys(accepted, SUCCESS)}
        records = [
            self._store.of_token(
                token, AttemptEvent.ACCEPT if status.is_success else AttemptEvent.REFUSE
            )
            for token, status in answers.items()
        ]
        out = Outbox()
        without_plugins: list[AttemptRecord] = []
        for record, status in zip(records, answers.values(), strict=True):
            if record is None:
                continue
            # Records without plugins to run make their transitions in one call, which is faster.
            if (
                status is SUCCESS
                and record.binds_without_plugins
                and record.state is AttemptState.ASSUMING
            ):
                without_plugins.append(record)
            else:
                self._apply_assumption(record, status, now_s, out)
        self._store.transition_all(
            without_plugins, AttemptEvent.ACCEPT, AttemptEvent.PERMIT, AttemptEvent.BIND
        )
        out.bind += [record.placed_attempt for record in without_plugins]
        return self._commands(out)

    def bind_next(self, attempts: Iterable[Attempt]) -> bool:
        """Whether no plugin runs between the cache's answer for these attempts and their binds."""
        records = (self._store.attempts.get(each.token) for each in attempts)
        return all(record is not None and record.binds_without_plugins for record in records)

    def allow(self, uid: str, plugin: str) -> list[Command]:
        """Allow a waiting pod for one Permit plugin; after the last one, PreBind and Bind run.

        Ignored for a pod that does not wait for this plugin, as upstream.
        """
        out = Outbox()
        self._allow(uid, plugin, out)
        return self._commands(out)

    def reject(self, uid: str, plugin: str, reason: str) -> list[Command]:
        """Refuse a waiting pod for a Permit plugin; ignored for a pod that does not wait."""
        out = Outbox()
        self._reject(uid, refused_by(plugin, reason), out)
        return self._commands(out)

    def tick(self, now_s: float) -> list[Command]:
        """Refuse waiting pods whose deadline has passed, on behalf of the plugin that set it."""
        out = Outbox()
        while (record := self._store.waiting.first()) is not None and record.deadline_s <= now_s:
            plugin, wait = min(record.waits.items(), key=lambda item: item[1].deadline_s)
            waited = Duration(round(wait.wait_s * 1e9))
            reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self._end_refused(record, refused_by(plugin, reason), out)
        return self._commands(out)

    def bind_answered(self, answers: Sequence[BindResult]) -> list[Command]:
        """Apply the binder's answers.

        Commands: Confirm and Done for bound attempts (after PostBind). For the others Forget, with
        RequeuePods; with Done if another attempt bound the pod; alone if the pod was deleted.
        Raises IllegalTransitionError, with nothing changed, for a token that was never issued, an
        attempt that was not sent to the binder, or an answer that differs from an earlier one (I8
        of docs/invariants.md).
        """
        new: dict[str, tuple[AttemptRecord, BindResult]] = {}
        attempts = self._store.attempts
        for answer in answers:
            token = answer.token
            record = attempts.get(token) or self._store.of_token(token, answer.event)
            earlier = new.get(token)
            if record is not None and is_new_answer(record, answer, earlier and earlier[1]):
                new[token] = record, answer
        out = Outbox()
        without_plugins: list[AttemptRecord] = []
        # All answers were checked above: one that is illegal must leave the core unchanged.
        for record, answer in new.values():
            record.answer = answer
            if answer.outcome is BindOutcome.BOUND and record.binds_without_plugins:
                without_plugins.append(record)
            else:
                self._apply_answer(record, answer, out)
        # Attempts whose plugins have nothing to do are completed together (docs/decisions/0023).
        self._store.transition_all(without_plugins, AttemptEvent.COMMIT)
        out.confirm += [record.placed_attempt for record in without_plugins]
        out.add_done(without_plugins)
        return self._commands(out)

    def timed_out(self, tokens: Sequence[str]) -> list[Command]:
        """Repeat requests that were not answered in time, since their outcome is unknown.

        Assumptions stay. Commands: Assume again, or RetryBind; none if an answer arrived meanwhile.
        Raises IllegalTransitionError, with nothing changed, for a token that was never issued.
        """
        records = [self._store.of_token(token, AttemptEvent.ASK) for token in dict.fromkeys(tokens)]
        out = Outbox()
        for record in records:
            if record is not None and TABLE.allows(record.state, AttemptEvent.ASK):
                self._store.transition(record, AttemptEvent.ASK)
                is_assuming = record.state is AttemptState.ASSUMING
                repeated = out.assume if is_assuming else out.retry_bind
                repeated.append(record.placed_attempt)
        return out.commands()

    def deleted(self, uids: Iterable[str]) -> list[Command]:
        """End pods that were deleted or are no longer leased here; they are not requeued."""
        out = Outbox()
        for uid in uids:
            record = self._store.pods.find(uid)
            if record is not None and TABLE.allows(record.state, AttemptEvent.DELETE):
                was_bound = record.state is AttemptState.BOUND
                self._end(record, AttemptEvent.DELETE, out, AttemptResult())
                if was_bound:
                    # Plugins that remember bound pods get the deletion; failures are warnings.
                    out.warn(record, steps.report_deletion(record.profile, record.target))
        return self._commands(out)

    @property
    def idle(self) -> bool:
        """Whether no pod is between lease and end."""
        return not self._store.pods.present

    def state_of(self, uid: str) -> AttemptState:
        """Return the state of a pod; NEW for an unknown or forgotten one."""
        return self._store.pods.state_of(uid)

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts that the cache may count for this scheduler, oldest first."""
        return tuple(record.placed_attempt for record in self._store.attempts.values())

    def waiting_leases(self) -> set[int]:
        """Return the leases of pods that wait for Permit."""
        return {record.lease_id for record in self._store.waiting}

    def waiting_gangs(self) -> tuple[GroupKey, ...]:
        """Return the gangs with pods that wait for other pods of the gang, sorted."""
        waiting = (
            each for each in self._store.waiting if each.waits.keys() & each.profile.gang_plugins
        )
        keys = (group_key(record.placed_attempt.facts) for record in waiting)
        return tuple(sorted({key for key in keys if key is not None}))

    def counts(self) -> AttemptCounts:
        return self._store.counts()

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self._store.validate()

    def _commands(self, out: Outbox) -> list[Command]:
        """Apply plugins' recorded decisions about waiting pods; return all commands of a call.

        The loop ends: each decision that is not ignored moves a pod towards its end, and no
        decision moves a pod back. Binds are sent in the order in which the pods were placed, for
        each was placed on a table with the earlier ones, and the binder runs the filters again.
        Without sorting, the pod that completes a gang would precede those that waited for it.
        """
        while permits := [
            permit for registry in self._waiting_registries for permit in registry.pop_decisions()
        ]:
            for permit in permits:
                if permit.reason is None:
                    self._allow(permit.uid, permit.plugin, out)
                    continue
                status = refused_by(permit.plugin, permit.reason)
                for record in self._store.before_permit(permit):
                    record.refusal = record.refusal or status
                for uid in self._store.uids_of(permit):
                    self._reject(uid, status, out)
        if len(out.bind) > 1:
            out.bind.sort(key=self._store.attempt_number)
        return out.commands()

    def _allow(self, uid: str, plugin: str, out: Outbox) -> None:
        record = self._store.pods.present.get(uid)
        if record is not None and plugin in record.waits:
            if len(record.waits) == 1:
                self._bind_permitted(record, out)
            else:
                self._store.end_wait(record, plugin)

    def _reject(self, uid: str, status: Status, out: Outbox) -> None:
        record = self._store.pods.present.get(uid)
        if record is not None and record.state is AttemptState.WAITING:
            self._end_refused(record, status, out)

    def _lease_again(
        self, pod: PodInCycle, profile: Profile, lease_id: int, record: AttemptRecord, out: Outbox
    ) -> None:
        """Continue a pod in its state under a newer lease."""
        self._store.transition(record, AttemptEvent.LEASE)
        record.lease_id = lease_id
        if record.state is AttemptState.LEASED:
            record.pod, record.profile = pod, profile
        elif record.state is AttemptState.BOUND:
            out.add_done([record])

    def _ignore_late(self, decision: Decision, earlier: Decision | None) -> None:
        """Ignore a late or repeated decision; raise for any other that cannot be applied.

        earlier: a decision for the same pod in this batch.
        """
        pod, event = decision.pod, event_of(decision)
        record = self._store.pods.require(pod.uid, event)
        # A pod that was deleted while the batch was decided.
        is_late = record.state is AttemptState.GONE and record.decided is None
        if is_late or pod.attempt < record.pod.attempt:
            return
        if decision_key(decision) == (record.decided if earlier is None else decision_key(earlier)):
            return
        why = "" if earlier is None else "it is decided twice in a batch"
        if pod.attempt > record.pod.attempt:
            why = f"attempt {pod.attempt} was never leased"
        raise self._store.pods.illegal(pod.uid, event, why)

"""AttemptsCore: what becomes of each leased pod, from its decision to the end of its binding cycle.

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
                  ── refuse ──► CONFLICT   ── take, delete ──► GONE   ↺ lease
    ASKED         ── commit ──► BOUND   ── fail ──► FAILED   ── refuse ──► CONFLICT
                  ── take, delete ──► GONE   ↺ lease, ask
    BOUND         ── delete ──► GONE   ↺ lease
    UNSCHEDULABLE ── lease ──► LEASED
    FAILED        ── lease ──► LEASED
    CONFLICT      ── lease ──► LEASED
    GONE          ── lease ──► LEASED

`lease` in a state that a pod can be in between two calls: a newer lease of a pod under way, which
stays where it is; a BOUND pod is reported Done again. `take`: another attempt bound the pod.

ASSUMED (Reserve and Permit are asked) and PERMITTED (PreBind and Bind are asked) are passed within
one call. The way out without a bind is one method, `_end`: Unreserve in reverse order, forget,
tell the queue. A refusal up to Permit makes a pod unschedulable; from PreBind on it is a failure,
retried after backoff. While a bind request is out, nothing but the binder's answer (or the end of
the pod itself) ends the attempt: what the binder acknowledged stays.

Every call may come twice; the copy changes nothing and asks for nothing new (`lost` asks again, and
what was forgotten is forgotten again). A question is answered by its first answer; but two answers
of the binder under one token are an error of the binder. Plugins must not call the core: what they
say of waiting pods is left in `Handle.waiting` and heeded at the end of the call.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle, bindingCycle, handleBindingCycleError,
handleSchedulingFailure) and framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.attempts import steps
from roadstead.attempts.attempt_store import AttemptStore
from roadstead.attempts.effects import Effect, Outbox, Verdict
from roadstead.attempts.outcomes import Outcomes
from roadstead.attempts.pods import (
    ENDED_UNBOUND,
    TABLE,
    Attempt,
    BindAnswer,
    BindOutcome,
    CycleCounts,
    PodEvent,
    PodRecord,
    PodState,
    decision_key,
    event_of,
    is_answer,
)
from roadstead.attempts.verdicts import refused_by
from roadstead.config.durations import Duration
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.profile import Profile
from roadstead.protocol.status import SUCCESS, Status


class AttemptsCore(Outcomes):
    """The pods leased to one scheduler in one epoch of it; leases are numbered upwards.

    profiles: by scheduler name. max_remembered: ended pods and attempts whose late copies are told
    from news.
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
        self._rooms = tuple({id(each.waiting): each.waiting for each in profiles.values()}.values())
        for room in self._rooms:
            room.show(self._store.find_waiting, self._store.all_waiting, self._store.all_coming)

    def lease(self, lease_id: int, pods: Sequence[PodInCycle]) -> list[Effect]:
        """Pods enter. One that is being tried under an older lease goes on under this one.

        Effects: Done for pods that this scheduler has bound already, and what follows from what
        plugins said of waiting pods when they heard of their gangs. Raises KeyError, with nothing
        changed, for a pod of no profile.
        """
        profiles = [self._profiles[pod.info.facts.scheduler_name] for pod in pods]
        out = Outbox()
        coming: dict[str, PodRecord] = {}
        for pod, profile in zip(pods, profiles, strict=True):
            known = self._store.pods.find(pod.uid)
            if known is None or known.state in ENDED_UNBOUND:
                if pod.uid not in coming and (known is None or lease_id > known.lease_id):
                    coming[pod.uid] = self._store.new(pod, profile, lease_id)
            elif lease_id > known.lease_id:
                self._lease_again(pod, profile, lease_id, known, out)
        self._store.pods.continue_stories(coming.values())
        self._store.go_all(list(coming.values()), PodEvent.LEASE)
        return self._effects(out)

    def undecided(self, max_pods: int) -> tuple[PodInCycle, ...]:
        """The first pods that wait for a decision; those a batch did not settle are among them."""
        found = zip(range(max_pods), self._store.undecided.values(), strict=False)
        return tuple(record.pod for _, record in found)

    def decided(
        self, decisions: Sequence[Decision], read_versions: Mapping[str, int] | None = None
    ) -> list[Effect]:
        """What a batch decided.

        read_versions: of the nodes' rows. A decision that comes too late is ignored. Effects:
        Assume for nodes, Requeue and Report for the rest. Raises, with nothing changed,
        IllegalTransitionError for a pod that waits for no decision, and UnsupportedError.
        """
        todo: dict[str, Decision] = {}
        undecided = self._store.undecided
        for decision in decisions:
            uid, _, _, _, attempt, _ = decision.pod
            record = undecided.get(uid)
            if record is not None and record.pod.attempt == attempt and uid not in todo:
                todo[uid] = decision
            else:
                self._pass_over(decision, todo.get(uid))
        verdicts = {
            uid: self._verdict(each) for uid, each in todo.items() if each.node_name is None
        }
        out = Outbox()
        for uid, verdict in verdicts.items():
            record = undecided[uid]
            record.decided = decision_key(todo[uid])
            self._end(record, event_of(todo[uid]), out, verdict)
        placed = {uid: each.node_name for uid, each in todo.items() if each.node_name is not None}
        self._place(placed, read_versions or {}, out)
        return self._effects(out)

    def assumed(
        self, accepted: Sequence[str], refused: Sequence[tuple[str, Status]], now_s: float
    ) -> list[Effect]:
        """The cache's answers by token: what it counts goes through Reserve, Permit, PreBind, Bind.

        Effects: Bind, with FinishBinding before it; Requeue as conflict for what was refused, and
        Forget for what is accepted after its attempt ended. Raises for a token never given.
        """
        answers = {**dict(refused), **dict.fromkeys(accepted, SUCCESS)}
        records = [
            self._store.of_token(token, PodEvent.ACCEPT if status.is_success else PodEvent.REFUSE)
            for token, status in answers.items()
        ]
        out = Outbox()
        plain: list[PodRecord] = []
        for record, status in zip(records, answers.values(), strict=True):
            if record is None:
                continue
            if status is SUCCESS and record.is_plain and record.state is PodState.ASSUMING:
                plain.append(record)
            else:
                self._assumed_one(record, status, now_s, out)
        self._store.go_all(plain, PodEvent.ACCEPT, PodEvent.PERMIT, PodEvent.BIND)
        out.bind += [record.trial for record in plain]
        return self._effects(out)

    def bind_next(self, attempts: Iterable[Attempt]) -> bool:
        """Whether nothing has a say between the cache's answer to attempts and their binds."""
        records = (self._store.attempts.get(each.token) for each in attempts)
        return all(record is not None and record.is_plain for record in records)

    def allow(self, uid: str, plugin: str) -> list[Effect]:
        """A Permit plugin lets a waiting pod go; when none is left, it goes to the binder.

        Nothing happens for a pod that does not wait for this plugin (upstream the same).
        """
        out = Outbox()
        self._allow(uid, plugin, out)
        return self._effects(out)

    def reject(self, uid: str, plugin: str, reason: str) -> list[Effect]:
        """A Permit plugin refuses a waiting pod; nothing happens for a pod that does not wait."""
        out = Outbox()
        self._reject(uid, refused_by(plugin, reason), out)
        return self._effects(out)

    def tick(self, now_s: float) -> list[Effect]:
        """Waiting pods whose time is over are refused in the name of the plugin they wait for."""
        out = Outbox()
        while (record := self._store.waiting.first()) is not None and record.deadline_s <= now_s:
            plugin, wait = min(record.waits.items(), key=lambda item: item[1].deadline_s)
            waited = Duration(round(wait.wait_s * 1e9))
            reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self._refused(record, refused_by(plugin, reason), out)
        return self._effects(out)

    def bind_answered(self, answers: Sequence[BindAnswer]) -> list[Effect]:
        """The binder's answers.

        Effects: Confirm and Done for what is bound (after PostBind), Forget and Requeue for what is
        not. Raises IllegalTransitionError, with nothing changed, for a token that was never given,
        an attempt that is not at the binder, or another answer than before (I8).
        """
        todo: dict[str, tuple[PodRecord, BindAnswer]] = {}
        attempts = self._store.attempts
        for answer in answers:
            token = answer.token
            record = attempts.get(token) or self._store.of_token(token, answer.event)
            earlier = todo.get(token)
            if record is not None and is_answer(record, answer, earlier and earlier[1]):
                todo[token] = record, answer
        out = Outbox()
        plain: list[PodRecord] = []
        for record, answer in todo.values():
            record.answer = answer
            if answer.outcome is BindOutcome.BOUND and record.is_plain:
                plain.append(record)
            else:
                self._answered_one(record, answer, out)
        self._store.go_all(plain, PodEvent.COMMIT)
        out.confirm += [record.trial for record in plain]
        out.tell_done(plain)
        return self._effects(out)

    def lost(self, tokens: Sequence[str]) -> list[Effect]:
        """No answer came in time, so the outcome is unknown: ask again, and keep the assumption.

        Effects: Assume again, or AskBinder. Nothing happens where an answer came meanwhile. Raises
        IllegalTransitionError, with nothing changed, for a token that was never given.
        """
        records = [self._store.of_token(token, PodEvent.ASK) for token in dict.fromkeys(tokens)]
        out = Outbox()
        for record in records:
            if record is not None and TABLE.allows(record.state, PodEvent.ASK):
                self._store.go(record, PodEvent.ASK)
                box = out.assume if record.state is PodState.ASSUMING else out.ask
                box.append(record.trial)
        return out.effects()

    def deleted(self, uids: Iterable[str]) -> list[Effect]:
        """Pods are gone from the cluster, or are no longer leased to us: undone, not requeued."""
        out = Outbox()
        for uid in uids:
            record = self._store.pods.find(uid)
            if record is not None and TABLE.allows(record.state, PodEvent.DELETE):
                was_bound = record.state is PodState.BOUND
                self._end(record, PodEvent.DELETE, out, Verdict())
                if was_bound:
                    out.warn(record, steps.gone(record.profile, record.target))
        return self._effects(out)

    @property
    def idle(self) -> bool:
        """No pod is between lease and end."""
        return not self._store.pods.here

    def state_of(self, uid: str) -> PodState:
        """Where a pod is; NEW for one that the core does not know (any more)."""
        return self._store.pods.state_of(uid)

    def attempts(self) -> tuple[Attempt, ...]:
        """What the cache may count on our account, oldest first."""
        return tuple(record.trial for record in self._store.attempts.values())

    def waiting_leases(self) -> set[int]:
        """The leases of pods that wait for Permit."""
        return {record.lease_id for record in self._store.waiting}

    def waiting_gangs(self) -> tuple[GroupKey, ...]:
        """The gangs of which pods wait for others, sorted."""
        waiting = (
            each for each in self._store.waiting if each.waits.keys() & each.profile.gang_plugins
        )
        keys = (group_key(record.trial.facts) for record in waiting)
        return tuple(sorted({key for key in keys if key is not None}))

    def counts(self) -> CycleCounts:
        return self._store.counts()

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self._store.validate()

    def _effects(self, out: Outbox) -> list[Effect]:
        """The effects of a call, once all that plugins said of waiting pods in it is heeded.

        It ends: each word that has a consequence takes a pod on, and none takes one back. Binds go
        out in the order in which they were decided: the pod that completes a gang comes to its end
        before those that waited for it, and the binder, which asks filters again, would meet it
        without the pods that its decision counted on.
        """
        while words := [word for room in self._rooms for word in room.take()]:
            for word in words:
                if word.reason is None:
                    self._allow(word.uid, word.plugin, out)
                    continue
                status = refused_by(word.plugin, word.reason)
                for record in self._store.coming(word):
                    record.refusal = record.refusal or status
                for uid in self._store.waiting_for(word):
                    self._reject(uid, status, out)
        if len(out.bind) > 1:
            out.bind.sort(key=self._store.order)
        return out.effects()

    def _allow(self, uid: str, plugin: str, out: Outbox) -> None:
        record = self._store.pods.here.get(uid)
        if record is not None and plugin in record.waits:
            if len(record.waits) == 1:
                self._permitted(record, out)
            else:
                self._store.let_go(record, plugin)

    def _reject(self, uid: str, status: Status, out: Outbox) -> None:
        record = self._store.pods.here.get(uid)
        if record is not None and record.state is PodState.WAITING:
            self._refused(record, status, out)

    def _lease_again(
        self, pod: PodInCycle, profile: Profile, lease_id: int, record: PodRecord, out: Outbox
    ) -> None:
        """One that goes on where it is, under this lease."""
        self._store.go(record, PodEvent.LEASE)
        record.lease_id = lease_id
        if record.state is PodState.LEASED:
            record.pod, record.profile = pod, profile
        elif record.state is PodState.BOUND:
            out.tell_done([record])

    def _pass_over(self, decision: Decision, earlier: Decision | None) -> None:
        """A decision that is not the first one on an attempt: raises unless it is late or a copy.

        earlier: of this batch.
        """
        pod, event = decision.pod, event_of(decision)
        record = self._store.pods.known(pod.uid, event)
        is_late = record.state is PodState.GONE and record.decided is None
        if is_late or pod.attempt < record.pod.attempt:
            return
        if decision_key(decision) == (record.decided if earlier is None else decision_key(earlier)):
            return
        why = "" if earlier is None else "it is decided twice in a batch"
        if pod.attempt > record.pod.attempt:
            why = f"attempt {pod.attempt} was never leased"
        raise self._store.pods.illegal(pod.uid, event, why)

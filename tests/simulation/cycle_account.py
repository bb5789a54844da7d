"""A plain model of a scheduler's core: what happens to each leased pod, and which requests follow.

For each pod it stores a state, a lease, a token and the plugins that the pod waits for; it has no
transition tables and no batches.
"""

from collections import Counter

from roadstead.attempts.commands import (
    Assume,
    Bind,
    Confirm,
    Done,
    FinishBinding,
    Forget,
    Nominate,
    Nomination,
    PodReport,
    ReportKind,
    RequeueCause,
    RequeueItem,
    RequeuePods,
    RetryBind,
    SendReports,
)
from roadstead.attempts.pods import Attempt, BindOutcome
from roadstead.config.durations import Duration
from roadstead.facts.pod_groups import group_key
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.guarded import PluginFailure
from roadstead.protocol.status import Code, Status

MAX_PERMIT_WAIT_S = 900.0
AT_BINDER = ("binding", "asked")
RESERVED = ("assumed", "waiting", "permitted", *AT_BINDER)
UNBOUND = ("unschedulable", "failed", "conflict", "gone")
GANGS = "Coscheduling"
POINTS = {"reserve": "Reserve", "permit": "Permit", "pre_bind": "PreBind", "bind": "Bind"}
POINT_OF = {
    "unreserve": "Unreserve",
    "post_bind": "PostBind",
    "pod_deleted": "the end of a pod for",
}


class _Pod:
    """One lease of a pod, from its start to its end."""

    def __init__(self, pod, profile, lease_id):
        self.pod, self.profile, self.lease_id = pod, profile, lease_id
        self.state = "leased"
        self.attempt = self.answer = self.refusal = self.decision = None
        self.waits = {}

    @property
    def facts(self):
        return self.pod.pod_class.facts

    @property
    def deadline_s(self):
        return min(until_s for _, until_s in self.waits.values())


class _Plain:
    """Expected effects by kind."""

    def __init__(self):
        self.attempts = {kind: [] for kind in (Forget, Assume, RetryBind, Bind, Confirm)}
        self.nominations, self.done, self.back, self.reports = [], {}, {}, []

    def listed(self, given):
        """given: all tokens in order of creation, which is the order in which binds are sent."""
        found = []
        self.attempts[Bind].sort(key=lambda attempt: given.index(attempt.token))
        for kind, attempts in self.attempts.items():
            if self.nominations and kind is Assume:
                found.append(Nominate(tuple(self.nominations)))
            if attempts and kind is Bind:
                found.append(FinishBinding(tuple(attempts)))
            if attempts:
                found.append(kind(tuple(attempts)))
        found += [Done(lease_id, tuple(uids)) for lease_id, uids in self.done.items()]
        found += [RequeuePods(lease_id, tuple(items)) for lease_id, items in self.back.items()]
        return [*found, SendReports(tuple(self.reports))] if self.reports else found


class CycleAccount:
    """A model of one life of a core. Methods have the names of the core's calls.

    calls: the plugins' answers during a call, in order. effects: those of the core.
    """

    def __init__(self, prefix, profiles, rooms, max_remembered):
        self._prefix, self._tokens = prefix, 0
        self._profiles, self._rooms, self._most = profiles, rooms, max_remembered
        self._live, self._ended, self._ended_attempts = {}, {}, {}
        self._undecided, self._attempts = {}, {}
        self._counts = Counter()

    def _begin(self, calls, effects):
        self._calls, self._effects = iter([*calls]), effects
        self._out = _Plain()

    def _ask_undecided(self, max_pods):
        return tuple(each.pod for each in self._undecided.values())[:max_pods]

    def _ask_waiting_leases(self):
        return {each.lease_id for each in self._live.values() if each.state == "waiting"}

    def _ask_waiting_gangs(self):
        waiting = (each for each in self._live.values() if GANGS in each.waits)
        return tuple(sorted({group_key(each.facts) for each in waiting} - {None}))

    def _ask_state_of(self, uid):
        record = self._find(uid)
        return "new" if record is None else record.state

    def _find(self, uid):
        return self._live.get(uid) or self._ended.get(uid)

    def _of_token(self, token):
        return self._attempts.get(token) or self._ended_attempts.get(token)

    # Calls that are not allowed and change nothing.

    def _forbids(self, name, *what):
        """Return why a call must raise; "" where it must not."""
        if name == "lease":
            unknown = [
                pod for pod in what[1] if pod.pod_class.facts.scheduler_name not in self._profiles
            ]
            return "a pod has no profile" if unknown else ""
        if name == "decided":
            return self._forbids_decisions(what[0])
        if name == "bind_answered":
            return self._forbids_answers(what[0])
        tokens = {"timed_out": what[0]}.get(name, ())
        if name == "assumed":
            tokens = [*what[0], *(token for token, _ in what[1])]
        return self._forbids_tokens(tokens)

    def _forbids_tokens(self, tokens):
        given = {f"{self._prefix}{number}" for number in range(1, self._tokens + 1)}
        # Long numbers may have leading zeros.
        strange = [t for t in tokens if t not in given and self._of_token(t) is None]
        return f"{strange} were never given" if strange else ""

    def _forbids_decisions(self, decisions):
        new = {}
        for each in decisions:
            uid, record = each.pod.uid, self._find(each.pod.uid)
            if record is None:
                return f"{uid} is not known"
            is_gone = record.state == "gone" and record.decision is None
            if is_gone or each.pod.attempt < record.pod.attempt:
                continue
            answered = each.pod.attempt, each.node_name, each.error
            if answered == new.get(uid, record.decision):
                continue
            if uid in new or record.state != "leased" or each.pod.attempt > record.pod.attempt:
                return (
                    f"{uid} is {record.state} at attempt {record.pod.attempt}, and it is {answered}"
                )
            new[uid] = answered
        return ""

    def _forbids_answers(self, answers):
        new = {}
        for answer in answers:
            record = self._of_token(answer.token)
            if record is None:
                if why := self._forbids_tokens([answer.token]):
                    return why
                continue
            before = new.get(answer.token, record.answer)
            answered = answer.outcome, answer.node_name
            if before is not None and (before.outcome, before.node_name) == answered:
                continue
            if before is not None:
                return f"{answer.token} has had another answer before"
            if record.state == "gone":
                continue
            is_elsewhere = answer.node_name != record.attempt.node_name
            if answer.outcome is BindOutcome.BOUND and is_elsewhere:
                return f"{answer.token} was not sent to {answer.node_name}"
            if record.state not in AT_BINDER:
                return f"{answer.token} is {record.state}"
            new[answer.token] = answer
        return ""

    # Results of allowed calls.

    def _lease(self, lease_id, pods):
        for pod in pods:
            known = self._find(pod.uid)
            if known is None or known.state in UNBOUND:
                if known is None or lease_id > known.lease_id:
                    profile = self._profiles[pod.pod_class.facts.scheduler_name]
                    self._ended.pop(pod.uid, None)
                    self._live[pod.uid] = self._undecided[pod.uid] = _Pod(pod, profile, lease_id)
                    self._counts["begun"] += 1
            elif lease_id > known.lease_id:
                known.lease_id = lease_id
                if known.state == "leased":
                    known.pod = pod
                elif known.state == "bound":
                    self._report_done(known)

    def _decided(self, decisions, read_versions=None):
        new = {}
        for each in decisions:
            record = self._undecided.get(each.pod.uid)
            if record is not None and record.pod.attempt == each.pod.attempt:
                new.setdefault(each.pod.uid, (record, each))
        for record, each in new.values():
            record.decision = each.pod.attempt, each.node_name, each.error
            if each.node_name is None:
                self._no_node(record, each)
        for record, each in new.values():
            if each.node_name is not None:
                self._tokens += 1
                pod, read = each.pod, (read_versions or {}).get(each.node_name, 0)
                token = f"{self._prefix}{self._tokens}"
                record.attempt = Attempt(
                    token, pod.uid, record.pod.key, each.node_name, record.facts, read
                )
                record.state = "assuming"
                del self._undecided[pod.uid]
                self._attempts[token] = record
                self._out.attempts[Assume].append(record.attempt)

    def _no_node(self, record, decision):
        if decision.error:
            self._end(record, "failed")
            self._give_back(record, RequeueCause.ERROR, decision.error, nominated="")
            return
        self._end(record, "unschedulable")
        found, result = decision.diagnosis, decision.post_filter
        if result is not None:
            victims = () if result.chosen is None else result.chosen.victims
            message = "" if result.status.is_success else result.status.message
            plugin = "" if result.chosen is None else result.status.plugin
            about = found, message, result.nominated_node, victims, plugin, result.deallocated
            self._unschedulable(record, *about)
            return
        # The core called PostFilter; the judge checks its answer.
        report = next(
            item
            for effect in self._effects
            if isinstance(effect, RequeuePods)
            for item in effect.items
            if item.uid == record.pod.uid
        )
        assert report.message.startswith(found.message("")), report
        assert not report.nominated_node, report
        message = report.message[len(found.message("")) + 1 :]
        named = (
            each.deallocates
            for effect in self._effects
            if isinstance(effect, Nominate)
            for each in effect.nominations
            if each.uid == record.pod.uid
        )
        deallocates = next(named, "")
        assert bool(deallocates) == ("deallocation of ResourceClaim completed" in message), report
        self._unschedulable(record, found, message, report.nominated_node, deallocates=deallocates)

    def _unschedulable(
        self, record, found, message, nominated, victims=(), plugin="", deallocates=""
    ):
        statuses = (found.pre_filter, *found.refused)
        pending = {each.plugin for each in statuses if each.code is Code.PENDING} - {""}
        self._give_back(
            *(record, RequeueCause.UNSCHEDULABLE, found.message(message)),
            plugins=found.plugins,
            pending=tuple(sorted(pending)),
            reasons=tuple(sorted(found.reasons().items())),
            nominated=nominated,
            victims=victims,
            preempting_plugin=plugin,
            deallocates=deallocates,
        )

    def _assumed(self, accepted, refused, now_s):
        self._now_s = now_s
        plain = []
        answers = {**dict(refused), **dict.fromkeys(accepted)}.items()
        # Attempts that end during the call may push others out of memory.
        for record, status in [(self._of_token(token), status) for token, status in answers]:
            if record is None:
                continue
            if record.state != "assuming":
                if status is None and record.state in UNBOUND:
                    self._out.attempts[Forget].append(record.attempt)
            elif status is not None:
                self._end(record, "conflict")
                self._give_back(record, RequeueCause.CONFLICT, status.message, nominated="")
            elif record.refusal is None and record.profile.binds_without_plugins:
                plain.append(record)
            else:
                self._accept(record)
        for record in plain:
            record.state = "binding"
            self._out.attempts[Bind].append(record.attempt)

    def _accept(self, record):
        record.state = "assumed"
        waits = {}
        status = record.refusal or self._ask_plugins(record, "reserve", record.profile.reserve)
        for plugin in record.profile.permit if status is None else ():
            answer, wait_s = self._next("permit", plugin, record)
            if answer.code is Code.WAIT:
                wait_s = min(wait_s, MAX_PERMIT_WAIT_S) if wait_s > 0 else 0.0
                waits[plugin.name] = wait_s, self._now_s + wait_s
            elif not answer.is_success:
                status = _named("permit", plugin, answer)
                break
        if status is not None:
            self._refuse(record, status)
        elif waits:
            record.state, record.waits = "waiting", waits
        else:
            self._permit(record)

    def _permit(self, record):
        record.state, record.waits = "permitted", {}
        status = self._ask_plugins(record, "pre_bind", record.profile.pre_bind)
        if status is None:
            for plugin in record.profile.bind:
                answer = self._next("bind", plugin, record)
                if not answer.is_skip:
                    status = None if answer.is_success else _named("bind", plugin, answer)
                    break
            else:
                status = Status(Code.ERROR, ("no Bind plugin took the pod",))
        if status is None:
            record.state = "binding"
            self._out.attempts[Bind].append(record.attempt)
            return
        self._end(record, "failed")
        plugins = (status.plugin,) if status.plugin else ()
        self._give_back(record, RequeueCause.ERROR, status.message, plugins=plugins, nominated="")

    def _refuse(self, record, status):
        if status.is_rejected:
            self._end(record, "unschedulable")
            found = Diagnosis(1)
            found.add(status, 1)
            self._unschedulable(record, found, "", "")
        else:
            self._end(record, "failed")
            self._give_back(record, RequeueCause.ERROR, status.message, nominated="")

    def _reject(self, uid, plugin, reason):
        record = self._live.get(uid)
        if record is not None and record.state == "waiting":
            self._refuse(record, Status(Code.UNSCHEDULABLE, (reason,), plugin))

    def _tick(self, now_s):
        late = [each for each in self._live.values() if each.waits and each.deadline_s <= now_s]
        for record in sorted(late, key=lambda each: each.deadline_s):
            plugin, (wait_s, _) = min(record.waits.items(), key=lambda item: item[1][1])
            waited = Duration(round(wait_s * 1e9))
            text = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self._refuse(record, Status(Code.UNSCHEDULABLE, (text,), plugin))

    def _bind_answered(self, answers):
        new = {}
        for answer in answers:
            record = self._of_token(answer.token)
            if record is not None and record.answer is None and record.state in AT_BINDER:
                new.setdefault(answer.token, (record, answer))
        plain = []
        for record, answer in new.values():
            record.answer = answer
            if answer.outcome is not BindOutcome.BOUND:
                self._not_bound(record, answer)
            elif record.refusal is None and record.profile.binds_without_plugins:
                plain.append(record)
            else:
                self._call_plugins(record, "post_bind", record.profile.post_bind)
                self._bound(record)
        for record in plain:
            self._bound(record)

    def _bound(self, record):
        self._put_aside(record, "bound")
        self._out.attempts[Confirm].append(record.attempt)
        self._report_done(record)

    def _not_bound(self, record, answer):
        if answer.outcome is BindOutcome.CONFLICT:
            self._end(record, "conflict")
            self._give_back(record, RequeueCause.CONFLICT, answer.message, nominated="")
        elif answer.outcome is BindOutcome.FAILED:
            self._end(record, "failed")
            self._give_back(record, RequeueCause.ERROR, answer.message, nominated="")
        else:
            self._end(record, "gone")
            if answer.outcome is BindOutcome.BOUND_ELSEWHERE:
                self._report_done(record)

    def _timed_out(self, tokens):
        for token in dict.fromkeys(tokens):
            record = self._of_token(token)
            if record is None:
                continue
            if record.state == "assuming":
                self._out.attempts[Assume].append(record.attempt)
            elif record.state in AT_BINDER:
                record.state = "asked"
                self._out.attempts[RetryBind].append(record.attempt)

    def _deleted(self, uids):
        for uid in uids:
            record = self._find(uid)
            if record is not None and record.state == "bound":
                record.state = "gone"
                self._call_plugins(record, "pod_deleted", record.profile.pod_deletion)
            elif record is not None and record.state not in UNBOUND:
                was_assuming = record.state == "assuming"
                self._end(record, "gone")
                if was_assuming:
                    self._out.attempts[Forget].append(record.attempt)

    def _apply_decisions(self):
        rooms = range(self._rooms)
        while decisions := [decision for _ in rooms for decision in self._next_decisions()]:
            for decision in decisions:
                if decision.reason is None:
                    record = self._live.get(decision.uid)
                    if record is not None and decision.plugin in record.waits:
                        del record.waits[decision.plugin]
                        if not record.waits:
                            self._permit(record)
                    continue
                status = Status(Code.UNSCHEDULABLE, (decision.reason,), decision.plugin)
                for record in self._chosen(decision, "assuming"):
                    record.refusal = record.refusal or status
                waiting = [decision.uid]
                if decision.chosen is not None:
                    waiting = [each.pod.uid for each in self._chosen(decision, "waiting")]
                for uid in waiting:
                    self._reject(uid, decision.plugin, decision.reason)

    def _chosen(self, decision, state):
        if decision.chosen is None:
            return []
        found = [each for each in self._attempts.values() if each.state == state]
        return [each for each in found if decision.chosen(each.facts)]

    def _next_decisions(self):
        call = next(self._calls, None)
        assert call, "the core did not apply the decisions of plugins"
        assert call[0] == "decisions", f"the core applied {call} instead of plugins' decisions"
        return call[1]

    def _next(self, method, plugin, record):
        """Return a plugin's answer; the core must have called the plugin now."""
        call = next(self._calls, None)
        where = method, plugin.name, record.pod.uid, record.attempt.node_name
        assert call, f"{where} was not called"
        assert call[:4] == where, f"{call} was called instead of {where}"
        return call[4]

    def _ask_plugins(self, record, method, plugins):
        for plugin in plugins:
            answer = self._next(method, plugin, record)
            if not answer.is_success:
                return _named(method, plugin, answer)
        return None

    def _call_plugins(self, record, method, plugins):
        for plugin in plugins:
            answer = self._next(method, plugin, record)
            if isinstance(answer, PluginFailure):
                text = f'running {POINT_OF[method]} plugin "{plugin.name}": {answer.status.message}'
                report = PodReport(record.pod.uid, record.pod.key, ReportKind.WARNING, text)
                self._out.reports.append(report)

    def _end(self, record, state):
        was_reserved = record.state in RESERVED
        self._put_aside(record, state)
        if was_reserved:
            self._call_plugins(record, "unreserve", record.profile.reserve[::-1])
            self._out.attempts[Forget].append(record.attempt)

    def _put_aside(self, record, state):
        record.state, record.waits = state, {}
        uid = record.pod.uid
        self._counts[state] += 1
        del self._live[uid]
        self._undecided.pop(uid, None)
        self._ended[uid] = record
        if record.attempt is not None:
            del self._attempts[record.attempt.token]
            self._ended_attempts[record.attempt.token] = record
        for memory in (self._ended, self._ended_attempts):
            while len(memory) > self._most:
                del memory[next(iter(memory))]

    def _report_done(self, record):
        self._out.done.setdefault(record.lease_id, []).append(record.pod.uid)

    def _give_back(
        self,
        record,
        reason,
        message,
        *,
        plugins=(),
        pending=(),
        reasons=(),
        nominated=None,
        victims=(),
        preempting_plugin="",
        deallocates="",
    ):
        pod, out = record.pod, self._out
        # Where a claim is deallocated, the pod is tried again after its backoff.
        by = plugins if reason is RequeueCause.UNSCHEDULABLE and not deallocates else ()
        item = RequeueItem(pod.uid, reason, by, pending, message, nominated, len(victims) > 0)
        out.back.setdefault(record.lease_id, []).append(item)
        had = record.facts.nominated_node_name
        if nominated or (nominated == "" and had) or deallocates:
            who = (pod.uid, pod.key, record.facts, nominated or "", tuple(victims))
            out.nominations.append(Nomination(*who, preempting_plugin, deallocates))
        if reason is not RequeueCause.CONFLICT:
            is_failed = reason is RequeueCause.ERROR
            kind = ReportKind.FAILED if is_failed else ReportKind.UNSCHEDULABLE
            out.reports.append(
                PodReport(pod.uid, pod.key, kind, message, reasons, plugins, nominated)
            )


def _named(method, plugin, answer):
    """The result of a plugin's refusal or failure."""
    if answer.is_rejected:
        return Status(answer.code, answer.reasons, plugin.name)
    what = answer.message or answer.code.upstream_name
    text = f'running {POINTS[method]} plugin "{plugin.name}": {what}'
    return Status(Code.ERROR, (text,))

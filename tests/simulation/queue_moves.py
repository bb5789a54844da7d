"""Moves of pods between states by the queue's rules: the base of `queue_model`."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roadstead.facts.pod_groups import group_key
from roadstead.queue import QueueState, RequeueReason

_S = QueueState

OWN_EVENTS = 64
"""After more events than this for one pod in flight alone, only their existence is recorded."""

FINISHED = "finish"
REPORTED = {
    RequeueReason.CONFLICT: "conflict",
    RequeueReason.UNSCHEDULABLE: "reject",
    RequeueReason.ERROR: "fail",
}

AFTER_BACKOFF, AT_ONCE = 1, 2
"""How a pod moves when events may help it; 0: they do not."""


class ContradictedError(Exception):
    """A report names a pod that is not in its lease, or contradicts an earlier report."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules outside the queue: PreEnqueue (facts → status), hints and registered events (plugin,
    event, …), pods that an event concerns (event, facts, rejected_by), QueueSort, and the one event
    that replaces many.
    """

    gate: Callable
    hint: Callable
    registered: Callable
    concerns: Callable
    sort: Callable
    any_of: Callable


@dataclass(slots=True, eq=False)
class Pod:
    """Fields are those of the core's record. came: a sequence number from its arrival in activeQ;
    passed: how often other pods bypassed it there.
    """

    uid: str
    identity: object
    facts: object
    seq: int
    timestamp_s: float
    state: QueueState = _S.NEW
    initial_attempt_s: float | None = None
    attempts: int = 0
    tie_break_number: int = 1
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_until_s: float = 0.0
    rejected_by: tuple = ()
    pending: tuple = ()
    gating_plugin: str = ""
    lease_id: int = 0
    own_events: list = field(default_factory=list)
    came: int = 0
    passed: int = 0

    def view(self):
        """The pod as a scheduler receives it."""
        return (
            self.identity,
            self.facts,
            self.seq,
            self.timestamp_s,
            self.initial_attempt_s,
            self.attempts,
            self.rejected_by,
            self.tie_break_number,
        )


@dataclass(slots=True, eq=False)
class Lease:
    """first: number of its first event. open: uids. closed: uid → reported result, or None."""

    lease_id: int
    owner: str
    epoch: int
    deadline_s: float
    first: int
    open: list = field(default_factory=list)
    closed: dict = field(default_factory=dict)


class Moves:
    """The pods and their moves. touched: pods that may have changed; the comparison empties it.
    forgotten: the number of events that are no longer recorded.
    """

    def __init__(self, settings, rules):
        self.settings, self.rules = settings, rules
        self.pods, self.done_pods = {}, {}
        self.leases, self.epochs = {}, {}
        self.events, self.forgotten = [], 0
        self.cleared, self.released = {}, {}
        self.touched = {}
        self.totals = Counter()

    def of(self, *states):
        return [pod for pod in self.pods.values() if pod.state in states]

    def rank(self, pod):
        """The order in which pods of one state leave it."""
        if pod.state is _S.ACTIVE:
            return (*self.rules.sort(pod.facts, pod.timestamp_s), pod.seq)
        if pod.state is _S.BACKOFF and pod.rejected_by:
            sort = self.rules.sort(pod.facts, pod.timestamp_s)
            return (False, pod.backoff_until_s, *sort, pod.seq)
        if pod.state is _S.BACKOFF:
            return (True, pod.backoff_until_s, pod.seq)
        return (pod.seq,) if pod.state is _S.IN_FLIGHT else (pod.timestamp_s, pod.seq)

    def turn_of(self, pod):
        """The pods of activeQ that are leased in turn with a pod: all, or those of its profile."""
        return pod.facts.scheduler_name if self.settings.by_profile else ""

    def turns(self):
        """The pods of activeQ that take turns with each other, longest waiting first."""
        turns = {}
        for pod in sorted(self.of(_S.ACTIVE), key=lambda pod: pod.came):
            turns.setdefault(self.turn_of(pod), []).append(pod)
        return turns

    def leases_before(self, owner, epoch):
        leases = self.leases.values()
        return [each for each in leases if each.owner == owner and each.epoch < epoch]

    # Into activeQ and backoffQ, or into the gate.

    def enter(self, pod, state, now_s):
        """Move a pod to ACTIVE or BACKOFF, unless PreEnqueue refuses it; return whether it
        moved.
        """
        was = pod.state
        if was is not _S.BACKOFF:
            # PreEnqueue is not called again between these two.
            is_open, plugin = self.asked(pod.facts)
            if not is_open:
                self.shut(pod, plugin)
                return False
        self.go(pod, state)
        pod.gating_plugin = ""
        if was is _S.GATED and pod.facts.nominated_node_name:
            self.cleared.pop(pod.uid, None)
            self.released[pod.uid] = pod.identity, pod.facts
        if pod.state is _S.ACTIVE and pod.initial_attempt_s is None:
            pod.initial_attempt_s = now_s
        return True

    def asked(self, facts):
        """Return the result of PreEnqueue: whether the pod may be queued, and the refusing
        plugin.
        """
        if facts.is_terminating:
            return False, ""
        status = self.rules.gate(facts)
        return status.is_success, status.plugin

    def shut(self, pod, plugin):
        pod.gating_plugin = plugin
        if plugin and plugin not in pod.rejected_by:
            pod.rejected_by += (plugin,)
        if pod.state is not _S.GATED:
            self.clear(pod)
        self.go(pod, _S.GATED)

    def clear(self, pod):
        """A pod's nomination no longer reserves room."""
        if pod.facts.nominated_node_name:
            self.released.pop(pod.uid, None)
            self.cleared[pod.uid] = pod.identity, pod.facts

    def go(self, pod, state):
        self.touched[pod.uid] = pod
        if pod.state is _S.IN_FLIGHT:
            lease = self.leases[pod.lease_id]
            lease.open.remove(pod.uid)
            lease.closed[pod.uid] = None
            if not lease.open:
                del self.leases[pod.lease_id]
        if state is _S.ACTIVE:
            self.line_up(pod)
        pod.state = state

    def line_up(self, pod):
        self.totals["came"] += 1
        pod.came, pod.passed = self.totals["came"], 0

    def leave(self, pod, state):
        """Remove a pod that was bound or deleted."""
        self.go(pod, state)
        del self.pods[pod.uid]
        if state is _S.DONE:
            self.totals["done"] += 1
            self.done_pods[pod.uid] = pod
            if len(self.done_pods) > self.settings.max_done_remembered:
                del self.done_pods[next(iter(self.done_pods))]

    # Effects of events.

    def worth(self, pod, events):
        """isPodWorthRequeuing: 0, AFTER_BACKOFF or AT_ONCE. An event None is any event."""
        if not pod.rejected_by:
            return AFTER_BACKOFF
        best = 0
        for event in events:
            if event is None:
                best = max(best, AFTER_BACKOFF)
                continue
            for plugin in pod.rejected_by:
                if self.rules.hint(plugin, event, pod.facts):
                    best = max(best, AT_ONCE if plugin in pod.pending else AFTER_BACKOFF)
        return best

    def come_back(self, pod, worth, now_s):
        """requeuePodWithQueueingStrategy; return whether the pod moved."""
        if not worth:
            return False
        waits = worth == AFTER_BACKOFF and pod.backoff_until_s > now_s
        return self.enter(pod, _S.BACKOFF if waits else _S.ACTIVE, now_s)

    def events_kept(self):
        """The number of events recorded for the open leases."""
        first = min((lease.first for lease in self.leases.values()), default=len(self.events))
        return len(self.events) - max(first, self.forgotten)

    def record(self, event):
        """Record an event; a full log only records that something happened."""
        kept = self.events_kept()
        if kept >= self.settings.max_in_flight_events:
            event = self.rules.any_of([*self.events[len(self.events) - kept :], event])
            self.forgotten = len(self.events)
        self.events.append(event)

    def remember(self, pod, events):
        self.touched[pod.uid] = pod
        pod.own_events += events
        if len(pod.own_events) > OWN_EVENTS:
            pod.own_events = [None]

    # Facts and nominations.

    def change(self, pod, facts, now_s, events):
        """Change a pod's facts; events: the changes, None for any."""
        if not facts.nominated_node_name and pod.facts.nominated_node_name:
            facts = replace(facts, nominated_node_name=pod.facts.nominated_node_name)
        if events is not None or facts != pod.facts:
            self.replace(pod, facts, now_s, [None] if events is None else events)

    def replace(self, pod, facts, now_s, events):
        turn, pod.facts = self.turn_of(pod), facts
        self.touched[pod.uid] = pod
        if pod.state is _S.ACTIVE and self.turn_of(pod) != turn:
            self.line_up(pod)
        if pod.state is _S.IN_FLIGHT:
            self.remember(pod, events)
        elif pod.state in (_S.UNSCHEDULABLE, _S.GATED):
            if pod.state is _S.GATED:
                self.clear(pod)
            self.come_back(pod, self.worth(pod, events), now_s)

    def is_nominated(self, pod):
        return bool(pod.facts.nominated_node_name) and pod.state is not _S.GATED

    def nominate(self, pod, node_name, preempts, now_s):
        """node_name: "" for none. preempts: pods of lower priority lose their nomination to the
        node and need another one.
        """
        pod.facts = replace(pod.facts, nominated_node_name=node_name)
        lower = [
            other
            for other in self.pods.values()
            if self.is_nominated(other)
            and other.facts.nominated_node_name == node_name
            and other.facts.priority < pod.facts.priority
        ]
        for other in lower if preempts else ():
            self.clear(other)
            self.replace(other, replace(other.facts, nominated_node_name=""), now_s, [None])

    # Leases.

    def chosen(self, owner, max_pods, profile):
        """The next pods to lease, one after another."""
        asked = [pod for pod in self.pods.values() if profile in ("", pod.facts.scheduler_name)]
        active = sorted((p for p in asked if p.state is _S.ACTIVE), key=self.rank)
        rejected = [pod for pod in asked if pod.state is _S.BACKOFF and pod.rejected_by]
        rejected.sort(key=self.rank)
        leased = self.of(_S.IN_FLIGHT)
        others = [pod for pod in leased if self.leases[pod.lease_id].owner != owner]
        elsewhere = {group_key(pod.facts) for pod in others} - {None}
        found, held = [], []
        while len(found) < max_pods and (active or rejected):
            line = active or rejected
            pod = self.first(line)
            line.remove(pod)
            if group_key(pod.facts) in elsewhere:
                held.append(pod)
                continue
            found.append(pod)
            peers = [each for each in active if self.turn_of(each) == self.turn_of(pod)]
            if self.is_retry(pod) and any(each.came < pod.came for each in peers):
                self.passes(pod, found)
        for pod in held:
            pod.passed = min(pod.passed, self.settings.max_bypasses)
        return found

    @staticmethod
    def is_retry(pod):
        return pod.state is _S.ACTIVE and pod.attempts > 0

    def first(self, line):
        """The first pod by QueueSort, or one that is retried and was bypassed too often."""
        first = line[0]
        if self.is_retry(first):
            peers = [pod for pod in line if self.turn_of(pod) == self.turn_of(first)]
            longest = min(peers, key=lambda pod: pod.came)
            if longest.passed >= self.settings.max_bypasses:
                return longest
        return first

    def passes(self, pod, found):
        for other in self.of(_S.ACTIVE):
            if other not in found and self.turn_of(other) == self.turn_of(pod):
                other.passed += 1

    def sorted_out(self, lease, reports):
        """Split a report into (new, repeated, obsolete) uids."""
        new, before, stale = {}, [], []
        for uid, what in reports:
            if uid in lease.open and uid not in new:
                new[uid] = what
                continue
            known = new.get(uid, lease.closed.get(uid, "never"))
            if known not in (what, None):
                raise ContradictedError(uid)
            (stale if known is None else before).append(uid)
        return new, tuple(before), tuple(stale)

    def return_leased(self, pod, report, seen, now_s):
        """AddUnschedulableIfNotPresent. seen: the events since the pod was leased."""
        if report.reason is not RequeueReason.UNSCHEDULABLE:
            pod.tie_break_number += 1
        if report.reason is RequeueReason.CONFLICT:
            self.enter(pod, _S.ACTIVE, now_s)
            return
        if report.reason is RequeueReason.UNSCHEDULABLE:
            pod.rejected_by = tuple(dict.fromkeys((*report.rejected_by, *report.pending)))
            pod.pending = report.pending
        if pod.rejected_by:
            pod.unschedulable_count, pod.consecutive_errors = pod.unschedulable_count + 1, 0
        else:
            pod.consecutive_errors += 1
        pod.timestamp_s = now_s
        pod.backoff_until_s = self.backoff_until_s(pod)
        if not pod.rejected_by:
            self.enter(pod, _S.BACKOFF, now_s)
        elif worth := self.worth(pod, [*seen, *pod.own_events]):
            self.come_back(pod, worth, now_s)
        else:
            self.go(pod, _S.UNSCHEDULABLE)

    def backoff_until_s(self, pod):
        """calculateBackoffDuration, rounded up to the end of its window."""
        settings = self.settings
        backoff_s = settings.backoff_initial_s
        for _ in range((pod.consecutive_errors or pod.unschedulable_count) - 1):
            backoff_s = min(2 * backoff_s, settings.backoff_max_s)
        window_s = settings.backoff_window_s
        whole = math.floor((pod.timestamp_s + min(backoff_s, settings.backoff_max_s)) / window_s)
        return (whole + 1) * window_s

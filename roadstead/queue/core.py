"""QueueCore: pods that wait for a node, and the leases under which schedulers try them.

States, transitions and rules: the diagram in `roadstead.queue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Generic

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.status import SUCCESS, Status, unresolvable, unschedulable
from roadstead.queue.containers import Entries, Lease
from roadstead.queue.hints import EventRules
from roadstead.queue.lease_order import LeaseOrder
from roadstead.queue.nominator import Nominator
from roadstead.queue.pods import (
    AddResult,
    EndedLease,
    EventT,
    Gate,
    LeaseAnswer,
    LeaseBatch,
    PodEntry,
    QueueCounts,
    QueuedPod,
    QueueEvent,
    QueueSettings,
    QueueSort,
    QueueState,
    Requeue,
    RequeueReason,
    admit_all,
    priority_sort,
)
from roadstead.queue.queue_store import QueueStore
from roadstead.queue.requeueing import Requeueing

PodPredicate = Callable[[PodIdentity, PodFacts], bool]
"""Whether an event may move a waiting pod."""

_REPORTED_EVENT = {
    RequeueReason.CONFLICT: QueueEvent.CONFLICT,
    RequeueReason.UNSCHEDULABLE: QueueEvent.REJECT,
    RequeueReason.ERROR: QueueEvent.FAIL,
}
"""Event that a lease stores for a returned pod, to distinguish repeated and different reports."""


class QueueCore(Generic[EventT]):
    """All pods that are not bound, each in the container of its state.

    gate: PreEnqueue. rules: which events help which pods; by default any event helps any pod.
    sort: QueueSort. settings: bounds and durations. `_store.pods.present` has the pods of the queue
    by UID.
    """

    def __init__(
        self,
        *,
        gate: Gate = admit_all,
        rules: EventRules[EventT] | None = None,
        sort: QueueSort = priority_sort,
        settings: QueueSettings | None = None,
    ) -> None:
        self.settings = settings or QueueSettings()
        rules = rules or EventRules()
        self._store: QueueStore[EventT] = QueueStore(sort, rules.any_of, self.settings)
        self._lease_order: LeaseOrder[EventT] = LeaseOrder(self._store, self.settings.max_bypasses)
        self._nominator: Nominator[EventT] = Nominator(self._store.pods.present)
        self._requeueing: Requeueing[EventT] = Requeueing(self._store, gate, rules, self.settings)
        self.gate: Gate = self._requeueing.gate
        self._next_seq = 0
        self._epochs: dict[str, int] = {}

    def add(self, pods: Iterable[tuple[PodIdentity, PodFacts]], now_s: float) -> AddResult:
        """Add a batch of pods; a repeated call changes nothing.

        A pod of the queue whose facts differ is updated. Pods beyond `max_pods` are refused; the
        sender keeps them and may send them again.
        """
        queued, ended = self._store.pods.present, self._store.pods.ended
        accepted: dict[str, PodEntry[EventT]] = {}
        repeated: list[tuple[str, PodFacts]] = []
        done: list[str] = []
        refused: list[str] = []
        free_count = self.settings.max_pods - len(queued)
        for identity, facts in pods:
            uid = identity.uid
            if uid in queued or uid in accepted:
                repeated.append((uid, facts))
            elif uid in ended:
                done.append(uid)
            elif len(accepted) >= free_count:
                refused.append(uid)
            else:
                accepted[uid] = self._new_entry(identity, facts, now_s)
        # Before the updates: the batch may name a new pod twice, and its second facts update the
        # first.
        self._requeueing.enter_new(list(accepted.values()), now_s)
        # After they entered: the index may drop pods that are not in the queue.
        for uid, entry in accepted.items():
            if node_name := entry.facts.nominated_node_name:
                self._nominator.index(uid, node_name)
        for uid, facts in repeated:
            self._update(queued[uid], facts, now_s, None)
        full = unschedulable(f"the queue is full: it holds {self.settings.max_pods} pods")
        results = tuple(accepted), tuple(uid for uid, _ in repeated), tuple(done), tuple(refused)
        return AddResult(*results, full if refused else SUCCESS)

    def lease(
        self, owner: str, epoch: int, max_pods: int, now_s: float, profile: str = ""
    ) -> LeaseBatch:
        """Lease the first pods of activeQ to `owner` for `lease_s` seconds.

        profile: whose pods; "" for all. Order: `roadstead.queue.lease_order`; if activeQ is empty,
        rejected pods in backoffQ. A newer epoch of an owner ends its older leases; for an older
        epoch the status is an error.
        """
        deadline_s = now_s + self.settings.lease_s
        if epoch < self._epochs.get(owner, epoch):
            why = unresolvable(f"{owner}: epoch {epoch} is over, {self._epochs[owner]} is current")
            return LeaseBatch(0, owner, epoch, deadline_s, status=why)
        # A newer epoch means a new incarnation of the owner, which has no pods of older leases.
        self.revoke(owner, epoch, now_s)
        lease: Lease[EventT] | None = None
        pods: list[QueuedPod] = []
        for entries in self._lease_order.picks(owner, max_pods, profile):
            lease = lease or self._store.in_flight.begin(owner, epoch, deadline_s)
            pods += self._lease_pods(entries, lease)
        # Pods that are being deleted move on to GATED; schedulers do not receive them.
        pods = self._requeueing.skip_deleting(pods, now_s)
        lease_id = lease.lease_id if lease is not None and pods else 0
        return LeaseBatch(lease_id, owner, epoch, deadline_s, tuple(pods))

    def renew(self, lease_id: int, now_s: float) -> Status:
        """Extend a lease to `now_s + lease_s`; return an error status if it has ended."""
        lease = self._find_lease(lease_id)
        if lease is None:
            return unresolvable(f"lease {lease_id} is over")
        lease.deadline_s = max(lease.deadline_s, now_s + self.settings.lease_s)
        return SUCCESS

    def done(self, lease_id: int, uids: Sequence[str]) -> LeaseAnswer:
        """Remove bound pods of a lease.

        Raises IllegalTransitionError, with nothing changed, for a pod that was never in this lease
        or for which the lease's owner sent a different report before.
        """
        lease = self._find_lease(lease_id)
        if lease is None:
            return LeaseAnswer(stale=tuple(uids))
        # `todo`: the pods for which this is the first report of the lease.
        todo, answer = self._store.split_report(lease, [(uid, QueueEvent.FINISH) for uid in uids])
        self._store.apply_all(todo, QueueEvent.FINISH)
        lease.closed |= dict.fromkeys(answer.applied, QueueEvent.FINISH)
        return answer

    def requeue(self, lease_id: int, pods: Sequence[Requeue], now_s: float) -> LeaseAnswer:
        """Return pods of a lease to the queue.

        CONFLICT: to the head of activeQ. UNSCHEDULABLE: to unschedulablePods, or to backoffQ or
        activeQ if an event since the lease began may help (upstream's
        AddUnschedulableIfNotPresent); without `rejected_by` it counts as an error. ERROR: to
        backoffQ. Raises as `done` does.
        """
        lease = self._find_lease(lease_id)
        if lease is None:
            return LeaseAnswer(stale=tuple(pod.uid for pod in pods))
        todo, answer = self._store.split_report(
            lease, [(pod.uid, _REPORTED_EVENT[pod.reason]) for pod in pods]
        )
        reports = {pod.uid: pod for pod in pods}
        hints = self._requeueing.hints(self._store.in_flight.events_since(lease))
        for entry in todo:
            report = reports[entry.uid]
            self._nominate(entry, report, now_s)
            self._requeueing.return_leased(entry, report, hints, now_s)
            lease.closed[entry.uid] = _REPORTED_EVENT[report.reason]
        return answer

    def nominated(self, node_name: str) -> tuple[str, ...]:
        """Return the UIDs of the pods that are nominated to a node, in order of arrival."""
        return tuple(entry.uid for entry in self._nominator.nominated(node_name))

    def nominations(self) -> tuple[QueuedPod, ...]:
        """Return the pods that are nominated to any node, in order of arrival; no gated ones."""
        return tuple(entry.view() for entry in self._nominator.all())

    def pop_cleared(self) -> list[QueuedPod]:
        """Remove and return the pods whose nominations ended by preemption or gating."""
        return self._requeueing.pop_cleared()

    def pop_released(self) -> list[QueuedPod]:
        """Remove and return the nominated pods that are no longer gated."""
        return self._requeueing.pop_released()

    def update(
        self,
        identity: PodIdentity,
        facts: PodFacts,
        now_s: float,
        events: Sequence[EventT] | None = None,
    ) -> Status:
        """Change a pending pod's facts; add an unknown pod.

        events: the changes, for the hints; with None any change of the facts is worth a retry. A
        pod in flight keeps its lease and has the new facts when it returns. Its nomination is kept
        unless the new facts have another one (upstream's UpdateNominatedPod in
        pkg/scheduler/backend/queue/nominator.go).
        """
        entry = self._store.pods.present.get(identity.uid)
        if entry is None:
            return self.add([(identity, facts)], now_s).status
        self._update(entry, facts, now_s, events)
        return SUCCESS

    def delete(self, uids: Iterable[str]) -> tuple[str, ...]:
        """Remove pods that were deleted from the cluster; return those that were queued."""
        store, removed = self._store, list[str]()
        for uid in uids:
            entry = store.pods.find(uid)
            if entry is not None:
                if entry.state is not QueueState.DONE:
                    removed.append(uid)
                store.apply(entry, QueueEvent.DELETE)
        return tuple(removed)

    def assigned(self, uids: Iterable[str]) -> tuple[str, ...]:
        """Remove pods that are on nodes, whoever bound them; return those that were queued."""
        removed: list[str] = []
        for uid in uids:
            if (entry := self._store.pods.present.get(uid)) is not None:
                self._store.apply(entry, QueueEvent.ASSIGN)
                removed.append(uid)
        return tuple(removed)

    def move(
        self, events: Sequence[EventT], now_s: float, predicate: PodPredicate | None = None
    ) -> tuple[str, ...]:
        """Move pods that cluster events may help to activeQ or backoffQ; return their UIDs.

        For pods in flight the events count when the pods return. predicate: which waiting pods
        may move.
        """
        moved = self._requeueing.move(
            events,
            now_s,
            None if predicate is None else lambda pod: predicate(pod.identity, pod.facts),
        )
        for event in events:
            self._store.in_flight.record(event)
        return tuple(moved)

    def activate(self, uids: Iterable[str], now_s: float) -> tuple[str, ...]:
        """Move pods to activeQ regardless of backoff (upstream's Activate); return their UIDs.

        A pod in flight is retried if it is rejected: None, its own event, stands for "any event".
        """
        moved: list[str] = []
        for uid in uids:
            entry = self._store.pods.present.get(uid)
            if entry is None or entry.state is QueueState.ACTIVE:
                continue
            if entry.state is QueueState.IN_FLIGHT:
                self._requeueing.add_own_events(entry, [None])
            elif self._requeueing.enter(entry, QueueEvent.ACTIVATE, now_s) is QueueState.ACTIVE:
                moved.append(uid)
        return tuple(moved)

    def flush_backoff(self, now_s: float) -> int:
        """Move pods whose backoff has ended to activeQ; return their number."""
        count = 0
        backoff = self._store.backoff
        while (entry := backoff.first()) is not None and entry.backoff_until_s <= now_s:
            self._requeueing.enter(entry, QueueEvent.ACTIVATE, now_s)
            count += 1
        return count

    def flush_unschedulable(self, now_s: float) -> int:
        """Retry pods that were unschedulable for `unschedulable_max_s`; return their number."""
        count = 0
        heap = self._store.unschedulable.heap
        hints = self._requeueing.hints([None])
        wait_s = self.settings.unschedulable_max_s
        while (entry := heap.first()) is not None and entry.timestamp_s + wait_s <= now_s:
            self._requeueing.retry(entry, hints, now_s)
            count += 1
        return count

    def expire(self, now_s: float) -> tuple[EndedLease, ...]:
        """End the leases past their deadline; their pods return to the head of activeQ."""
        leases = self._store.in_flight.leases.values()
        expired = [lease for lease in leases if lease.deadline_s <= now_s]
        return tuple(self._end_lease(lease, now_s) for lease in expired)

    def revoke(self, owner: str, epoch: int, now_s: float) -> tuple[EndedLease, ...]:
        """Fence an owner's epochs before `epoch`: end their leases, and refuse new ones."""
        self._epochs[owner] = max(epoch, self._epochs.get(owner, epoch))
        old = [
            lease
            for lease in self._store.in_flight.leases.values()
            if lease.owner == owner and lease.epoch < epoch
        ]
        return tuple(self._end_lease(lease, now_s) for lease in old)

    def leased_to(self, owner: str, epoch: int) -> tuple[str, ...]:
        """Return the UIDs of the pods leased to an owner's epochs before `epoch`."""
        leases = self._store.in_flight.leases.values()
        old = [each for each in leases if each.owner == owner and each.epoch < epoch]
        return tuple(uid for lease in old for uid in lease.open)

    def tick(self, now_s: float) -> tuple[EndedLease, ...]:
        """End leases, backoffs and waits in unschedulablePods that are due; return the leases."""
        ended = self.expire(now_s)
        self.flush_unschedulable(now_s)
        self.flush_backoff(now_s)
        return ended

    def next_wakeup_s(self) -> float | None:
        """Return the time of the next lease, backoff or wait to end; None if there is none."""
        times = [lease.deadline_s for lease in self._store.in_flight.leases.values()]
        if (backing_off := self._store.backoff.first()) is not None:
            times.append(backing_off.backoff_until_s)
        if (longest_unschedulable := self._store.unschedulable.heap.first()) is not None:
            times.append(longest_unschedulable.timestamp_s + self.settings.unschedulable_max_s)
        return min(times, default=None)

    def state_of(self, uid: str) -> QueueState:
        """Return a pod's state; NEW for an unknown or forgotten pod."""
        return self._store.pods.state_of(uid)

    def facts_of(self, uid: str) -> PodFacts | None:
        """Return the facts of a pod that waits or is in flight; None for any other."""
        entry = self._store.pods.present.get(uid)
        return entry.facts if entry is not None else None

    def known_uids(self, uids: Iterable[str]) -> set[str]:
        """Return the UIDs of those pods that wait or are in flight."""
        return self._store.pods.present.keys() & uids

    def rejected_by(self, uid: str) -> tuple[str, ...]:
        """Return the plugins that rejected a pod of unschedulablePods; () for any other pod."""
        entry = self._store.pods.present.get(uid)
        if entry is None or entry.state is not QueueState.UNSCHEDULABLE:
            return ()
        return entry.rejected_by

    def pods(
        self, *states: QueueState, start: int = 0, stop: int | None = None
    ) -> tuple[QueuedPod, ...]:
        """Return the pods in some states, in the order of their container; in flight: by arrival.

        start, stop: as of a slice; only these pods are built.
        """
        entries = chain.from_iterable(map(self._store.entries, states))
        return tuple(entry.view() for entry in islice(entries, start, stop))

    @property
    def has_pods(self) -> bool:
        """Whether any pod waits or is in flight."""
        return bool(self._store.pods.present)

    @property
    def can_lease(self) -> bool:
        """Whether `lease` would find a pod now: in activeQ, or a rejected one in backoffQ."""
        return bool(len(self._store.active.heap) or len(self._store.backoff.rejected.heap))

    @property
    def active_count(self) -> int:
        """The number of pods in activeQ."""
        return len(self._store.active.heap)

    def counts(self) -> QueueCounts:
        """Return the number of pods in each container."""
        return self._store.counts()

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self._store.validate()
        self._lease_order.validate()

    def _find_lease(self, lease_id: int) -> Lease[EventT] | None:
        return self._store.in_flight.leases.get(lease_id)

    def _new_entry(self, identity: PodIdentity, facts: PodFacts, now_s: float) -> PodEntry[EventT]:
        entry: PodEntry[EventT] = PodEntry(identity.uid, identity, facts, self._next_seq, now_s)
        self._next_seq += 1
        return entry

    def _nominate(self, entry: PodEntry[EventT], report: Requeue, now_s: float) -> None:
        node_name, nominator = report.nominated_node, self._nominator
        if node_name is None:
            return
        entry.facts = nominator.facts_for(entry.facts, node_name)
        nominator.index(entry.uid, node_name)
        if not report.preempts:
            return
        for lower in nominator.nominated_below(node_name, entry.facts.priority):
            # The preemptor will use the resources: retry the pod elsewhere after its backoff.
            nominator.index(lower.uid, "")
            self._requeueing.record_cleared(lower)
            self._requeueing.update(lower, nominator.facts_for(lower.facts, ""), now_s, [None])

    def _lease_pods(self, entries: Entries[EventT], lease: Lease[EventT]) -> list[QueuedPod]:
        for entry in entries:
            entry.lease_id = lease.lease_id
            entry.attempts += 1
            entry.rejected_by = entry.pending = ()
            entry.own_events = ()
        self._store.apply_all(entries, QueueEvent.LEASE)
        return [entry.view() for entry in entries]

    def _update(
        self,
        entry: PodEntry[EventT],
        facts: PodFacts,
        now_s: float,
        events: Sequence[EventT] | None,
    ) -> None:
        if not facts.nominated_node_name:
            # The sender of an update may not have received the nomination, which is kept then.
            facts = self._nominator.facts_for(facts, entry.facts.nominated_node_name)
        if events is None and entry.facts == facts:
            return
        self._nominator.index(entry.uid, facts.nominated_node_name)
        self._requeueing.update(entry, facts, now_s, [None] if events is None else events)

    def _end_lease(self, lease: Lease[EventT], now_s: float) -> EndedLease:
        uids = tuple(lease.open)
        for entry in list(lease.open.values()):
            self._requeueing.enter(entry, QueueEvent.EXPIRE, now_s)
        return EndedLease(lease.lease_id, lease.owner, lease.epoch, uids)

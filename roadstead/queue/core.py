"""QueueCore: pods that wait for a node, and the leases under which schedulers try them.

States, arrows and rules: the diagram in `roadstead.queue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.status import SUCCESS, Status, unresolvable, unschedulable
from roadstead.queue.hints import EventRules
from roadstead.queue.lease_order import LeaseOrder
from roadstead.queue.nominator import Nominator
from roadstead.queue.places import Entries, Lease
from roadstead.queue.pods import (
    AddResult,
    EndedLease,
    EventT,
    Gate,
    LeaseAnswer,
    LeaseBatch,
    PodEntry,
    PodEvent,
    PodState,
    QueueCounts,
    QueuedPod,
    QueueSettings,
    QueueSort,
    Requeue,
    RequeueReason,
    admit_all,
    priority_sort,
)
from roadstead.queue.queue_store import QueueStore
from roadstead.queue.requeueing import Requeueing

Among = Callable[[PodIdentity, PodFacts], bool]

_REPORTED = {
    RequeueReason.CONFLICT: PodEvent.CONFLICT,
    RequeueReason.UNSCHEDULABLE: PodEvent.REJECT,
    RequeueReason.ERROR: PodEvent.FAIL,
}


class QueueCore(Generic[EventT]):
    """All pods that wait, each in exactly one place.

    gate: PreEnqueue. rules: what events mean; by default any event brings any pod back.
    sort: QueueSort.
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
        self._lease_order: LeaseOrder[EventT] = LeaseOrder(self._store, self.settings.max_passed)
        self._nominator: Nominator[EventT] = Nominator(self._store.pods.here)
        self._requeueing: Requeueing[EventT] = Requeueing(self._store, gate, rules, self.settings)
        self.gate: Gate = self._requeueing.gate
        self._next_seq = 0
        self._epochs: dict[str, int] = {}

    def add(self, pods: Iterable[tuple[PodIdentity, PodFacts]], now_s: float) -> AddResult:
        """Accept a batch; calling it again changes nothing.

        A pod that is there with other facts is updated. Beyond `max_pods` living pods the rest is
        refused, never dropped: the sender keeps it and comes again.
        """
        living, gone = self._store.pods.here, self._store.pods.ended
        accepted: dict[str, PodEntry[EventT]] = {}
        again: list[tuple[str, PodFacts]] = []
        done: list[str] = []
        refused: list[str] = []
        room = self.settings.max_pods - len(living)
        for identity, facts in pods:
            uid = identity.uid
            if uid in living or uid in accepted:
                again.append((uid, facts))
            elif uid in gone:
                done.append(uid)
            elif len(accepted) >= room:
                refused.append(uid)
            else:
                accepted[uid] = self._new(identity, facts, now_s)
        self._requeueing.enter_new(list(accepted.values()), now_s)
        for uid, facts in again:
            self._update(living[uid], facts, now_s, None)
        full = unschedulable(f"the queue is full: it holds {self.settings.max_pods} pods")
        told = tuple(accepted), tuple(uid for uid, _ in again), tuple(done), tuple(refused)
        return AddResult(*told, full if refused else SUCCESS)

    def lease(
        self, owner: str, epoch: int, max_pods: int, now_s: float, profile: str = ""
    ) -> LeaseBatch:
        """Lend the first pods of activeQ to `owner` for `lease_s` seconds; of one profile, if told.

        Order: `roadstead.queue.lease_order`; where activeQ is empty, rejected pods that still back
        off. A newer epoch of an owner ends its older leases; an older epoch is refused by the
        status.
        """
        deadline_s = now_s + self.settings.lease_s
        if epoch < self._epochs.get(owner, epoch):
            why = unresolvable(f"{owner}: epoch {epoch} is over, {self._epochs[owner]} is current")
            return LeaseBatch(0, owner, epoch, deadline_s, status=why)
        self.revoke(owner, epoch, now_s)
        lease: Lease[EventT] | None = None
        pods: list[QueuedPod] = []
        for entries in self._lease_order.picks(owner, max_pods, profile):
            lease = lease or self._store.in_flight.begin(owner, epoch, deadline_s)
            pods += self._lease_pods(entries, lease)
        pods = self._requeueing.skip_deleting(pods, now_s)
        lease_id = lease.lease_id if lease is not None and pods else 0
        return LeaseBatch(lease_id, owner, epoch, deadline_s, tuple(pods))

    def renew(self, lease_id: int, now_s: float) -> Status:
        """Push the deadline of a lease to `now_s + lease_s`; refused where the lease is over."""
        lease = self._lease(lease_id)
        if lease is None:
            return unresolvable(f"lease {lease_id} is over")
        lease.deadline_s = max(lease.deadline_s, now_s + self.settings.lease_s)
        return SUCCESS

    def done(self, lease_id: int, uids: Sequence[str]) -> LeaseAnswer:
        """These pods are bound: they leave.

        Raises IllegalTransitionError, with nothing changed, for a pod that is not in this lease or
        of which the lease's owner has reported something else.
        """
        lease = self._lease(lease_id)
        if lease is None:
            return LeaseAnswer(stale=tuple(uids))
        todo, answer = self._store.sort_out(lease, [(uid, PodEvent.FINISH) for uid in uids])
        self._store.go_all(todo, PodEvent.FINISH)
        lease.closed |= dict.fromkeys(answer.applied, PodEvent.FINISH)
        return answer

    def requeue(self, lease_id: int, pods: Sequence[Requeue], now_s: float) -> LeaseAnswer:
        """Give pods of a lease back.

        CONFLICT: to the head of activeQ. UNSCHEDULABLE: to unschedulablePods, or to backoffQ or
        activeQ where an event seen since the lease began may help (upstream's
        AddUnschedulableIfNotPresent); without `rejected_by` it counts as an error. ERROR: to
        backoffQ. Raises as `done` does.
        """
        lease = self._lease(lease_id)
        if lease is None:
            return LeaseAnswer(stale=tuple(pod.uid for pod in pods))
        todo, answer = self._store.sort_out(
            lease, [(pod.uid, _REPORTED[pod.reason]) for pod in pods]
        )
        reports = {pod.uid: pod for pod in pods}
        hints = self._requeueing.hints(self._store.in_flight.events_since(lease))
        for entry in todo:
            report = reports[entry.uid]
            self._nominate(entry, report, now_s)
            self._requeueing.give_back(entry, report, hints, now_s)
            lease.closed[entry.uid] = _REPORTED[report.reason]
        return answer

    def nominated(self, node_name: str) -> tuple[str, ...]:
        """UIDs of the pods that are nominated to a node, in order of arrival."""
        return tuple(entry.uid for entry in self._nominator.nominated(node_name))

    def nominations(self) -> tuple[QueuedPod, ...]:
        """The pods that are nominated to some node, in order of arrival."""
        return tuple(entry.view() for entry in self._nominator.all())

    def take_cleared(self) -> list[QueuedPod]:
        """Pods whose nominations hold no room any more: lost to others, or the pods are gated."""
        return self._requeueing.take_held_back()

    def take_released(self) -> list[QueuedPod]:
        """Nominated pods that are gated no more."""
        return self._requeueing.take_released()

    def update(
        self,
        identity: PodIdentity,
        facts: PodFacts,
        now_s: float,
        events: Sequence[EventT] | None = None,
    ) -> Status:
        """A pending pod changed; an unknown one is added.

        events: what changed, for the hints; None lets any change of facts count as worth a retry.
        A pod in flight keeps its lease and comes back with the new facts. A nomination that it was
        given here stays, unless the new facts have another one (upstream's UpdateNominatedPod in
        pkg/scheduler/backend/queue/nominator.go).
        """
        entry = self._store.pods.here.get(identity.uid)
        if entry is None:
            return self.add([(identity, facts)], now_s).status
        self._update(entry, facts, now_s, events)
        return SUCCESS

    def delete(self, uids: Iterable[str]) -> tuple[str, ...]:
        """These pods are gone from the cluster; answers those that were in the queue."""
        store, gone = self._store, list[str]()
        for uid in uids:
            entry = store.pods.find(uid)
            if entry is not None:
                gone += [] if entry.state is PodState.DONE else [uid]
                store.go(entry, PodEvent.DELETE)
        return tuple(gone)

    def assigned(self, uids: Iterable[str]) -> tuple[str, ...]:
        """The cluster shows these pods on nodes, whoever put them there; answers who left."""
        gone: list[str] = []
        for uid in uids:
            if (entry := self._store.pods.here.get(uid)) is not None:
                self._store.go(entry, PodEvent.ASSIGN)
                gone.append(uid)
        return tuple(gone)

    def move(
        self, events: Sequence[EventT], now_s: float, among: Among | None = None
    ) -> tuple[str, ...]:
        """Cluster events: pods that one may help go to activeQ or backoffQ; answers who moved.

        Pods in flight see them when they come back. among: which waiting pods may move at all.
        """
        moved = self._requeueing.move(
            events, now_s, None if among is None else lambda pod: among(pod.identity, pod.facts)
        )
        for event in events:
            self._store.in_flight.record(event)
        return tuple(moved)

    def activate(self, uids: Iterable[str], now_s: float) -> tuple[str, ...]:
        """Bring pods to activeQ whatever their backoff (upstream's Activate); answers who moved.

        A pod in flight is retried should it be rejected.
        """
        moved: list[str] = []
        for uid in uids:
            entry = self._store.pods.here.get(uid)
            if entry is None or entry.state is PodState.ACTIVE:
                continue
            if entry.state is PodState.IN_FLIGHT:
                self._requeueing.remember(entry, [None])
            elif self._requeueing.enter(entry, PodEvent.ACTIVATE, now_s) is PodState.ACTIVE:
                moved.append(uid)
        return tuple(moved)

    def flush_backoff(self, now_s: float) -> int:
        """Bring pods whose backoff is over to activeQ; answers how many."""
        count = 0
        backoff = self._store.backoff
        while (entry := backoff.first()) is not None and entry.backoff_until_s <= now_s:
            self._requeueing.enter(entry, PodEvent.ACTIVATE, now_s)
            count += 1
        return count

    def flush_unschedulable(self, now_s: float) -> int:
        """Retry pods that were unschedulable for `unschedulable_max_s`; answers how many."""
        count = 0
        heap = self._store.unschedulable.heap
        hints = self._requeueing.hints([None])
        wait_s = self.settings.unschedulable_max_s
        while (entry := heap.first()) is not None and entry.timestamp_s + wait_s <= now_s:
            self._requeueing.retry(entry, hints, now_s)
            count += 1
        return count

    def expire(self, now_s: float) -> tuple[EndedLease, ...]:
        """End the leases whose deadline has come; their pods are back at the head of activeQ."""
        late = [one for one in self._store.in_flight.leases.values() if one.deadline_s <= now_s]
        return tuple(self._end(lease, now_s) for lease in late)

    def revoke(self, owner: str, epoch: int, now_s: float) -> tuple[EndedLease, ...]:
        """Fence an owner: leases of epochs before `epoch` end now, and none is given any more."""
        self._epochs[owner] = max(epoch, self._epochs.get(owner, epoch))
        old = [
            lease
            for lease in self._store.in_flight.leases.values()
            if lease.owner == owner and lease.epoch < epoch
        ]
        return tuple(self._end(lease, now_s) for lease in old)

    def leased_to(self, owner: str, epoch: int) -> tuple[str, ...]:
        """Pods under leases of an owner's epochs before `epoch`."""
        leases = self._store.in_flight.leases.values()
        old = [each for each in leases if each.owner == owner and each.epoch < epoch]
        return tuple(uid for lease in old for uid in lease.open)

    def tick(self, now_s: float) -> tuple[EndedLease, ...]:
        """All that time does: ends leases, backoffs and long waits; answers the ended leases."""
        ended = self.expire(now_s)
        self.flush_unschedulable(now_s)
        self.flush_backoff(now_s)
        return ended

    def next_wakeup_s(self) -> float | None:
        """When `tick` has something to do next; None while nothing waits for time."""
        times = [lease.deadline_s for lease in self._store.in_flight.leases.values()]
        if (backing_off := self._store.backoff.first()) is not None:
            times.append(backing_off.backoff_until_s)
        if (parked := self._store.unschedulable.heap.first()) is not None:
            times.append(parked.timestamp_s + self.settings.unschedulable_max_s)
        return min(times, default=None)

    def state_of(self, uid: str) -> PodState:
        """Where a pod is; NEW for one that the queue does not know (any more)."""
        return self._store.pods.state_of(uid)

    def facts_of(self, uid: str) -> PodFacts | None:
        """The facts of a pod that waits or is in flight."""
        entry = self._store.pods.here.get(uid)
        return entry.facts if entry is not None else None

    def known_among(self, uids: Iterable[str]) -> set[str]:
        """Those of some pods that wait or are in flight."""
        return self._store.pods.here.keys() & uids

    def rejected_by(self, uid: str) -> tuple[str, ...]:
        """The plugins for which a pod waits in unschedulablePods; none for one that does not."""
        entry = self._store.pods.here.get(uid)
        if entry is None or entry.state is not PodState.UNSCHEDULABLE:
            return ()
        return entry.rejected_by

    def pods(self, state: PodState) -> tuple[QueuedPod, ...]:
        """The pods in one state, in the order in which they would leave it."""
        return tuple(entry.view() for entry in self._store.entries(state))

    @property
    def waiting(self) -> int:
        """How many pods are in activeQ."""
        return len(self._store.active.heap)

    def counts(self) -> QueueCounts:
        return self._store.counts()

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        self._store.validate()
        self._lease_order.validate()

    def _lease(self, lease_id: int) -> Lease[EventT] | None:
        return self._store.in_flight.leases.get(lease_id)

    def _new(self, identity: PodIdentity, facts: PodFacts, now_s: float) -> PodEntry[EventT]:
        entry: PodEntry[EventT] = PodEntry(identity.uid, identity, facts, self._next_seq, now_s)
        self._next_seq += 1
        if facts.nominated_node_name:
            self._nominator.note(entry.uid, facts.nominated_node_name)
        return entry

    def _nominate(self, entry: PodEntry[EventT], report: Requeue, now_s: float) -> None:
        node_name, nominator = report.nominated_node, self._nominator
        if node_name is None:
            return
        entry.facts = nominator.facts_for(entry.facts, node_name)
        nominator.note(entry.uid, node_name)
        for lower in nominator.lower(node_name, entry.facts.priority) if report.preempts else ():
            # Its room is taken: it looks for another one when its backoff is over.
            nominator.note(lower.uid, "")
            self._requeueing.hold_back(lower)
            self._requeueing.update(lower, nominator.facts_for(lower.facts, ""), now_s, [None])

    def _lease_pods(self, entries: Entries[EventT], lease: Lease[EventT]) -> list[QueuedPod]:
        for entry in entries:
            entry.lease_id = lease.lease_id
            entry.attempts += 1
            entry.rejected_by = entry.pending = ()
            entry.own_events = ()
        self._store.go_all(entries, PodEvent.LEASE)
        return [entry.view() for entry in entries]

    def _update(
        self,
        entry: PodEntry[EventT],
        facts: PodFacts,
        now_s: float,
        events: Sequence[EventT] | None,
    ) -> None:
        if not facts.nominated_node_name:
            # Who sends a pod again need not have heard that it was nominated here.
            facts = self._nominator.facts_for(facts, entry.facts.nominated_node_name)
        if events is None and entry.facts == facts:
            return
        self._nominator.note(entry.uid, facts.nominated_node_name)
        self._requeueing.update(entry, facts, now_s, [None] if events is None else events)

    def _end(self, lease: Lease[EventT], now_s: float) -> EndedLease:
        uids = tuple(lease.open)
        for entry in list(lease.open.values()):
            self._requeueing.enter(entry, PodEvent.EXPIRE, now_s)
        return EndedLease(lease.lease_id, lease.owner, lease.epoch, uids)

"""QueueStore: every pod of the queue in its container, and the only methods that move it.

`PodStore` has the records by UID, as in every core: `present` those in a state of `QUEUED`, `ended`
the last DONE ones. The containers (heaps, groups, leases) exist only in the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic

from roadstead.facts.pod import PodFacts
from roadstead.lazyheap import LazyHeap, SortKey
from roadstead.pod_store import PodStore
from roadstead.queue.containers import (
    ActiveQ,
    BackoffQ,
    Entries,
    InFlight,
    Lease,
    PodContainer,
    PodHeap,
    PodsByReason,
)
from roadstead.queue.pods import (
    AnyOf,
    EventT,
    LeaseAnswer,
    PodEntry,
    QueueCounts,
    QueueEvent,
    QueueSettings,
    QueueSort,
    QueueState,
)
from roadstead.queue.profile_heaps import ProfileHeaps
from roadstead.transitions import TransitionTable

_S, _E = QueueState, QueueEvent

QUEUED = (_S.ACTIVE, _S.BACKOFF, _S.UNSCHEDULABLE, _S.GATED, _S.IN_FLIGHT)
"""States of the pods that are in the queue."""

TABLE: TransitionTable[QueueState, QueueEvent] = TransitionTable(
    "queue",
    {
        (_S.NEW, _E.ADD): _S.ACTIVE,
        (_S.NEW, _E.GATE): _S.GATED,
        (_S.ACTIVE, _E.LEASE): _S.IN_FLIGHT,
        (_S.BACKOFF, _E.ACTIVATE): _S.ACTIVE,
        (_S.BACKOFF, _E.LEASE): _S.IN_FLIGHT,
        (_S.UNSCHEDULABLE, _E.ACTIVATE): _S.ACTIVE,
        (_S.UNSCHEDULABLE, _E.BACK_OFF): _S.BACKOFF,
        (_S.UNSCHEDULABLE, _E.GATE): _S.GATED,
        (_S.GATED, _E.ACTIVATE): _S.ACTIVE,
        (_S.GATED, _E.BACK_OFF): _S.BACKOFF,
        (_S.GATED, _E.GATE): _S.GATED,
        (_S.IN_FLIGHT, _E.FINISH): _S.DONE,
        (_S.IN_FLIGHT, _E.CONFLICT): _S.ACTIVE,
        (_S.IN_FLIGHT, _E.EXPIRE): _S.ACTIVE,
        (_S.IN_FLIGHT, _E.ACTIVATE): _S.ACTIVE,
        (_S.IN_FLIGHT, _E.REJECT): _S.UNSCHEDULABLE,
        (_S.IN_FLIGHT, _E.FAIL): _S.BACKOFF,
        (_S.IN_FLIGHT, _E.BACK_OFF): _S.BACKOFF,
        (_S.IN_FLIGHT, _E.GATE): _S.GATED,
        (_S.DONE, _E.DELETE): _S.DELETED,
        **{(state, _E.UPDATE): state for state in QUEUED},
        **{(state, _E.ASSIGN): _S.DONE for state in QUEUED},
        **{(state, _E.DELETE): _S.DELETED for state in QUEUED},
    },
)


class CachedSortKey(Generic[EventT]):
    """Function that returns a pod's QueueSort key; caches the last one, by facts and timestamp.

    Pods are added in groups of equal facts and timestamp, so that one key is enough.
    """

    def __init__(self, sort: QueueSort) -> None:
        self._sort = sort
        self._facts: PodFacts | None = None
        self._timestamp_s = 0.0
        self._key: SortKey = ()

    def __call__(self, pod: PodEntry[EventT]) -> SortKey:
        if pod.facts is not self._facts or pod.timestamp_s != self._timestamp_s:
            self._facts, self._timestamp_s = pod.facts, pod.timestamp_s
            self._key = self._sort(pod.facts, pod.timestamp_s)
        return self._key


class QueueStore(Generic[EventT]):
    """Containers by state; `apply` moves a pod as `TABLE` allows."""

    def __init__(self, sort: QueueSort, any_of: AnyOf[EventT], settings: QueueSettings) -> None:
        self.max_pods = settings.max_pods
        # With the last DONE pods, so that a late copy of an `add` does not add them again.
        self.pods: PodStore[PodEntry[EventT], QueueState, QueueEvent] = PodStore(
            TABLE,
            unknown=_S.NEW,
            present_in=QUEUED,
            ended_in={_S.DONE},
            max_ended=settings.max_done_remembered,
        )
        sort_key: CachedSortKey[EventT] = CachedSortKey(sort)
        heap = ProfileHeaps[EventT] if settings.by_profile else LazyHeap[PodEntry[EventT]]
        self.active: ActiveQ[EventT] = ActiveQ(sort_key, heap(), by_profile=settings.by_profile)
        self.backoff: BackoffQ[EventT] = BackoffQ(sort_key, heap())
        self.unschedulable: PodsByReason[EventT] = PodsByReason(lambda pod: (pod.timestamp_s,))
        self.gated: PodsByReason[EventT] = PodsByReason(lambda pod: (pod.timestamp_s,))
        self.in_flight: InFlight[EventT] = InFlight(settings.max_in_flight_events, any_of)
        self._containers: dict[QueueState, PodContainer[EventT]] = {
            _S.ACTIVE: self.active,
            _S.BACKOFF: self.backoff,
            _S.UNSCHEDULABLE: self.unschedulable,
            _S.GATED: self.gated,
            _S.IN_FLIGHT: self.in_flight,
        }

    def apply(self, entry: PodEntry[EventT], event: QueueEvent) -> QueueState:
        """Apply an event to a pod: move it to the container of its next state; return the state."""
        self.apply_all((entry,), event)
        return entry.state

    def apply_all(self, entries: Entries[EventT], event: QueueEvent) -> None:
        """Apply an event to distinct pods; if it is illegal, raise with nothing changed."""
        for moved in self.pods.apply_all(entries, event):
            if moved.was in self._containers:
                self._containers[moved.was].remove(moved.select(entries))
            if moved.to in self._containers:
                self._containers[moved.to].put(moved.select(entries))

    def stay(self, entry: PodEntry[EventT], event: QueueEvent) -> None:
        """Apply an event that keeps the state; the pod also keeps its position in its container."""
        transition = TABLE.follow(entry.uid, entry.state, event, entry.history)
        assert transition.target is entry.state, f"{event} does not lead back to {entry.state}"
        entry.history = transition.extend(entry.history)

    def split_report(
        self, lease: Lease[EventT], reports: Iterable[tuple[str, QueueEvent]]
    ) -> tuple[list[PodEntry[EventT]], LeaseAnswer]:
        """Return the pods of a report that are to be changed, and the answer; nothing is changed.

        IllegalTransitionError for a pod that was never in the lease, or for which an earlier report
        had a different event.
        """
        todo: dict[str, QueueEvent] = {}
        duplicates: list[str] = []
        stale: list[str] = []
        for uid, event in reports:
            if uid in lease.open and uid not in todo:
                todo[uid] = event
                continue
            if uid not in todo and uid not in lease.closed:
                why = f"not in lease {lease.lease_id} of {lease.owner}"
                raise self.pods.illegal(uid, event, why)
            before = todo.get(uid) or lease.closed[uid]
            if before is None:
                stale.append(uid)
            elif before is event:
                duplicates.append(uid)
            else:
                why = f"lease {lease.lease_id} reported {before.value} before"
                raise self.pods.illegal(uid, event, why)
        answer = LeaseAnswer(tuple(todo), tuple(duplicates), tuple(stale))
        return [lease.open[uid] for uid in todo], answer

    def entries(self, state: QueueState) -> list[PodEntry[EventT]]:
        """Return the pods in one state, in the order of their container; in flight: by arrival."""
        if state is _S.IN_FLIGHT:
            return sorted(self.in_flight, key=lambda entry: entry.seq)
        if state is _S.DONE:
            return list(self.pods.ended.values())
        if state is _S.BACKOFF:
            return self.backoff.ordered()
        container = self._containers.get(state)
        return container.heap.ordered() if isinstance(container, PodHeap) else []

    def counts(self) -> QueueCounts:
        """Return the number of pods in each container."""
        return QueueCounts(
            active=len(self.active.heap),
            backoff=len(self.backoff),
            unschedulable=len(self.unschedulable.heap),
            gated=len(self.gated.heap),
            in_flight=len(self.in_flight),
            leases=len(self.in_flight.leases),
            done_total=self.pods.ended_as(_S.DONE),
        )

    def validate(self) -> None:
        """Check that every accepted pod is in exactly one container, that of its state.

        This is invariant I4 of docs/invariants.md.
        """
        self._validate_containers()
        self._validate_leases()
        self.pods.validate()
        counts = self.counts()
        assert counts.queued == len(self.pods.present) <= self.max_pods, counts

    def _validate_containers(self) -> None:
        seen: set[str] = set()
        for state in QUEUED:
            for entry in self.entries(state):
                assert entry.uid not in seen, f"{entry.uid} is in two containers"
                assert entry.state is state, f"{entry.uid} is in {state}, has {entry.state}"
                assert self.pods.present.get(entry.uid) is entry, f"{entry.uid} is not known"
                seen.add(entry.uid)
        assert seen == set(self.pods.present), f"in no container: {set(self.pods.present) - seen}"
        for entry in self.unschedulable.heap:
            assert entry.rejected_by, f"{entry.uid} is unschedulable and no plugin rejected it"

    def heap_of(self, entry: PodEntry[EventT]) -> PodHeap[EventT]:
        """Return the heap that contains a pod that may be leased."""
        return self.active if entry.state is _S.ACTIVE else self.backoff.rejected

    def next_to_lease(self, profile: str = "") -> Iterator[PodEntry[EventT]]:
        """Iterate over the first pods of activeQ; if it is empty, of the rejected ones in backoffQ.

        The first pods are all those with the smallest sort key, in order of arrival. profile: whose
        pods; "" for all.
        """
        active, rejected = self.active.heap, self.backoff.rejected.heap
        if profile:
            assert isinstance(active, ProfileHeaps), "the queue is not kept by profile"
            assert isinstance(rejected, ProfileHeaps), "the queue is not kept by profile"
            active, rejected = active.of(profile), rejected.of(profile)
        return (active if len(active) else rejected).items_with_first_key()

    def _validate_leases(self) -> None:
        for lease_id, lease in self.in_flight.leases.items():
            assert lease.lease_id == lease_id, f"lease {lease.lease_id} under {lease_id}"
            assert lease.open, f"lease {lease_id} is empty"
            assert not lease.open.keys() & lease.closed.keys(), f"lease {lease_id}: both"
            for entry in lease.open.values():
                assert entry.lease_id == lease_id, f"{entry.uid} names lease {entry.lease_id}"
                assert entry.attempts > 0, f"{entry.uid} is in flight without an attempt"
        if not self.in_flight.leases:
            assert self.in_flight.event_count == 0, "events are kept without a lease"

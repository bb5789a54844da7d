"""Containers of pods, one for each state. A pod is in one container at a time.

Each container has `put` and `remove`, which add and remove several pods in one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from operator import attrgetter
from typing import Generic, Protocol

from roadstead.facts.pod import PodFacts
from roadstead.lazyheap import LazyHeap, SortKey
from roadstead.queue.pods import AnyOf, EventT, PodEntry, QueueEvent, QueueState

WaitReason = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""(gating plugin, rejecting plugins, pending plugins, id of the facts).

Pods with equal reasons get equal answers from all hints.
"""

_LEASE_ID = attrgetter("lease_id")

SLACK = 1024
"""`EntryOrder` is rebuilt when it has more than twice the pods of the heap plus this number, so
that a short order is not rebuilt at each `append`."""

Entries = Sequence[PodEntry[EventT]]
"""Distinct pods that are added or removed in one call."""


class PodContainer(Protocol[EventT]):
    """Container of the pods in one state, which `QueueStore` calls when a pod changes its state."""

    def put(self, entries: Entries[EventT]) -> None: ...

    def remove(self, entries: Entries[EventT]) -> None: ...


class PodHeap(Generic[EventT]):
    """Container ordered by a key."""

    def __init__(
        self,
        key: Callable[[PodEntry[EventT]], SortKey],
        heap: LazyHeap[PodEntry[EventT]] | None = None,
    ) -> None:
        self._key = key
        self.heap: LazyHeap[PodEntry[EventT]] = LazyHeap() if heap is None else heap

    def put(self, entries: Entries[EventT]) -> None:
        for key, same_key in groupby(entries, self._key):
            self.heap.put_all(key, [(each.uid, each.seq, each) for each in same_key])

    def remove(self, entries: Entries[EventT]) -> None:
        self.heap.remove_all([each.uid for each in entries])

    def hide(self, entry: PodEntry[EventT]) -> None:
        """Hide an entry from the order until `show`; it stays in this container.

        Used to change its key; and while a lease is filled, if another scheduler has pods of its
        gang.
        """
        self.heap.remove(entry.uid)

    def show(self, entry: PodEntry[EventT]) -> None:
        self.heap.put(entry.uid, self._key(entry), entry.seq, entry)


class EntryOrder(Generic[EventT]):
    """Pods of activeQ in the order in which they entered it, with counts of bypasses.

    A retried pod was leased before; it bypasses the pods that entered activeQ before it when it is
    leased before them. bypasses: number of leases of retried pods while another pod had waited
    longer. entry_numbers: yields the next value of `PodEntry.entered`. All orders share it, so a
    pod that changed its profile has its present number in the order of its new profile only.
    """

    def __init__(self, heap: LazyHeap[PodEntry[EventT]], entry_numbers: Iterator[int]) -> None:
        self.bypasses = 0
        self._heap = heap
        self._entry_numbers = entry_numbers
        self._entries: deque[tuple[int, PodEntry[EventT]]] = deque()

    def append(self, entries: Iterable[PodEntry[EventT]]) -> None:
        numbered = list(zip(self._entry_numbers, entries, strict=False))
        for number, entry in numbered:
            entry.entered, entry.bypasses_before = number, self.bypasses
        self._entries += numbered
        if len(self._entries) > 2 * len(self._heap) + SLACK:
            self._entries = deque(each for each in self._entries if self._is_current(*each))

    def _is_current(self, entered: int, entry: PodEntry[EventT]) -> bool:
        # A pod that was deleted and added again has a new entry under the same UID in the heap.
        is_last = entry.entered == entered and entry.state is QueueState.ACTIVE
        return is_last and entry.uid in self._heap

    def oldest(self) -> PodEntry[EventT] | None:
        """Return the pod that has waited longest; None if none waits."""
        while self._entries and not self._is_current(*self._entries[0]):
            self._entries.popleft()
        return self._entries[0][1] if self._entries else None

    def bypasses_of(self, entry: PodEntry[EventT]) -> int:
        """Return an upper bound of how often retried pods bypassed a pod in activeQ.

        It also counts leases of retried pods that had waited longer than this one.
        """
        return self.bypasses - entry.bypasses_before

    def restore(self, entry: PodEntry[EventT], max_bypasses: int) -> None:
        """Restore a pod that was hidden.

        Bypasses beyond `max_bypasses` do not count: a hidden pod cannot be leased.
        """
        entry.bypasses_before = max(entry.bypasses_before, self.bypasses - max_bypasses)
        if not self._entries or self._entries[0][0] > entry.entered:
            # `oldest` dropped it from the order while it was hidden.
            self._entries.appendleft((entry.entered, entry))


class ActiveQ(PodHeap[EventT]):
    """activeQ, with one order of entry for all pods, or one for each profile."""

    def __init__(
        self,
        key: Callable[[PodEntry[EventT]], SortKey],
        heap: LazyHeap[PodEntry[EventT]],
        *,
        by_profile: bool = False,
    ) -> None:
        super().__init__(key, heap)
        self._by_profile = by_profile
        self._orders: dict[str, EntryOrder[EventT]] = {}
        self._entry_numbers = count(1)

    def order_of(self, entry: PodEntry[EventT]) -> EntryOrder[EventT]:
        """Return the order that contains a pod: that of its profile, if leases are by profile."""
        profile = entry.facts.scheduler_name if self._by_profile else ""
        found = self._orders.get(profile)
        if found is None:
            found = self._orders[profile] = EntryOrder(self.heap, self._entry_numbers)
        return found

    def put(self, entries: Entries[EventT]) -> None:
        super().put(entries)
        for order, same_order in groupby(entries, self.order_of):
            order.append(same_order)

    def change(self, entry: PodEntry[EventT], facts: PodFacts) -> None:
        """Change the facts of a pod in activeQ.

        The pod keeps its position in the order of entry, unless its new profile has another order.
        """
        order = self.order_of(entry)
        self.hide(entry)
        entry.facts = facts
        self.show(entry)
        if self.order_of(entry) is not order:
            self.order_of(entry).append((entry,))

    def drop_departed(self) -> None:
        """Free the memory of pods at the head of each order that left activeQ."""
        for order in self._orders.values():
            # `oldest` drops them on its way.
            order.oldest()


class PodsByReason(PodHeap[EventT]):
    """Heap that also groups pods by `WaitReason`, so that hints run once for each group."""

    def __init__(self, key: Callable[[PodEntry[EventT]], SortKey]) -> None:
        super().__init__(key)
        # By reason, then by UID.
        self._groups: dict[WaitReason, dict[str, PodEntry[EventT]]] = {}
        self._reason_of: dict[str, WaitReason] = {}

    def put(self, entries: Entries[EventT]) -> None:
        super().put(entries)
        for entry in entries:
            reason = (entry.gating_plugin, entry.rejected_by, entry.pending, id(entry.facts))
            self._reason_of[entry.uid] = reason
            self._groups.setdefault(reason, {})[entry.uid] = entry

    def remove(self, entries: Entries[EventT]) -> None:
        super().remove(entries)
        for entry in entries:
            reason = self._reason_of.pop(entry.uid)
            del self._groups[reason][entry.uid]
            if not self._groups[reason]:
                del self._groups[reason]

    def groups(self) -> list[list[PodEntry[EventT]]]:
        """Return the groups, none of them empty; pods are in the order in which they were put."""
        return [[*pods.values()] for pods in self._groups.values()]


class BackoffQ(Generic[EventT]):
    """backoffQ: pods that plugins rejected, and separately pods whose attempt failed.

    Rejected pods whose backoff ends in one window are ordered by QueueSort. The first of them may
    be leased before its backoff ends, if activeQ is empty (SchedulerPopFromBackoffQ). Pods whose
    attempt failed always wait: their backoff limits the load on the component that failed.
    """

    def __init__(
        self,
        sort: Callable[[PodEntry[EventT]], SortKey],
        heap: LazyHeap[PodEntry[EventT]] | None = None,
    ) -> None:
        self.rejected: PodHeap[EventT] = PodHeap(
            lambda pod: (pod.backoff_until_s, *sort(pod)), heap
        )
        self.failed: PodHeap[EventT] = PodHeap(lambda pod: (pod.backoff_until_s,))

    def __len__(self) -> int:
        return len(self.rejected.heap) + len(self.failed.heap)

    def put(self, entries: Entries[EventT]) -> None:
        for entry in entries:
            (self.rejected if entry.rejected_by else self.failed).put((entry,))

    def remove(self, entries: Entries[EventT]) -> None:
        for entry in entries:
            # Not by `rejected_by`, which `QueueCore` clears before it moves a leased pod.
            (self.rejected if entry.uid in self.rejected.heap else self.failed).remove((entry,))

    def first(self) -> PodEntry[EventT] | None:
        """Return the pod whose backoff ends first; None if there is none."""
        firsts = (self.rejected.heap.first(), self.failed.heap.first())
        found = (pod for pod in firsts if pod)
        return min(found, key=lambda pod: pod.backoff_until_s, default=None)

    def ordered(self) -> list[PodEntry[EventT]]:
        """Return all pods in order: those that plugins rejected, then the others."""
        return [*self.rejected.heap.ordered(), *self.failed.heap.ordered()]


@dataclass(slots=True, eq=False)
class Lease(Generic[EventT]):
    """Pods leased to one scheduler.

    first_event: number of the first cluster event after the lease began. open: pods in flight, by
    UID. closed: UID → event that the owner reported, or None if the pod left the lease otherwise.
    """

    lease_id: int
    owner: str
    epoch: int
    deadline_s: float
    first_event: int
    open: dict[str, PodEntry[EventT]] = field(default_factory=dict)
    closed: dict[str, QueueEvent | None] = field(default_factory=dict)


class InFlight(Generic[EventT]):
    """The leases, and the log of events since the oldest of them began.

    No event is lost between lease and requeue (inFlightEvents of upstream's active_queue.go, with
    one number for each lease, `Lease.first_event`, instead of one list element for each pod). A
    full log is replaced by one event (the result of `any_of`), which at worst causes a needless
    retry.
    """

    def __init__(self, max_events: int, any_of: AnyOf[EventT]) -> None:
        assert max_events >= 1, "the event log needs room for one entry"
        self._max_events, self._any_of = max_events, any_of
        self.leases: dict[int, Lease[EventT]] = {}
        self._log: list[EventT | None] = []
        # The number of the first logged event; events are numbered from 0.
        self._log_first = 0
        self._last_lease_id = 0

    def __len__(self) -> int:
        return sum(len(lease.open) for lease in self.leases.values())

    def __iter__(self) -> Iterator[PodEntry[EventT]]:
        return (entry for lease in self.leases.values() for entry in lease.open.values())

    @property
    def event_count(self) -> int:
        return len(self._log)

    def begin(self, owner: str, epoch: int, deadline_s: float) -> Lease[EventT]:
        """Add and return a new, empty lease."""
        self._last_lease_id += 1
        next_event = self._log_first + len(self._log)
        lease: Lease[EventT] = Lease(self._last_lease_id, owner, epoch, deadline_s, next_event)
        self.leases[lease.lease_id] = lease
        return lease

    def put(self, entries: Entries[EventT]) -> None:
        for lease_id, leased in groupby(entries, _LEASE_ID):
            self.leases[lease_id].open |= {entry.uid: entry for entry in leased}

    def remove(self, entries: Entries[EventT]) -> None:
        for lease_id, leased in groupby(entries, _LEASE_ID):
            lease = self.leases[lease_id]
            uids = [entry.uid for entry in leased]
            for uid in uids:
                del lease.open[uid]
            # For reported pods, `QueueCore` then replaces None by the event.
            lease.closed |= dict.fromkeys(uids)
            if not lease.open:
                del self.leases[lease_id]
                self._prune()

    def record(self, event: EventT | None) -> None:
        """Log an event for the pods that are in flight now."""
        if not self.leases:
            return
        if len(self._log) >= self._max_events:
            merged = self._any_of((*self._log, event))
            # It has the number of the newest event, so that every lease reads it.
            self._log_first += len(self._log)
            self._log = [merged]
            return
        self._log.append(event)

    def events_since(self, lease: Lease[EventT]) -> list[EventT | None]:
        """Return the events since the lease began."""
        return self._log[max(0, lease.first_event - self._log_first) :]

    def _prune(self) -> None:
        """Drop the events that are older than all leases."""
        if not self.leases:
            self._log_first += len(self._log)
            self._log = []
            return
        oldest = min(lease.first_event for lease in self.leases.values())
        if oldest > self._log_first:
            del self._log[: oldest - self._log_first]
            self._log_first = oldest

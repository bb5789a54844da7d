"""The places a pod can be in. Each has `put` and `take`; a pod is in one place at a time.

Pods come and go together where they were told of together: what follows from each is found at once.
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
from roadstead.queue.pods import AnyOf, EventT, PodEntry, PodEvent, PodState

WaitReason = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""(gating plugin, rejecting plugins, pending plugins, id of the facts)."""

_LEASE_ID = attrgetter("lease_id")

SLACK = 1024
"""Entries that left and are still in a list of who came when, before it is made anew."""


Entries = Sequence[PodEntry[EventT]]
"""Pods that come or go together, each there once."""


class Place(Protocol[EventT]):
    """Where entries are put and taken from."""

    def put(self, entries: Entries[EventT]) -> None: ...

    def take(self, entries: Entries[EventT]) -> None: ...


class PodHeap(Generic[EventT]):
    """A place ordered by a key."""

    def __init__(
        self,
        key: Callable[[PodEntry[EventT]], SortKey],
        heap: LazyHeap[PodEntry[EventT]] | None = None,
    ) -> None:
        self._key = key
        self.heap: LazyHeap[PodEntry[EventT]] = LazyHeap() if heap is None else heap

    def put(self, entries: Entries[EventT]) -> None:
        for key, alike in groupby(entries, self._key):
            self.heap.put_line(key, [(each.uid, each.seq, each) for each in alike])

    def take(self, entries: Entries[EventT]) -> None:
        self.heap.take_all([each.uid for each in entries])

    def hold(self, entry: PodEntry[EventT]) -> None:
        """Looks past an entry that stays here, until `release`."""
        self.heap.take(entry.uid)

    def release(self, entry: PodEntry[EventT]) -> None:
        self.heap.put(entry.uid, self._key(entry), entry.seq, entry)


class Order(Generic[EventT]):
    """In which order pods came to activeQ, and how often those that are there were passed.

    passes: how many pods that are tried again were leased while another one had waited longer.
    numbers: of no two orders the same, so that a pod which changes its profile is in one alone.
    """

    def __init__(self, heap: LazyHeap[PodEntry[EventT]], numbers: Iterator[int]) -> None:
        self.passes = 0
        self._heap = heap
        self._numbers = numbers
        self._entries: deque[tuple[int, PodEntry[EventT]]] = deque()

    def came(self, entries: Iterable[PodEntry[EventT]]) -> None:
        came = list(zip(self._numbers, entries, strict=False))
        for number, entry in came:
            entry.entered, entry.passes_before = number, self.passes
        self._entries += came
        if len(self._entries) > 2 * len(self._heap) + SLACK:
            self._entries = deque(each for each in self._entries if self._is_here(*each))

    def _is_here(self, entered: int, entry: PodEntry[EventT]) -> bool:
        # A pod that was deleted and came again has another entry, and is in the heap by its UID.
        is_last = entry.entered == entered and entry.state is PodState.ACTIVE
        return is_last and entry.uid in self._heap

    def longest(self) -> PodEntry[EventT] | None:
        """Who waits longest; None where nobody waits."""
        while self._entries and not self._is_here(*self._entries[0]):
            self._entries.popleft()
        return self._entries[0][1] if self._entries else None

    def passed(self, entry: PodEntry[EventT]) -> int:
        """How often a pod that is here was passed by pods that are tried again, at most."""
        return self.passes - entry.passes_before

    def back(self, entry: PodEntry[EventT], max_passed: int) -> None:
        """It was looked past, which does not count beyond the bound."""
        entry.passes_before = max(entry.passes_before, self.passes - max_passed)
        if not self._entries or self._entries[0][0] > entry.entered:
            # It was dropped from the order meanwhile.
            self._entries.appendleft((entry.entered, entry))


class ActiveQ(PodHeap[EventT]):
    """activeQ, with the order in which pods came: of all, or of each profile's."""

    def __init__(
        self,
        key: Callable[[PodEntry[EventT]], SortKey],
        heap: LazyHeap[PodEntry[EventT]],
        *,
        by_profile: bool = False,
    ) -> None:
        super().__init__(key, heap)
        self._by_profile = by_profile
        self._orders: dict[str, Order[EventT]] = {}
        self._numbers = count(1)

    def order_of(self, entry: PodEntry[EventT]) -> Order[EventT]:
        """The order among those with whom a pod is leased."""
        profile = entry.facts.scheduler_name if self._by_profile else ""
        found = self._orders.get(profile)
        if found is None:
            found = self._orders[profile] = Order(self.heap, self._numbers)
        return found

    def put(self, entries: Entries[EventT]) -> None:
        super().put(entries)
        for order, alike in groupby(entries, self.order_of):
            order.came(alike)

    def change(self, entry: PodEntry[EventT], facts: PodFacts) -> None:
        """Give a pod that is here other facts; it keeps its turn, unless it changes the profile."""
        order = self.order_of(entry)
        self.hold(entry)
        entry.facts = facts
        self.release(entry)
        if self.order_of(entry) is not order:
            self.order_of(entry).came((entry,))

    def forget_gone(self) -> None:
        """Lets go of pods that left; where all go as they came, none is kept any longer."""
        for order in self._orders.values():
            order.longest()


class PodsByReason(PodHeap[EventT]):
    """A heap that also knows which pods are alike: same facts object, same plugins said no."""

    def __init__(self, key: Callable[[PodEntry[EventT]], SortKey]) -> None:
        super().__init__(key)
        self._classes: dict[WaitReason, dict[str, PodEntry[EventT]]] = {}
        self._class_of: dict[str, WaitReason] = {}

    def put(self, entries: Entries[EventT]) -> None:
        super().put(entries)
        for entry in entries:
            key = (entry.gating_plugin, entry.rejected_by, entry.pending, id(entry.facts))
            self._class_of[entry.uid] = key
            self._classes.setdefault(key, {})[entry.uid] = entry

    def take(self, entries: Entries[EventT]) -> None:
        super().take(entries)
        for entry in entries:
            key = self._class_of.pop(entry.uid)
            del self._classes[key][entry.uid]
            if not self._classes[key]:
                del self._classes[key]

    def classes(self) -> list[list[PodEntry[EventT]]]:
        """The pods by class, each class in order of arrival here; none is empty."""
        return [[*pods.values()] for pods in self._classes.values()]


class BackoffQ(Generic[EventT]):
    """backoffQ: pods that plugins rejected, and apart from them those whose attempt failed.

    Of the first, those whose backoff ends in one window are ordered by QueueSort, and the first may
    be popped while it still waits, if nothing else is to be done (SchedulerPopFromBackoffQ). The
    others wait whatever happens: their backoff is there to spare what failed.
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

    def take(self, entries: Entries[EventT]) -> None:
        for entry in entries:
            (self.rejected if entry.uid in self.rejected.heap else self.failed).take((entry,))

    def first(self) -> PodEntry[EventT] | None:
        """The pod whose backoff is over first."""
        ends = (self.rejected.heap.first(), self.failed.heap.first())
        return min((e for e in ends if e), key=lambda pod: pod.backoff_until_s, default=None)

    def ordered(self) -> list[PodEntry[EventT]]:
        """All pods: those that plugins rejected, then the others."""
        return [*self.rejected.heap.ordered(), *self.failed.heap.ordered()]


@dataclass(slots=True, eq=False)
class Lease(Generic[EventT]):
    """Pods leased out.

    first_event: number of the first cluster event that came after the lease.
    closed: uid -> what its owner reported, or None where the pod left otherwise.
    """

    lease_id: int
    owner: str
    epoch: int
    deadline_s: float
    first_event: int
    open: dict[str, PodEntry[EventT]] = field(default_factory=dict)
    closed: dict[str, PodEvent | None] = field(default_factory=dict)


class InFlight(Generic[EventT]):
    """The leases, and the events seen since the oldest of them began.

    No event is lost between pop and requeue (inFlightEvents of upstream's active_queue.go, with
    one cursor per lease instead of one list element per pod). The log is bounded: when it is full
    it is replaced by one event for all of them, which at worst costs a needless retry.
    """

    def __init__(self, max_events: int, any_of: AnyOf[EventT]) -> None:
        assert max_events >= 1, "the event log needs room for one entry"
        self._max_events, self._any_of = max_events, any_of
        self.leases: dict[int, Lease[EventT]] = {}
        self._log: list[EventT | None] = []
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
        """A new, empty lease."""
        self._last_lease_id += 1
        next_event = self._log_first + len(self._log)
        lease: Lease[EventT] = Lease(self._last_lease_id, owner, epoch, deadline_s, next_event)
        self.leases[lease.lease_id] = lease
        return lease

    def put(self, entries: Entries[EventT]) -> None:
        for lease_id, leased in groupby(entries, _LEASE_ID):
            self.leases[lease_id].open |= {entry.uid: entry for entry in leased}

    def take(self, entries: Entries[EventT]) -> None:
        for lease_id, leased in groupby(entries, _LEASE_ID):
            lease = self.leases[lease_id]
            uids = [entry.uid for entry in leased]
            for uid in uids:
                del lease.open[uid]
            lease.closed |= dict.fromkeys(uids)
            if not lease.open:
                del self.leases[lease_id]
                self._prune()

    def record(self, event: EventT | None) -> None:
        """Keep an event for the pods that are in flight now."""
        if not self.leases:
            return
        if len(self._log) >= self._max_events:
            whole = self._any_of((*self._log, event))
            self._log_first += len(self._log)
            self._log = [whole]
            return
        self._log.append(event)

    def events_since(self, lease: Lease[EventT]) -> list[EventT | None]:
        """The events that came after the lease began."""
        return self._log[max(0, lease.first_event - self._log_first) :]

    def _prune(self) -> None:
        if not self.leases:
            self._log_first += len(self._log)
            self._log = []
            return
        oldest = min(lease.first_event for lease in self.leases.values())
        if oldest > self._log_first:
            del self._log[: oldest - self._log_first]
            self._log_first = oldest

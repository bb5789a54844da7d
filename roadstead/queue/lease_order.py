"""Which pod is leased next: by QueueSort, unless it would starve another one or part a gang.

Starvation (I11): a pod in activeQ is passed by pods that are tried for the first time as QueueSort
says; each of them passes it once. Pods that are tried again (events woke them, they lost races)
pass it `max_passed` times in all; then whoever waits longest goes first.

Gangs: a pod of which others of its gang are leased to another scheduler is not leased meanwhile.
Each would wait for the others at its own scheduler until both give up, and so on for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Generic

from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.queue.places import Entries
from roadstead.queue.pods import EventT, PodEntry, PodState
from roadstead.queue.queue_store import QueueStore


class LeaseOrder(Generic[EventT]):
    """Picks pods of a store, for one lease at a time."""

    def __init__(self, store: QueueStore[EventT], max_passed: int) -> None:
        self._store = store
        self._max_passed = max_passed

    def picks(self, owner: str, max_pods: int, profile: str) -> Iterator[Entries[EventT]]:
        """Up to `max_pods` pods, some at a time: they must be leased before the next are asked for.

        profile: whose pods only; "" for all.
        """
        elsewhere: set[GroupKey] | None = None
        held: list[PodEntry[EventT]] = []
        picked = 0
        try:
            while picked < max_pods and (next_ones := self._next(max_pods - picked, profile)):
                group = group_key(next_ones[0].facts)
                if group is not None:
                    entry = next_ones[0]
                    elsewhere = self._groups_elsewhere(owner) if elsewhere is None else elsewhere
                    if group in elsewhere:
                        self._store.heap_of(entry).hold(entry)
                        held.append(entry)
                        continue
                self._note(next_ones[0])
                picked += len(next_ones)
                yield next_ones
        finally:
            for entry in sorted(held, key=lambda each: each.entered, reverse=True):
                self._store.heap_of(entry).release(entry)
                if entry.state is PodState.ACTIVE:
                    self._store.active.order_of(entry).back(entry, self._max_passed)
            self._store.active.forget_gone()

    def _next(self, most: int, profile: str) -> list[PodEntry[EventT]]:
        """Those that come first: one, or several that are tried for the first time."""
        firsts = self._store.next_to_lease(profile)
        first = next(firsts, None)
        if first is None:
            return []
        if first.state is PodState.ACTIVE and not first.attempts:
            return [first, *islice(_alike(first, firsts), most - 1)]
        if not self._is_retry(first):
            return [first]
        order = self._store.active.order_of(first)
        longest = order.longest()
        if longest is None or order.passed(longest) < self._max_passed:
            return [first]
        return [longest]

    def _note(self, entry: PodEntry[EventT]) -> None:
        if self._is_retry(entry):
            order = self._store.active.order_of(entry)
            order.passes += entry is not order.longest()

    @staticmethod
    def _is_retry(entry: PodEntry[EventT]) -> bool:
        """In activeQ, and leased before: backoffQ is served only while activeQ is empty."""
        return entry.attempts > 0 and entry.state is PodState.ACTIVE

    def _groups_elsewhere(self, owner: str) -> set[GroupKey]:
        """The gangs of which pods are leased to other schedulers."""
        leases = self._store.in_flight.leases.values()
        leased = (pod for lease in leases if lease.owner != owner for pod in lease.open.values())
        return {group for pod in leased if (group := group_key(pod.facts)) is not None}

    def validate(self) -> None:
        """I11: no pod of activeQ was passed more often than it may be."""
        for entry in self._store.active.heap:
            passed = self._store.active.order_of(entry).passed(entry)
            assert passed <= self._max_passed, f"{entry.uid} was passed {passed} times"


def _alike(
    first: PodEntry[EventT], others: Iterator[PodEntry[EventT]]
) -> Iterator[PodEntry[EventT]]:
    """The others that come with one that was never leased: as long as they are such, of no gang."""
    facts = first.facts
    if group_key(facts) is not None:
        return
    for entry in others:
        if entry.attempts or (entry.facts is not facts and group_key(entry.facts) is not None):
            return
        facts = entry.facts
        yield entry

"""LeaseOrder: the next pod to lease, by QueueSort, without starvation and without divided gangs.

Starvation (I11 of docs/invariants.md): a pod that is tried for the first time is leased before a
pod that has waited longer (bypasses it) if QueueSort ranks it higher. Pods that are tried again,
after an event or a lost race, bypass another pod at most `max_bypasses` times in all; then the pod
that has waited longest is leased first.

Gangs: while pods of a gang are leased to one scheduler, its other pods are not leased to another.
They would wait for each other at Permit on two schedulers until both time out, again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Generic

from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.queue.containers import Entries
from roadstead.queue.pods import EventT, PodEntry, QueueState
from roadstead.queue.queue_store import QueueStore


class LeaseOrder(Generic[EventT]):
    """Pick pods of a store, for one lease at a time."""

    def __init__(self, store: QueueStore[EventT], max_bypasses: int) -> None:
        self._store = store
        self._max_bypasses = max_bypasses

    def picks(self, owner: str, max_pods: int, profile: str) -> Iterator[Entries[EventT]]:
        """Yield up to `max_pods` pods in groups; lease each group before requesting the next one.

        profile: whose pods; "" for all.
        """
        gangs_elsewhere: set[GroupKey] | None = None
        skipped: list[PodEntry[EventT]] = []
        picked = 0
        try:
            while picked < max_pods and (entries := self._next(max_pods - picked, profile)):
                entry = entries[0]
                group = group_key(entry.facts)
                if group is not None:
                    gangs_elsewhere = (
                        self._groups_elsewhere(owner)
                        if gangs_elsewhere is None
                        else gangs_elsewhere
                    )
                    if group in gangs_elsewhere:
                        # Hide the pod until the end of the lease, so that the next one is found.
                        self._store.heap_of(entry).hide(entry)
                        skipped.append(entry)
                        continue
                self._count_bypass(entry)
                picked += len(entries)
                yield entries
        finally:
            # In reverse order of entry: `restore` puts a pod before those that entered later.
            for entry in sorted(skipped, key=lambda each: each.entered, reverse=True):
                self._store.heap_of(entry).show(entry)
                if entry.state is QueueState.ACTIVE:
                    self._store.active.order_of(entry).restore(entry, self._max_bypasses)
            self._store.active.drop_departed()

    def _next(self, limit: int, profile: str) -> list[PodEntry[EventT]]:
        """Return the first pod, or several consecutive ones that are tried for the first time."""
        firsts = self._store.next_to_lease(profile)
        first = next(firsts, None)
        if first is None:
            return []
        if first.state is QueueState.ACTIVE and not first.attempts:
            return [first, *islice(_similar(first, firsts), limit - 1)]
        if not self._is_retry(first):
            return [first]
        # A retried pod is first only while the pod that has waited longest may be bypassed (I11).
        order = self._store.active.order_of(first)
        oldest = order.oldest()
        if oldest is None or order.bypasses_of(oldest) < self._max_bypasses:
            return [first]
        return [oldest]

    def _count_bypass(self, entry: PodEntry[EventT]) -> None:
        """Count the lease of a retried pod while another pod has waited longer."""
        if self._is_retry(entry):
            order = self._store.active.order_of(entry)
            order.bypasses += entry is not order.oldest()

    @staticmethod
    def _is_retry(entry: PodEntry[EventT]) -> bool:
        """Whether the pod is in activeQ and was leased before.

        (A pod leased from backoffQ bypasses none, because activeQ is empty then.)
        """
        return entry.attempts > 0 and entry.state is QueueState.ACTIVE

    def _groups_elsewhere(self, owner: str) -> set[GroupKey]:
        """Return the gangs with pods that are leased to other schedulers."""
        leases = self._store.in_flight.leases.values()
        leased = (pod for lease in leases if lease.owner != owner for pod in lease.open.values())
        return {group for pod in leased if (group := group_key(pod.facts)) is not None}

    def validate(self) -> None:
        """Check that no pod of activeQ was bypassed more than `max_bypasses` times (I11)."""
        for entry in self._store.active.heap:
            bypasses = self._store.active.order_of(entry).bypasses_of(entry)
            assert bypasses <= self._max_bypasses, f"{entry.uid} was bypassed {bypasses} times"


def _similar(
    first: PodEntry[EventT], others: Iterator[PodEntry[EventT]]
) -> Iterator[PodEntry[EventT]]:
    """Yield `others` until one was leased before or is in a gang; none if `first` is in a gang."""
    facts = first.facts
    if group_key(facts) is not None:
        return
    for entry in others:
        if entry.attempts or (entry.facts is not facts and group_key(entry.facts) is not None):
            return
        facts = entry.facts
        yield entry

"""Which pod is lent next: by QueueSort, unless it would starve another one or part a gang.

Starvation (I11): a pod in activeQ is passed by pods that are tried for the first time as QueueSort
says; each of them passes it once. Pods that are tried again (events woke them, they lost races)
pass it `max_passed` times in all; then whoever waits longest goes first.

Gangs: a pod of which others of its gang are lent to another scheduler is not lent meanwhile. Each
would wait for the others at its own scheduler until both give up, and so on for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Generic

from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.queue.board import Board
from roadstead.queue.places import Entries
from roadstead.queue.pods import EventT, PodEntry, PodState


class Lending(Generic[EventT]):
    """Picks pods of a board, for one lease at a time."""

    def __init__(self, board: Board[EventT], max_passed: int) -> None:
        self._board = board
        self._max_passed = max_passed

    def picks(self, owner: str, max_pods: int, profile: str) -> Iterator[Entries[EventT]]:
        """Up to `max_pods` pods, some at a time: they must be lent before the next are asked for.

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
                        self._board.shelf_of(entry).hold(entry)
                        held.append(entry)
                        continue
                self._note(next_ones[0])
                picked += len(next_ones)
                yield next_ones
        finally:
            for entry in sorted(held, key=lambda each: each.entered, reverse=True):
                self._board.shelf_of(entry).release(entry)
                if entry.state is PodState.ACTIVE:
                    self._board.active.order_of(entry).back(entry, self._max_passed)
            self._board.active.forget_gone()

    def _next(self, most: int, profile: str) -> list[PodEntry[EventT]]:
        """Those that come first: one, or several that are tried for the first time."""
        firsts = self._board.next_to_lend(profile)
        first = next(firsts, None)
        if first is None:
            return []
        if first.state is PodState.ACTIVE and not first.attempts:
            return [first, *islice(_alike(first, firsts), most - 1)]
        if not self._is_retry(first):
            return [first]
        order = self._board.active.order_of(first)
        longest = order.longest()
        if longest is None or order.passed(longest) < self._max_passed:
            return [first]
        return [longest]

    def _note(self, entry: PodEntry[EventT]) -> None:
        if self._is_retry(entry):
            order = self._board.active.order_of(entry)
            order.passes += entry is not order.longest()

    @staticmethod
    def _is_retry(entry: PodEntry[EventT]) -> bool:
        """In activeQ, and lent before: pods of backoffQ are lent only while activeQ is empty."""
        return entry.attempts > 0 and entry.state is PodState.ACTIVE

    def _groups_elsewhere(self, owner: str) -> set[GroupKey]:
        """The gangs of which pods are lent to other schedulers."""
        leases = self._board.in_flight.leases.values()
        lent = (pod for lease in leases if lease.owner != owner for pod in lease.open.values())
        return {group for pod in lent if (group := group_key(pod.facts)) is not None}

    def validate(self) -> None:
        """I11: no pod of activeQ was passed more often than it may be."""
        for entry in self._board.active.heap:
            passed = self._board.active.order_of(entry).passed(entry)
            assert passed <= self._max_passed, f"{entry.uid} was passed {passed} times"


def _alike(
    first: PodEntry[EventT], others: Iterator[PodEntry[EventT]]
) -> Iterator[PodEntry[EventT]]:
    """The others that come with one that was never lent: as long as they are such, of no gang."""
    facts = first.facts
    if group_key(facts) is not None:
        return
    for entry in others:
        if entry.attempts or (entry.facts is not facts and group_key(entry.facts) is not None):
            return
        facts = entry.facts
        yield entry

"""Nominator: an index of the queue's nominated pods by node.

The nomination itself is part of the pod's facts, so that the scheduler that leases the pod has it.
The other schedulers receive it from the cache.
Upstream: pkg/scheduler/backend/queue/nominator.go and framework/preemption (prepareCandidate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Generic

from roadstead.facts.pod import PodFacts
from roadstead.queue.pods import EventT, PodEntry, QueueState

MAX_FACTS_KNOWN = 4096

MAX_GONE = 1024
"""Pods that left are dropped when the index has this many more than twice the queue's pods."""


class Nominator(Generic[EventT]):
    """Pods of the queue by nominated node. queued: all pods of the queue by UID, kept current."""

    def __init__(self, queued: Mapping[str, PodEntry[EventT]]) -> None:
        self._queued = queued
        self._node_of: dict[str, str] = {}
        self._uids_on: dict[str, set[str]] = {}
        self._facts: dict[tuple[int, str], tuple[PodFacts, PodFacts]] = {}

    def note(self, uid: str, node_name: str) -> None:
        """Record the nominated node in a pod's facts; "" for none."""
        self._forget(uid)
        if node_name:
            self._node_of[uid] = node_name
            self._uids_on.setdefault(node_name, set()).add(uid)
        if len(self._node_of) > MAX_GONE + 2 * len(self._queued):
            # Pods leave the queue without a call here: drop them when there are many.
            for gone in self._node_of.keys() - self._queued.keys():
                self._forget(gone)

    def nominated_below(self, node_name: str, priority: int) -> list[PodEntry[EventT]]:
        """Return the pods below a priority that are nominated to a node."""
        return [each for each in self.nominated(node_name) if each.facts.priority < priority]

    def nominated(self, node_name: str) -> tuple[PodEntry[EventT], ...]:
        """Return the pods nominated to a node, in order of arrival; no gated ones."""
        found = self._by_arrival(self._uids_on.get(node_name, ()))
        return tuple(entry for entry in found if entry.facts.nominated_node_name == node_name)

    def all(self) -> list[PodEntry[EventT]]:
        """Return all pods with a nomination, in order of arrival; no gated ones."""
        return self._by_arrival(self._node_of)

    def _by_arrival(self, uids: Iterable[str]) -> list[PodEntry[EventT]]:
        entries = (self._queued.get(uid) for uid in uids)
        named = [
            entry
            for entry in entries
            if entry is not None
            and entry.facts.nominated_node_name
            and entry.state is not QueueState.GATED
        ]
        return sorted(named, key=lambda entry: entry.seq)

    def _forget(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            self._uids_on[node_name].remove(uid)
            if not self._uids_on[node_name]:
                del self._uids_on[node_name]

    def facts_for(self, facts: PodFacts, node_name: str) -> PodFacts:
        """Return facts with another nomination; one object for equal input, so classes stay few."""
        if facts.nominated_node_name == node_name:
            return facts
        known = self._facts.get((id(facts), node_name))
        if known is not None and known[0] is facts:
            return known[1]
        if len(self._facts) >= MAX_FACTS_KNOWN:
            self._facts.clear()
        changed = replace(facts, nominated_node_name=node_name)
        self._facts[id(facts), node_name] = facts, changed
        return changed

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

MAX_CACHED_FACTS = 4096
"""Maximum number of results that `facts_for` caches; a full cache is cleared."""

MAX_GONE = 1024
"""The index may hold 2 × (pods in the queue) + MAX_GONE pods; beyond that, gone pods (which left
the queue) are removed from it."""


class Nominator(Generic[EventT]):
    """Pods of the queue by nominated node. queued: the pods of the queue by UID, kept current."""

    def __init__(self, queued: Mapping[str, PodEntry[EventT]]) -> None:
        self._queued = queued
        self._node_of: dict[str, str] = {}
        self._uids_on: dict[str, set[str]] = {}
        # By id of the given facts, and node: the given facts, and those with this nomination.
        self._cached_facts: dict[tuple[int, str], tuple[PodFacts, PodFacts]] = {}

    def index(self, uid: str, node_name: str) -> None:
        """Index a pod under the node that its facts nominate; "" removes it."""
        self._remove(uid)
        if node_name:
            self._node_of[uid] = node_name
            self._uids_on.setdefault(node_name, set()).add(uid)
        if len(self._node_of) > MAX_GONE + 2 * len(self._queued):
            # Pods leave the queue without a call here: drop them when there are many.
            for gone in self._node_of.keys() - self._queued.keys():
                self._remove(gone)

    def nominated_below(self, node_name: str, priority: int) -> list[PodEntry[EventT]]:
        """Return the pods with less than a priority that are nominated to a node."""
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
        nominated = [
            entry
            for entry in entries
            if entry is not None
            and entry.facts.nominated_node_name
            and entry.state is not QueueState.GATED
        ]
        return sorted(nominated, key=lambda entry: entry.seq)

    def _remove(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            self._uids_on[node_name].remove(uid)
            if not self._uids_on[node_name]:
                del self._uids_on[node_name]

    def facts_for(self, facts: PodFacts, node_name: str) -> PodFacts:
        """Return facts with another nomination.

        The same facts object and node give the same result object while it is cached, so that the
        pods of one class stay one class.
        """
        if facts.nominated_node_name == node_name:
            return facts
        cached = self._cached_facts.get((id(facts), node_name))
        if cached is not None and cached[0] is facts:
            return cached[1]
        if len(self._cached_facts) >= MAX_CACHED_FACTS:
            self._cached_facts.clear()
        changed = replace(facts, nominated_node_name=node_name)
        self._cached_facts[id(facts), node_name] = facts, changed
        return changed

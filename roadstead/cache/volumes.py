"""Volumes of pods on their way: the cache's part.

The cache binds a pod's claims when it assumes the pod, since it sees all schedulers. The changes go
to all that hold nodes, in the stream of deltas, and back to the scheduler with the answer, numbered
from 0; the bindings themselves go with the pod to the binder, which checks them against its own
state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.storage import StorageFacts
from roadstead.storage import Binding, StorageChange, StorageState, VolumeLedger
from roadstead.storage.news import StorageNews


class CacheVolumes:
    """Claims and volumes as assumed. log: every change so far, in order.

    facts: the storage of the cluster. binding: scheduler names of the profiles whose pods bind
    claims.
    """

    def __init__(self, facts: StorageFacts, binding: Collection[str]) -> None:
        self.log: list[StorageChange] = []
        self.ledger = VolumeLedger(StorageState(facts))
        self._binding = binding

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts | None) -> tuple[Binding, ...] | None:
        """The bindings of a pod that is assumed on a node; None where there are none to be had."""
        if not pod.volumes or pod.scheduler_name not in self._binding or node is None:
            return ()
        reserved = self.ledger.assume(uid, pod, node)
        if reserved is None:
            return None
        self.log += reserved.changes
        return reserved.bindings

    def forget(self, uids: Sequence[str]) -> None:
        """Pods are not placed after all."""
        for uid in uids:
            self.log += self.ledger.forget(uid)

    def take(self, changes: Sequence[StorageChange]) -> None:
        """What commits changed before this cache began."""
        self.log += changes
        for change in changes:
            self.ledger.storage.apply(change)

    def news(self, known: int) -> StorageNews:
        """What changed after the first `known` changes."""
        return StorageNews(known, tuple(self.log[known:]))

"""CacheVolumes: claims and volumes as bound by assumed pods.

The cache binds a pod's claims when it assumes the pod, because all schedulers assume there. The
changes, numbered from 0, are sent to all schedulers and workers in the stream of deltas, and to the
scheduler in the answer. The bindings are sent with the pod to the binder, which checks them against
its own state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.storage import StorageFacts
from roadstead.storage import AssumedClaims, Binding, StorageChange, StorageState
from roadstead.storage.news import StorageNews


class CacheVolumes:
    """Claims and volumes, including bindings of assumed pods. log: all changes, in order.

    facts: the storage of the cluster. binding: scheduler names of the profiles whose pods bind
    claims.
    """

    def __init__(self, facts: StorageFacts, binding: Collection[str]) -> None:
        self.log: list[StorageChange] = []
        self.assumed_claims = AssumedClaims(StorageState(facts))
        self._binding = binding

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts | None) -> tuple[Binding, ...] | None:
        """Bind the claims of a pod on a node; return the bindings, None if that is impossible.

        () without claims to bind, for a profile that binds none, and for an unknown node.
        """
        if not pod.volumes or pod.scheduler_name not in self._binding or node is None:
            return ()
        reserved = self.assumed_claims.assume(uid, pod, node)
        if reserved is None:
            return None
        self.log += reserved.changes
        return reserved.bindings

    def forget(self, uids: Sequence[str]) -> None:
        """Undo the bindings of pods whose assumptions ended."""
        for uid in uids:
            self.log += self.assumed_claims.forget(uid)

    def apply(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes by commits from before this cache was created."""
        self.log += changes
        for change in changes:
            self.assumed_claims.storage.apply(change)

    def news(self, known: int) -> StorageNews:
        """Return the changes after the first `known` ones."""
        return StorageNews(known, tuple(self.log[known:]))

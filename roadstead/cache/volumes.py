"""CacheVolumes: claims and volumes, and claims of devices, as bound by assumed pods.

The cache binds a pod's claims when it assumes the pod, because all schedulers assume there. The
changes, numbered from 0, are sent to all schedulers and workers in the stream of deltas, and to the
scheduler in the answer. The bindings are sent with the pod to the binder, which checks them against
its own state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.storage import AssumedClaims, BindingProfiles, Reserved, StorageChange, StorageState
from roadstead.storage.claim_messages import NumberedStorageChanges

NOTHING_RESERVED = Reserved()


class CacheVolumes:
    """Claims and volumes, including bindings of assumed pods. log: all changes, in order.

    assumed_claims: the claims, with the pods for which they are bound until they are committed.
    storage: the cluster's claims, of which this object is the only writer. binding: the profiles
    whose pods bind claims. awaits_commits: this object replaces that of a lost cache, and `load`
    has not been called yet with the changes of earlier commits.
    """

    def __init__(
        self, storage: StorageState, binding: BindingProfiles, *, awaits_commits: bool = False
    ) -> None:
        self.log: list[StorageChange] = []
        self.awaits_commits = awaits_commits
        # Calls of `release` and `deallocate` from before `load`, in order, which `load` repeats:
        # the commits may have bound these claims. Each is (UIDs of pods that ended, claims).
        self._early: list[tuple[Sequence[str], Sequence[tuple[str, str]]]] = []
        self.assumed_claims = AssumedClaims(storage)
        self._binding = binding

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts | None) -> Reserved | None:
        """Bind the claims of a pod on a node; return what is bound, None if that is impossible.

        Nothing without claims to bind, for a profile that binds none, and for an unknown node.
        """
        pod = self._binding.without_ignored_claims(pod)
        if not pod.may_bind_claims or node is None:
            return NOTHING_RESERVED
        reserved = self.assumed_claims.assume(uid, pod, node)
        if reserved is not None:
            self.log += reserved.changes
        return reserved

    def forget(self, uids: Sequence[str]) -> None:
        """Undo the bindings of pods whose assumptions ended."""
        for uid in uids:
            self.log += self.assumed_claims.forget(uid)

    def confirm(self, uids: Iterable[str]) -> None:
        """Make the bindings of committed pods permanent."""
        for uid in uids:
            self.log += self.assumed_claims.confirm(uid)

    def release(self, uids: Sequence[str]) -> None:
        """Free the claims of devices of pods that ended."""
        if self.awaits_commits:
            self._early.append((tuple(uids), ()))
        self.log += self.assumed_claims.release(uids)

    def deallocate(self, claims: Iterable[tuple[str, str]]) -> None:
        """Deallocate claims of devices, each for a pod."""
        claims = tuple(claims)
        if self.awaits_commits:
            self._early.append(((), claims))
        self.log += self.assumed_claims.deallocate(claims)

    def apply(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes that were made elsewhere."""
        self.log += changes
        for change in changes:
            self.assumed_claims.storage.apply(change)

    def load(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes by commits from before this cache was created; later calls do nothing.

        Bindings of assumed pods are undone: their schedulers were replaced, too, and those that
        they committed are in `changes`. Pods may have ended since the binder sent `changes`.
        """
        early, self._early = self._early, []
        if self.awaits_commits:
            self.awaits_commits = False
            self.forget(self.assumed_claims.holders())
        elif self.log:
            return
        self.apply(changes)
        for uids, claims in early:
            self.release(uids)
            self.deallocate(claims)

    def changes_since(self, known: int) -> NumberedStorageChanges:
        """Return the changes after the first `known` ones."""
        return NumberedStorageChanges(known, tuple(self.log[known:]))

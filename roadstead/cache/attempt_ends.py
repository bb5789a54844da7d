"""AttemptFinisher: ends schedulers' attempts at the cache.

forgotten, expired ──► claims bound only for the attempt are released ──► changes are sent
                  └──► if the pod was deleted meanwhile, the caller reports it to the queue
confirmed ──► the claims stay bound
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.cache.changes import Changes
from roadstead.cache.pods import BinderAnswer, PodOnNode
from roadstead.cache.state import ClusterState
from roadstead.facts.pod import Pod, identity_of


class AttemptFinisher:
    """End attempts, and send the resulting changes."""

    def __init__(self, state: ClusterState, changes: Changes) -> None:
        self._core, self._volumes = state.core, state.volumes
        self._pod_revisions, self._changes = state.pod_revisions, changes

    def forget(self, attempts: Sequence[tuple[str, str]]) -> None:
        """End assumptions, given as (uid, token), and release claims bound only for them."""
        answer = self._core.forget(attempts)
        self._changes.send(answer.deltas)
        # Refused pods are confirmed, or counted for another attempt, so their claims stay bound. A
        # refused pod without a node was deleted while it was assumed: release its claims too.
        still_counted = {
            each.uid for each in answer.refused if self._core.node_of(each.uid) is not None
        }
        self.release_claims([uid for uid, _ in attempts if uid not in still_counted])

    def release_claims(self, uids: Sequence[str]) -> None:
        """Release the claims that were bound only for ended attempts of these pods."""
        # The log has all changes of claims; those made by this call are sent.
        start = len(self._volumes.log)
        self._volumes.forget(uids)
        self._changes.send_storage(self._volumes.log[start:])

    def confirm(self, bound: Mapping[str, str]) -> None:
        """Add pods (uid → node) that are bound; their claims stay bound."""
        placements = [
            PodOnNode(counted.uid, counted.key, counted.facts, node)
            for uid, node in bound.items()
            if (counted := self._core.placement_of(uid))
        ]
        self._changes.send(self._core.confirm(placements))
        self.confirm_claims(bound)

    def confirm_claims(self, uids: Iterable[str]) -> None:
        """Keep the claims of committed pods bound."""
        start = len(self._volumes.log)
        self._volumes.confirm(uids)
        self._changes.send_storage(self._volumes.log[start:])

    def resolve(self, answers: Sequence[BinderAnswer]) -> list[BinderAnswer]:
        """End attempts as the binder answered; return the answers that were not too late."""
        answer = self._core.resolve(answers)
        self._changes.send(answer.deltas)
        late = {each.uid for each in answer.refused}
        applied = [each for each in answers if each.uid not in late]
        start = len(self._volumes.log)
        for each in applied:
            if each.node_name is None:
                self._volumes.forget([each.uid])
            else:
                self._volumes.confirm([each.uid])
        self._changes.send_storage(self._volumes.log[start:])
        return applied

    def of_earlier_epochs(self, owner: str, epoch: int) -> list[tuple[str, str]]:
        """Return (uid, token) of the pods that a scheduler assumed before this epoch."""
        return [
            (each.uid, each.token)
            for each in self._core.unconfirmed()
            if is_of_earlier_epoch(each.token, owner, epoch)
        ]

    def orphaned_claims(self, owner: str, epoch: int) -> list[str]:
        """Return UIDs of removed pods with claims that a scheduler assumed before this epoch.

        `holders` of claims are the assumed pods for which they are bound.
        """
        core = self._core
        return [
            uid
            for uid in self._volumes.assumed_claims.holders()
            if core.node_of(uid) is None and is_of_earlier_epoch(core.token_of(uid), owner, epoch)
        ]

    def end_claims(self, uids: Iterable[str], committed: set[str]) -> None:
        """Release the claims of removed pods, except of those whose claims were all committed.

        committed: keys of claims that commits bound.
        """
        for uid in uids:
            if committed.issuperset(self._volumes.assumed_claims.keys_of(uid)):
                self.confirm_claims([uid])
            else:
                self.release_claims([uid])

    def pod(self, uid: str) -> Pod:
        """Return a pod that is or was counted. KeyError for any other."""
        return identity_of(uid, self._core.key_of(uid)), self._core.facts_of(uid)

    def deleted(self, uids: Iterable[str]) -> list[Pod]:
        """Return the pods that were deleted but are still counted; the queue has removed them."""
        is_gone, node_of = self._pod_revisions.is_gone, self._core.node_of
        return [self.pod(uid) for uid in uids if is_gone(uid) and node_of(uid) is not None]


def is_of_earlier_epoch(token: str, owner: str, epoch: int) -> bool:
    """Whether a scheduler made an attempt before an epoch; tokens are owner/epoch/number."""
    name, _, of_token = token.rpartition("/")[0].rpartition("/")
    return name == owner and of_token.isdigit() and int(of_token) < epoch

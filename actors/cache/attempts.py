"""AttemptEnds: how attempts of schedulers end at the cache, in its core, its claims, its stream.

forgotten, expired ──► claims that the attempt alone held are free ──► changes are streamed
                  └──► the pod was deleted meanwhile: the queue learns of the free room
confirmed ──► the claims stay bound
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.actors.binder.answers import identity_of
from roadstead.actors.cache.stream import ChangeStream
from roadstead.actors.cache.volumes import CacheVolumes
from roadstead.actors.messages import pod_batch
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.messages.recovery import Owner
from roadstead.actors.names import QUEUE
from roadstead.actors.seam import Directory, PatientRef
from roadstead.cache import BinderWord, CacheCore, Placement
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.revisions import Revisions


class AttemptEnds:
    """Ends attempts; every follower is sent what that changes. pods_known: who is gone."""

    def __init__(
        self,
        core: CacheCore,
        volumes: CacheVolumes,
        stream: ChangeStream,
        pods_known: Revisions,
        directory: Directory,
        call_s: float,
    ) -> None:
        self._core, self._volumes, self._stream = core, volumes, stream
        self._pods_known = pods_known
        self._directory, self._call_s = directory, call_s

    def forget(self, attempts: Sequence[tuple[str, str]]) -> None:
        """End assumptions, given as (uid, token), and free the claims that they alone held."""
        answer = self._core.forget(attempts)
        self._stream.send(answer.deltas)
        # One that was deleted while it was assumed is not there, and its claims are free again.
        kept = {each.uid for each in answer.refused if self._core.node_of(each.uid) is not None}
        self.free([uid for uid, _ in attempts if uid not in kept])

    def free(self, uids: Sequence[str]) -> None:
        """Free the claims that ended attempts alone held."""
        known = len(self._volumes.log)
        self._volumes.forget(uids)
        self._stream.send_storage(self._volumes.log[known:])

    def confirm(self, bound: dict[str, str]) -> None:
        """Pods (uid → node) are bound: they are added, and their claims stay."""
        placements = [
            Placement(known.uid, known.key, known.facts, node)
            for uid, node in bound.items()
            if (known := self._core.placement_of(uid))
        ]
        self._stream.send(self._core.confirm(placements))
        for uid in bound:
            self._volumes.ledger.confirm(uid)

    def resolve(self, answers: Sequence[BinderWord]) -> list[BinderWord]:
        """End attempts as the binder answered; the answers that did not come too late."""
        answer = self._core.resolve(answers)
        self._stream.send(answer.deltas)
        late = {each.uid for each in answer.refused}
        applied = [each for each in answers if each.uid not in late]
        known = len(self._volumes.log)
        for each in applied:
            if each.node_name is None:
                self._volumes.forget([each.uid])
            else:
                self._volumes.ledger.confirm(each.uid)
        self._stream.send_storage(self._volumes.log[known:])
        return applied

    def of_earlier_lives(self, owner: Owner) -> list[tuple[str, str]]:
        """(uid, token) of what earlier lives of a scheduler assume."""
        return [
            (each.uid, each.token)
            for each in self._core.on_trial()
            if is_of_earlier_life(each.token, owner)
        ]

    def orphaned_claims(self, owner: Owner) -> list[str]:
        """Pods that went while earlier lives of a scheduler assumed them, and hold claims."""
        core = self._core
        return [
            uid
            for uid in self._volumes.ledger.holders()
            if core.node_of(uid) is None and is_of_earlier_life(core.token_of(uid), owner)
        ]

    def end_claims(self, uids: Iterable[str], committed: set[str]) -> None:
        """Pods are gone: their claims stay bound where commits bound all of them. committed: keys
        of claims."""
        for uid in uids:
            if committed.issuperset(self._volumes.ledger.held(uid)):
                self._volumes.ledger.confirm(uid)
            else:
                self.free([uid])

    def pod(self, uid: str) -> tuple[PodIdentity, PodFacts]:
        """A pod that is counted, or was. KeyError for any other."""
        return identity_of(uid, self._core.key_of(uid)), self._core.facts_of(uid)

    def deleted(self, uids: Iterable[str]) -> list[tuple[PodIdentity, PodFacts]]:
        """Which of these are counted though they are gone: the queue does not know them."""
        is_gone, node_of = self._pods_known.is_gone, self._core.node_of
        return [self.pod(uid) for uid in uids if is_gone(uid) and node_of(uid) is not None]

    async def report_room(self, pods: Sequence[tuple[PodIdentity, PodFacts]]) -> None:
        """Report free room to the queue: no scheduler gives these attempts back."""
        if not pods:
            return
        queue = PatientRef(self._directory.find(QUEUE))
        changes = ClusterChanges(gone=pod_batch(pods))
        await queue.call(OBSERVE, changes, timeout_s=self._call_s)


def is_of_earlier_life(token: str, owner: Owner) -> bool:
    """Whether an attempt is one of an owner's earlier epochs; tokens are owner/epoch/number."""
    name, _, rest = token.rpartition("/")[0].rpartition("/")
    return name == owner.name and rest.isdigit() and int(rest) < owner.epoch

"""The cache's part in a recovery: all nodes for new followers, ends for orphaned assumptions.

It also asks the binder about assumptions whose time is over (I6), and compares itself with one made
anew (upstream's cache debugger does so on SIGUSR2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from roadstead.actors.binder.recovery import identity_of
from roadstead.actors.cache.row_versions import KnownVersions, version_batch
from roadstead.actors.cache.volumes import CacheVolumes
from roadstead.actors.logs import log
from roadstead.actors.messages import STORAGE, DeltaBatch, pod_batch
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.messages.recovery import (
    PAGE,
    RESOLVE,
    RESTORE,
    STORAGE_LOG,
    Attempts,
    Differences,
    Nominated,
    Owner,
    OwnerEnds,
    PodsGone,
    Restore,
    Restream,
    Revised,
    StorageLog,
    Uids,
)
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Directory, Nothing, PatientRef, Ref, clock_s
from roadstead.cache import BinderWord, CacheCore, Placement
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.placements import Delta, TableStore
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan
from roadstead.storage import StorageChange

EXPIRY_S = 1.0
"""How often the cache looks for assumptions whose time is over."""

COMPARE_S = 60.0
"""How often the cache compares itself with one made anew."""

COMPARE_MOST = 100_000
"""Nodes and pods beyond which it does so only when asked: nothing else goes on meanwhile."""


class CacheRecovery:
    """What CacheActor does of a recovery."""

    core: CacheCore
    _plan: RunPlan
    _directory: Directory
    _volumes: CacheVolumes
    _versions: KnownVersions
    _seq: int
    _streams: set[asyncio.Task[None]]
    _to_workers: set[asyncio.Task[None]]
    _unfilled: set[str]
    _nodes_known: Revisions
    _pods_known: Revisions
    _minding: asyncio.Task[None] | None = None

    def _follower(self, name: str) -> Ref:
        raise AssertionError("of the actor")

    def _packed(self, first_seq: int, deltas: Sequence[Delta]) -> DeltaBatch:
        raise AssertionError("of the actor")

    def _stream(self, deltas: Sequence[Delta]) -> None:
        raise AssertionError("of the actor")

    def _forget(self, attempts: Sequence[tuple[str, str]]) -> None:
        raise AssertionError("of the actor")

    def _free(self, uids: Sequence[str]) -> None:
        raise AssertionError("of the actor")

    async def take_storage(self, message: StorageLog) -> Nothing:
        """What commits changed of claims, for a cache that begins, and for its followers."""
        if not self._volumes.log:
            self._volumes.take(message.changes)
            self._stream_changes(message.changes)
        return NOTHING

    async def restream(self, ask: Restream) -> Nothing:
        """All that the cluster holds, for a new follower; later changes come behind it."""
        self._unfilled.discard(ask.follower)
        seq, parts = self._seq, self._parts()
        follower, call_s = self._follower(ask.follower), self._plan.settings.deadlines.call_s
        sends = (
            follower.call(
                RESTORE, Restore(seq, number, len(parts), part, ask.epoch), timeout_s=call_s
            )
            for number, part in enumerate(parts)
        )
        await asyncio.gather(*sends)
        return NOTHING

    def _parts(self) -> list[DeltaBatch]:
        """The cluster as batches, numbered so that the last delta bears the present number."""
        deltas, changes = self.core.snapshot(), tuple(self._volumes.log)
        rows = self._versions.among(self.core.placements.nodes)
        first_seq = self._seq - len(deltas) - len(changes) - len(rows) + 1
        parts = [storage_batch(first_seq, changes)]
        first_seq += len(changes)
        for start in range(0, len(deltas), PAGE):
            parts.append(self._packed(first_seq + start, deltas[start : start + PAGE]))
        return [*parts, version_batch(first_seq + len(deltas), rows)]

    async def gone(self, pods: PodsGone) -> Nothing:
        """Pods are gone; those that are counted, or nominated, are so no more."""
        uids = self._pods_known.leaves(pods.uids, pods.revision)
        here = [uid for uid in uids if self.core.node_of(uid) is not None]
        self._stream([*self.core.remove_pods(here), *self.core.withdraw(uids)])
        return NOTHING

    async def take_revisions(self, known: Revised) -> Nothing:
        """What of nodes and pods is older than this, is no news."""
        self._nodes_known.learn(known.nodes)
        self._pods_known.learn(known.pods)
        return NOTHING

    async def nominated(self, _: Uids) -> Nominated:
        """Who is nominated, as far as schedulers are told."""
        found = self.core.placements.nominated
        pods = [(PodIdentity(uid, pod.namespace, uid), pod) for uid, (_, pod) in found.items()]
        return Nominated(pod_batch(pods), tuple(node for node, _ in found.values()))

    async def assumed_by(self, owner: Owner) -> Uids:
        """Pods that earlier lives of a scheduler assume."""
        return Uids(tuple(uid for uid, _ in self._assumptions_of(owner)))

    def _assumptions_of(self, owner: Owner) -> list[tuple[str, str]]:
        """(uid, token) of what earlier lives of a scheduler assume."""
        return [
            (each.uid, each.token)
            for each in self.core.on_trial()
            if is_of_earlier_life(each.token, owner)
        ]

    async def owner_ends(self, end: OwnerEnds) -> Nothing:
        """A scheduler's earlier lives are over: what is bound is confirmed, the rest forgotten."""
        word = dict(zip(end.uids, end.nodes, strict=True))
        orphans = self._assumptions_of(end.owner)
        bound = {uid: node for uid, _ in orphans if (node := word.get(uid))}
        self._confirm(bound)
        ends = [(uid, token) for uid, token in orphans if uid not in bound]
        late = self._held_late(uid for uid, _ in ends)
        self._forget(ends)
        await self._tell_of_room(late)
        if self._orphaned_claims(end.owner):
            await self._end_claims(end.owner)
        return NOTHING

    def _orphaned_claims(self, owner: Owner) -> list[str]:
        """Pods that went while earlier lives of a scheduler assumed them, and hold claims."""
        return [
            uid
            for uid in self._volumes.ledger.holders()
            if self.core.node_of(uid) is None and is_of_earlier_life(self.core.token_of(uid), owner)
        ]

    async def _end_claims(self, owner: Owner) -> None:
        """What the binder committed of claims stays; the rest is free, as nobody asks for it."""
        binder = PatientRef(self._directory.find(BINDER))
        call_s = self._plan.settings.deadlines.call_s
        changes = (await binder.call(STORAGE_LOG, NOTHING, timeout_s=call_s)).changes
        settled = {claim.key for change in changes for claim in change.claims}
        for uid in self._orphaned_claims(owner):
            if settled.issuperset(self._volumes.ledger.held(uid)):
                self._volumes.ledger.confirm(uid)
            else:
                self._free([uid])

    def _confirm(self, bound: dict[str, str]) -> None:
        placements = [
            Placement(known.uid, known.key, known.facts, node)
            for uid, node in bound.items()
            if (known := self.core.placement_of(uid))
        ]
        self._stream(self.core.confirm(placements))
        for uid in bound:
            self._volumes.ledger.confirm(uid)

    def mind(self) -> None:
        """Begins to look after assumptions, once there can be any."""
        if self._minding is None:
            self._minding = asyncio.create_task(self._mind(), name="cache expiry")

    async def _mind(self) -> None:
        compared_s = clock_s()
        while True:
            await asyncio.sleep(EXPIRY_S)
            try:
                await self.expire()
            except RoadsteadError as failure:
                log(CACHE, "the binder was not reached", why=str(failure))
            size = len(self.core.placements.nodes) + len(self.core.placements)
            if clock_s() - compared_s >= COMPARE_S and size <= COMPARE_MOST:
                compared_s = clock_s()
                self._report(self._differences())

    async def expire(self) -> None:
        """Asks the binder about assumptions whose time is over; its word ends them."""
        asks = self.core.expire(clock_s())
        if not asks:
            return
        binder = self._directory.find(BINDER)
        ask = Attempts(tuple(each.uid for each in asks), tuple(each.token for each in asks))
        call_s = self._plan.settings.deadlines.call_s
        words = await binder.call(RESOLVE, ask, timeout_s=call_s)
        answers = [
            BinderWord(each.uid, each.token, node or None)
            for each, node in zip(asks, words.nodes, strict=True)
        ]
        # By then: who is gone may be forgotten at once, where many expire together.
        counted = [each.uid for each in answers if self.core.node_of(each.uid) is not None]
        pods = {uid: self._pod(uid) for uid in counted}
        answer = self.core.resolve(answers)
        self._stream(answer.deltas)
        unheeded = {each.uid for each in answer.refused}
        heeded = [each for each in answers if each.uid not in unheeded]
        self._volumes_end(heeded)
        log(CACHE, "assumptions were over", asked=len(asks), unheeded=len(unheeded))
        await self._tell_of_room([pods[each.uid] for each in heeded if each.node_name is None])

    def _pod(self, uid: str) -> tuple[PodIdentity, PodFacts]:
        return identity_of(uid, self.core.key_of(uid)), self.core.facts_of(uid)

    def _held_late(self, uids: Iterable[str]) -> list[tuple[PodIdentity, PodFacts]]:
        """Which of these are counted though they are gone: the queue knows them no more."""
        is_gone, node_of = self._pods_known.is_gone, self.core.node_of
        return [self._pod(uid) for uid in uids if is_gone(uid) and node_of(uid) is not None]

    async def _tell_of_room(self, pods: Sequence[tuple[PodIdentity, PodFacts]]) -> None:
        """The queue learns of what is free again: no scheduler gives these attempts back."""
        if not pods:
            return
        queue = PatientRef(self._directory.find(QUEUE))
        changes = ClusterChanges(gone=pod_batch(pods))
        await queue.call(OBSERVE, changes, timeout_s=self._plan.settings.deadlines.call_s)

    def _volumes_end(self, words: Iterable[BinderWord]) -> None:
        known = len(self._volumes.log)
        for word in words:
            if word.node_name is None:
                self._volumes.forget([word.uid])
            else:
                self._volumes.ledger.confirm(word.uid)
        self._stream_changes(self._volumes.log[known:])

    def _stream_changes(self, changes: Sequence[StorageChange]) -> None:
        raise AssertionError("of the actor")

    async def compare(self, _: Nothing) -> Differences:
        """Differences from a cache made anew of what this one knows."""
        lines = self._differences()
        self._report(lines)
        return Differences(tuple(lines))

    def _differences(self) -> list[str]:
        again = self.core.rebuild(TableStore())
        found = self.core.compare(again)
        ours, theirs = self.core.placements.store, again.placements.store
        assert isinstance(ours, TableStore)
        assert isinstance(theirs, TableStore)
        return found + ours.table.differences(theirs.table)

    def _report(self, lines: Sequence[str]) -> None:
        log(
            CACHE, "compared with one made anew", differences=len(lines), first="; ".join(lines[:5])
        )

    def crashed(self) -> None:
        """Nothing goes on."""
        for task in (
            *self._streams,
            *self._to_workers,
            *([self._minding] if self._minding else []),
        ):
            task.cancel()


def storage_batch(first_seq: int, changes: Sequence[StorageChange]) -> DeltaBatch:
    """Changes of claims and volumes as they are streamed."""
    return DeltaBatch(
        first_seq,
        kinds=(STORAGE,) * len(changes),
        names=("",) * len(changes),
        pods=(-1,) * len(changes),
        classes=(),
        nodes=(),
        arrivals=(),
        changes=tuple(changes),
    )


def is_of_earlier_life(token: str, owner: Owner) -> bool:
    """Whether an attempt is one of an owner's earlier epochs; tokens are owner/epoch/number."""
    name, _, rest = token.rpartition("/")[0].rpartition("/")
    return name == owner.name and rest.isdigit() and int(rest) < owner.epoch

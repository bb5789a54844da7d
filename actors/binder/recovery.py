"""The binder's part in a recovery: its own state from the journal, and what it tells the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from roadstead.actors.binder.volumes import BinderVolumes
from roadstead.actors.logs import log
from roadstead.actors.messages import PageAsk, PodBatch, PreemptedNote, pod_batch
from roadstead.actors.messages.recovery import (
    Attempts,
    NodesPage,
    Owner,
    Revised,
    StandingPage,
    StorageLog,
    Uids,
    Words,
)
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Nothing
from roadstead.binder import AppendJournal, BinderCore, BinderHaltedError, Effect, PodState
from roadstead.binder.pods import COUNTED, PodRecord
from roadstead.binder.recovery import Beside, GonePod, Run, recover, runs_of, standing
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.journal import Journal, RecordColumns, RecordKind, Subject
from roadstead.journal.files import FileJournal
from roadstead.storage import StorageChange

SNAPSHOT_BYTES = 256 * 1024 * 1024
"""How much may be written to the journal before what stands replaces it: bounds a recovery."""


class BinderRecovery:
    """What BinderActor does of a recovery. told: what the journal has that is not the core's."""

    core: BinderCore
    _journal: Journal
    _volumes: BinderVolumes
    _nodes_known: Revisions
    _pods_known: Revisions
    _bound: dict[str, str]
    _preempted: list[PreemptedNote]
    _told: tuple[Subject, ...] = ()

    def _perform(self, effects: Sequence[Effect]) -> object:
        raise AssertionError("of the actor")

    def _recover(self) -> bool:
        """Takes over what the journal holds; whether that is anything."""
        if not isinstance(self._journal, FileJournal):
            return False
        runs = runs_of(self._journal.recovered_groups())
        found = recover(self.core, self._noted(runs))
        self.core.last_lsn = self.core.flushed_lsn = self._journal.last_lsn
        if self._journal.tail is not None:
            log("binder", "journal cut", left_out=str(self._journal.tail))
        self._told = found.told
        self._volumes.take([_change(each) for each in found.told if isinstance(each, BoundClaims)])
        return found.records > 0

    def _noted(self, runs: Iterable[Run]) -> Iterator[Run]:
        for kind, run in runs:
            self._note_revisions(kind, run)
            if kind in (RecordKind.BIND, RecordKind.LOAD):
                bound = zip(run.uids, run.nodes, run.tokens, strict=True)
                self._bound.update([(uid, node) for uid, node, token in bound if token])
            elif kind in (RecordKind.EVICT, RecordKind.DELETE):
                self._preempted += [PreemptedNote(r.uid, r.key, r.node_name, r.owner) for r in run]
                for record in run:
                    self._bound.pop(record.uid, None)
            yield kind, run

    def _note_revisions(self, kind: RecordKind, run: RecordColumns) -> None:
        if kind is RecordKind.EVICT:
            for uid, revision in zip(run.uids, run.epochs, strict=True):
                if not (revision and self._pods_known.goes(uid, revision)):
                    self._pods_known.ends(uid)
        elif not any(run.epochs):
            return
        elif kind in (RecordKind.NODE, RecordKind.NODE_GONE):
            self._nodes_known.learn((r.node_name, r.epoch) for r in run if r.epoch)
        elif kind in (RecordKind.ADD, RecordKind.DELETE):
            self._pods_known.learn((r.uid, r.epoch) for r in run if r.epoch)

    async def revisions(self, _: Nothing) -> Revised:
        """The last change of each node and pod that changed."""
        return Revised(self._nodes_known.all(), self._pods_known.all())

    def _tell(self, subject: Subject, kind: RecordKind = RecordKind.CLUSTER) -> list[Effect]:
        self._told = (*self._told, subject)
        return self.core.describe(subject, kind)

    def _with_claims(self, effects: Sequence[Effect]) -> list[Effect]:
        """Binds together with the claims that they bound: one record group, all or nothing."""
        effects = list(effects)
        for change in self._volumes.news():
            claims = BoundClaims(change.claims, change.volumes, change.removed)
            effects += self._tell(claims, RecordKind.STORAGE)
        groups = [each.records for each in effects if isinstance(each, AppendJournal)]
        others: list[Effect] = [each for each in effects if not isinstance(each, AppendJournal)]
        records = tuple(record for group in groups for record in group)
        return [*others, AppendJournal(records)] if records else others

    def _bound_journal(self) -> None:
        """Takes a snapshot of a journal that has grown; none after its journal has failed."""
        journal = self._journal
        if self.core.halted is not None or not isinstance(journal, FileJournal):
            return
        if journal.grown_bytes > SNAPSHOT_BYTES:
            journal.snapshot(standing(self.core, self._beside()))

    def _beside(self) -> Beside:
        gone = [GonePod(n.uid, n.key, n.node_name, n.preemptor) for n in self._preempted]
        nodes, pods = self._nodes_known.all(), self._pods_known.all()
        return Beside(dict(nodes), dict(pods), gone, self._told)

    async def nodes_page(self, ask: PageAsk) -> NodesPage:
        """Nodes in the order in which they came."""
        nodes = self.core.placements.nodes
        page = [nodes[name] for name in islice(nodes, ask.start, ask.start + ask.count)]
        return NodesPage(NodeList.of(page), len(nodes), self._nodes_known.latest)

    async def standing_page(self, ask: PageAsk) -> StandingPage:
        """Pods that are here, in the order in which they came."""
        pods = self.core.pods()
        page = pods[ask.start : ask.start + ask.count]
        return page_of(page, len(pods), self._pods_known.latest)

    async def standing(self, ask: Uids) -> Words:
        """What became of pods."""
        return Words(tuple(self._word(uid) for uid in ask.uids))

    async def resolve(self, ask: Attempts) -> Words:
        """What became of attempts, for good: those that committed nothing never will.

        BinderHaltedError where that could not be made durable.
        """
        pairs = zip(ask.uids, ask.tokens, strict=True)
        self._perform_durably(self.core.void(token for uid, token in pairs if not self._word(uid)))
        return Words(tuple(self._word(uid) for uid in ask.uids))

    def _word(self, uid: str) -> str | None:
        state, node_name = self.core.standing(uid)
        return "" if state is PodState.PENDING else node_name

    async def fence_owner(self, owner: Owner) -> Nothing:
        """Earlier lives of a scheduler commit nothing any more, also after a recovery.

        BinderHaltedError where that could not be made durable.
        """
        self._perform_durably(self.core.fence(owner.name, owner.epoch))
        return NOTHING

    def _perform_durably(self, effects: Sequence[Effect]) -> None:
        """BinderHaltedError where the journal fails: what is not durable is not answered."""
        self._perform(effects)
        if self.core.halted is not None:
            raise BinderHaltedError(f"binder: halted: {self.core.halted.reason}")

    async def evicted_pods(self, _: Nothing) -> PodBatch:
        """All that was evicted.

        Of those that went too long ago, only the name is known; nobody counts them any more.
        """
        pods = [identity_of(note.uid, note.key) for note in self._preempted]
        return pod_batch((pod, self._facts_of(pod)) for pod in pods)

    def _facts_of(self, pod: PodIdentity) -> PodFacts:
        if self.core.standing(pod.uid)[0] is PodState.UNKNOWN:
            return PodFacts(pod.namespace)
        return self.core.pod(pod.uid)[1]

    async def storage_log(self, _: Nothing) -> StorageLog:
        """All that commits changed of claims and volumes."""
        return StorageLog(tuple(self._volumes.log))

    def crashed(self) -> None:
        """The folder is free for the next life."""
        if isinstance(self._journal, FileJournal):
            self._journal.close()


def page_of(page: Sequence[PodRecord], total: int, revision: int) -> StandingPage:
    """Pods that are here, as others learn of them."""
    batch = pod_batch((identity_of(pod.uid, pod.key), pod.facts) for pod in page)
    return StandingPage(
        replace(batch, revision=revision),
        tuple(pod.node_name if pod.state in COUNTED else "" for pod in page),
        total,
        tuple(n for n, pod in enumerate(page) if pod.state in COUNTED and not pod.token),
    )


def identity_of(uid: str, key: str) -> PodIdentity:
    namespace, _, name = key.partition("/")
    return PodIdentity(uid, namespace, name)


def _change(bound: BoundClaims) -> StorageChange:
    return StorageChange(bound.claims, bound.volumes, bound.removed)

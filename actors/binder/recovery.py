"""The binder's journal: what a new life recovers from it, and what is written beside the core's.

journal ──► recover ──► core, claims, outcomes, revisions
subject, claims ──► describe ──► records, kept for the next snapshot (`told`)
a journal that has grown ──► snapshot of all of it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from roadstead.actors.binder.outcomes import PodOutcomes
from roadstead.actors.binder.volumes import BinderVolumes
from roadstead.actors.logs import log
from roadstead.actors.messages import PreemptedNote
from roadstead.binder import AppendJournal, BinderCore, Effect
from roadstead.binder.recovery import Beside, GonePod, Run, recover, runs_of, standing
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.rules import Rules
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import Journal, RecordColumns, RecordKind, Subject
from roadstead.journal.files import FileJournal
from roadstead.revisions import Revisions
from roadstead.run import RunPlan
from roadstead.storage import StorageChange

SNAPSHOT_BYTES = 256 * 1024 * 1024
"""How much may be written to the journal before what stands replaces it: bounds a recovery."""


class BinderRecovery:
    """Recovers a binder from its journal. told: what the journal has that is not the core's."""

    def __init__(
        self,
        core: BinderCore,
        journal: Journal,
        volumes: BinderVolumes,
        outcomes: PodOutcomes,
        nodes_known: Revisions,
        pods_known: Revisions,
    ) -> None:
        self._core, self._journal = core, journal
        self._volumes, self._outcomes = volumes, outcomes
        self._nodes_known, self._pods_known = nodes_known, pods_known
        self.told: tuple[Subject, ...] = ()

    def recover(self) -> bool:
        """Recover what the journal holds; whether that is anything."""
        if not isinstance(self._journal, FileJournal):
            return False
        runs = runs_of(self._journal.recovered_groups())
        found = recover(self._core, self._noted(runs))
        self._core.last_lsn = self._core.flushed_lsn = self._journal.last_lsn
        if self._journal.tail is not None:
            log("binder", "journal cut", left_out=str(self._journal.tail))
        self.told = found.told
        self._volumes.take([_change(each) for each in found.told if isinstance(each, BoundClaims)])
        return found.records > 0

    def _noted(self, runs: Iterable[Run]) -> Iterator[Run]:
        for kind, run in runs:
            self._note_revisions(kind, run)
            if kind in (RecordKind.BIND, RecordKind.LOAD):
                bound = zip(run.uids, run.nodes, run.tokens, strict=True)
                self._outcomes.recovered([(uid, node) for uid, node, token in bound if token])
            elif kind in (RecordKind.EVICT, RecordKind.DELETE):
                self._outcomes.recovered_gone(
                    [PreemptedNote(r.uid, r.key, r.node_name, r.owner) for r in run]
                )
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

    def describe(self, subject: Subject, kind: RecordKind = RecordKind.CLUSTER) -> list[Effect]:
        """Effects that write a subject to the journal; snapshots keep it."""
        self.told = (*self.told, subject)
        return self._core.describe(subject, kind)

    def begin(self, plan: RunPlan) -> list[Effect]:
        """Effects that write what a run is, in one group: a life that ends meanwhile leaves all of
        it or nothing."""
        effects = [*self.describe(plan.cluster), *self.describe(_rules_of(plan))]
        if plan.digest:
            effects += self.describe(RunMark(BEGUN, plan.digest), RecordKind.RUN)
        return _in_one_group(effects)

    def with_claims(self, effects: Sequence[Effect]) -> list[Effect]:
        """Binds together with the claims that they bound: one record group, all or nothing."""
        effects = list(effects)
        for change in self._volumes.news():
            claims = BoundClaims(change.claims, change.volumes, change.removed)
            effects += self.describe(claims, RecordKind.STORAGE)
        return _in_one_group(effects)

    def bound_journal(self) -> None:
        """Take a snapshot of a journal that has grown; none after its journal has failed."""
        journal = self._journal
        if self._core.halted is not None or not isinstance(journal, FileJournal):
            return
        if journal.grown_bytes > SNAPSHOT_BYTES:
            journal.snapshot(standing(self._core, self.beside()))

    def beside(self) -> Beside:
        """What a snapshot holds besides the core."""
        preempted = self._outcomes.preempted
        gone = [GonePod(n.uid, n.key, n.node_name, n.preemptor) for n in preempted]
        nodes, pods = self._nodes_known.all(), self._pods_known.all()
        return Beside(dict(nodes), dict(pods), gone, self.told)

    def crashed(self) -> None:
        """The folder is free for the next life."""
        if isinstance(self._journal, FileJournal):
            self._journal.close()


def _in_one_group(effects: Sequence[Effect]) -> list[Effect]:
    """The effects, with all that they write as one group behind the others."""
    others: list[Effect] = [each for each in effects if not isinstance(each, AppendJournal)]
    groups = (each.records for each in effects if isinstance(each, AppendJournal))
    records = tuple(record for group in groups for record in group)
    return [*others, AppendJournal(records)] if records else others


def _change(bound: BoundClaims) -> StorageChange:
    return StorageChange(bound.claims, bound.volumes, bound.removed)


def _rules_of(plan: RunPlan) -> Rules:
    """Which filters each profile holds its pods to."""
    return Rules(
        tuple(
            (each.scheduler_name, tuple(ref.name for ref in each.at("filter")))
            for each in plan.config().profiles
        )
    )

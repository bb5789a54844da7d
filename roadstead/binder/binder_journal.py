"""The binder's journal: recovery, records that are not of the core, and snapshots.

journal ──► recover ──► core, claims, outcomes, revisions
subject, claims ──► describe ──► records, kept for the next snapshot (`subjects`)
a journal that has grown ──► a snapshot replaces it

A subject is the content of a record that is not about a pod: cluster objects, the profiles'
filters, a mark in the life of the run, or bound claims.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from roadstead.binder.binder_store import in_one_append
from roadstead.binder.core import BinderCore
from roadstead.binder.outcomes import PodOutcomes, RemovedPod
from roadstead.binder.pods import BinderCommand
from roadstead.binder.recovery import (
    RecordsOfKind,
    SnapshotExtras,
    recover,
    snapshot_records,
    split_by_kind,
)
from roadstead.binder.volumes import BinderVolumes
from roadstead.config.model import ProfileConfig
from roadstead.devices.gates import gates_on
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import Journal, RecordColumns, RecordKind, Records, Subject
from roadstead.journal.files import FileJournal
from roadstead.revisions import Revisions
from roadstead.storage import StorageChange

SNAPSHOT_BYTES = 256 * 1024 * 1024
"""Bytes written to the journal after which a snapshot replaces them: bounds the recovery time."""

_log = logging.getLogger("roadstead.binder")


@dataclass(frozen=True, slots=True)
class RunDescription:
    """The first records of a journal.

    profiles: as configured. digest: of the run's inputs; "" if nothing needs it.
    """

    cluster: ClusterFacts
    profiles: Sequence[ProfileConfig]
    digest: str = ""


class BinderJournal:
    """The journal as one binder uses it."""

    def __init__(
        self,
        journal: Journal,
        core: BinderCore,
        volumes: BinderVolumes,
        outcomes: PodOutcomes,
        node_revisions: Revisions,
        pod_revisions: Revisions,
    ) -> None:
        self._journal, self._core = journal, core
        self._volumes, self._outcomes = volumes, outcomes
        self._node_revisions, self._pod_revisions = node_revisions, pod_revisions
        self._subjects: list[Subject] = []

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """All subjects that were written."""
        return tuple(self._subjects)

    def recover(self) -> bool:
        """Recover the state from the journal; return whether it has any records."""
        if not isinstance(self._journal, FileJournal):
            return False
        parts = split_by_kind(self._journal.recovered_groups())
        recovered = recover(self._core, self._note_parts(parts))
        self._outcomes.bound.update(recovered.bound)
        self._core.last_lsn = self._core.flushed_lsn = self._journal.last_lsn
        # The bytes of an append that a crash interrupted.
        if self._journal.tail is not None:
            left_out = str(self._journal.tail)
            _log.info("journal cut", extra={"fields": {"left_out": left_out}})
        self._subjects = [*recovered.subjects]
        self._volumes.apply(
            [_storage_change(each) for each in recovered.subjects if isinstance(each, BoundClaims)]
        )
        return recovered.records > 0

    def _note_parts(self, parts: Iterable[RecordsOfKind]) -> Iterator[RecordsOfKind]:
        """Yield parts unchanged; note their revisions and removed pods on the way."""
        for kind, records in parts:
            self._note_revisions(kind, records)
            if kind in (RecordKind.EVICT, RecordKind.DELETE):
                removed = [RemovedPod(r.uid, r.key, r.node_name, r.owner) for r in records]
                self._outcomes.removed += removed
            yield kind, records

    def _note_revisions(self, kind: RecordKind, records: RecordColumns) -> None:
        # The field `epoch` of these records has the revision.
        if kind is RecordKind.EVICT:
            # Only a snapshot has revisions of evicted pods; an eviction itself has none. Without
            # one, all earlier messages about the pod count as older than the removal.
            for uid, revision in zip(records.uids, records.epochs, strict=True):
                if not (revision and self._pod_revisions.apply_removal(uid, revision)):
                    self._pod_revisions.apply_unsent_removal(uid)
        elif not any(records.epochs):
            return
        elif kind in (RecordKind.NODE, RecordKind.NODE_GONE):
            self._node_revisions.merge((r.node_name, r.epoch) for r in records if r.epoch)
        elif kind in (RecordKind.ADD, RecordKind.DELETE):
            gone = records.uids if kind is RecordKind.DELETE else ()
            self._pod_revisions.merge(((r.uid, r.epoch) for r in records if r.epoch), gone)

    def describe(
        self, subject: Subject, kind: RecordKind = RecordKind.CLUSTER
    ) -> list[BinderCommand]:
        """Return the commands that write a subject to the journal; snapshots keep it."""
        self._subjects.append(subject)
        return self._core.describe(subject, kind)

    def begin(self, run: RunDescription) -> list[BinderCommand]:
        """Return the commands that write the run's description in one group: all or nothing."""
        gates = self._volumes.gates
        # `roadstead check` needs the gates on which it depends whether a bind is allowed: not
        # DRASchedulerFilterTimeout. DRAExtendedResource has a field of its own.
        rules = replace(
            _filter_rules(run.profiles),
            extended_resource=gates.extended_resource,
            device_gates=gates_on(replace(gates, extended_resource=False, filter_timeout=False)),
        )
        commands = [*self.describe(run.cluster), *self.describe(rules)]
        if run.digest:
            commands += self.describe(RunMark(BEGUN, run.digest), RecordKind.RUN)
        return in_one_append(commands)

    def with_claims(self, commands: Sequence[BinderCommand]) -> list[BinderCommand]:
        """Add the records of bound claims to those of the binds: one group, all or nothing."""
        commands = list(commands)
        for change in self._volumes.batch_changes():
            claims = BoundClaims(
                change.claims,
                change.volumes,
                change.removed,
                change.device_claims,
                change.removed_claims,
            )
            commands += self.describe(claims, RecordKind.STORAGE)
        return in_one_append(commands)

    def write(self, records: Records) -> None:
        """Append records and flush. If anything is raised, they may not be durable."""
        self._journal.append(records)
        self._journal.flush()

    def snapshot_if_grown(self) -> None:
        """Take a snapshot if the journal has grown enough; none after the journal has failed.

        Raises JournalError if the snapshot fails.
        """
        journal = self._journal
        if self._core.halted is not None or not isinstance(journal, FileJournal):
            return
        if journal.grown_bytes > SNAPSHOT_BYTES:
            journal.snapshot(snapshot_records(self._core, self.snapshot_extras()))

    def snapshot_extras(self) -> SnapshotExtras:
        """Return the contents of a snapshot that are not of the core."""
        nodes, pods = self._node_revisions.all(), self._pod_revisions.all()
        return SnapshotExtras(dict(nodes), dict(pods), self._outcomes.removed, self.subjects)

    def end(self) -> None:
        """Write the end of the journal, and release its folder."""
        if isinstance(self._journal, FileJournal):
            self._journal.end()

    def close(self) -> None:
        """Release the folder; records that were not flushed may be lost."""
        if isinstance(self._journal, FileJournal):
            self._journal.close()


def _storage_change(bound: BoundClaims) -> StorageChange:
    return StorageChange(
        bound.claims, bound.volumes, bound.removed, bound.device_claims, bound.removed_claims
    )


def _filter_rules(profiles: Iterable[ProfileConfig]) -> Rules:
    """Return the filters of each profile."""
    return Rules(
        tuple(
            (each.scheduler_name, tuple(ref.name for ref in each.at("filter"))) for each in profiles
        )
    )

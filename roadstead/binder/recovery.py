"""Recovery of the binder's state from its journal, and the records of a snapshot.

    journal ─► recover(core, parts) ─► the core's state just after the last record was flushed
    core ─► snapshot_records(core) ─► records from which `recover` makes the same core

A pod that was added and not bound is pending again. A bound pod is bound, and a repeated request
with its token gets the first answer again. Refusals are forgotten: the same token may be decided
anew. The records are read in parts, each of consecutive records of one kind, which are applied
together, so that a million records take seconds.

Some records are not about a pod or node: the cluster's other objects, the profiles' filters
(`Rules`), changes of claims, and run marks (`RunMark`): the start or end of a run, a scheduler's
epoch, or a void token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from operator import attrgetter
from typing import cast

from roadstead.binder.core import BinderCore
from roadstead.binder.outcomes import RemovedPod
from roadstead.binder.pods import (
    COUNTED,
    PRESENT,
    BinderEvent,
    BinderRecord,
    BindRequest,
)
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.garbage_collection import gc_paused
from roadstead.journal import (
    JournalError,
    JournalRecord,
    RecordColumns,
    RecordKind,
    Records,
    Subject,
)
from roadstead.protocol.errors import IllegalTransitionError

_KIND_OF = {
    ClusterFacts: RecordKind.CLUSTER,
    Rules: RecordKind.CLUSTER,
    RunMark: RecordKind.RUN,
    BoundClaims: RecordKind.STORAGE,
}


@dataclass(frozen=True, slots=True)
class SnapshotExtras:
    """The contents of a snapshot that the core does not hold.

    nodes, pods: the last revision of each node (by name) and pod (by UID), also of removed ones; a
    revision is the client's number of a change, by which older changes are refused. removed:
    deleted and evicted pods, oldest first. subjects: cluster objects, the profiles' filters, run
    marks and bound claims (`JournalRecord.subject`), in order, without nodes, epochs and void
    tokens, which the core has.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    pods: Mapping[str, int] = field(default_factory=dict)
    removed: Sequence[RemovedPod] = ()
    subjects: Sequence[Subject] = ()


NO_EXTRAS = SnapshotExtras()


@dataclass(frozen=True, slots=True)
class Recovered:
    """The contents of a journal that the core does not hold.

    records: number of records. subjects: as `SnapshotExtras.subjects`. bound: pod UID → node, in
    commit order, of pods that were bound under a token and still exist.
    """

    records: int
    subjects: tuple[Subject, ...]
    bound: Mapping[str, str]


RecordsOfKind = tuple[RecordKind, RecordColumns]
"""Consecutive records of one kind: a part of the journal."""


def split_by_kind(groups: Iterable[Records]) -> Iterator[RecordsOfKind]:
    """Split groups of records into consecutive records of one kind."""
    return chain.from_iterable(RecordColumns.of(group).split_by_kind() for group in groups)


def recover(core: BinderCore, parts: Iterable[RecordsOfKind], last_lsn: int = 0) -> Recovered:
    """Apply all records to a fresh core; its next record gets the number after the last one.

    last_lsn: the journal's last number. It is needed after a snapshot, whose records may have lower
    numbers. Raises JournalError for records that contradict each other.
    """
    assert core.last_lsn == 0, "only a fresh binder is recovered"
    replay = _Replay(core)
    with gc_paused():
        for kind, records in parts:
            replay.apply(kind, records)
        return replay.finish(last_lsn)


def snapshot_records(
    core: BinderCore, extras: SnapshotExtras = NO_EXTRAS
) -> Iterator[JournalRecord]:
    """Return the current state as records: all that `recover` and `roadstead check` need.

    A LOAD is a pod that arrives bound: from the cluster, without a token, or from a snapshot, with
    the token, owner and epoch of its bind, and with the facts requested under that token. An ADD
    after it has the pod's current facts, if they changed, and its revision. Revisions of nodes and
    pods are in the field `epoch`, and an EVICT has the preemptor in the field `owner`. Only a LOAD
    keeps its LSN; all other records have 0, which no record of the journal itself has.
    """
    for subject in extras.subjects:
        yield JournalRecord(0, _KIND_OF[type(subject)], "", "", "", subject=subject)
    nodes = core.placements.nodes
    for name, facts in nodes.items():
        revision = extras.nodes.get(name, 0)
        # UID, key and node_name of a node's record are its name.
        yield JournalRecord(0, RecordKind.NODE, name, name, name, epoch=revision, subject=facts)
    for name, revision in extras.nodes.items():
        if name not in nodes:
            yield JournalRecord(0, RecordKind.NODE_GONE, name, name, name, epoch=revision)
    for owner, epoch in core._epochs.items():
        yield JournalRecord(
            0, RecordKind.RUN, "", "", "", owner=owner, epoch=epoch, subject=RunMark(EPOCH)
        )
    for token in core._voided:
        yield JournalRecord(0, RecordKind.RUN, "", "", "", token, subject=RunMark(VOID))
    for pod in sorted(core.pods.present.values(), key=attrgetter("lsn")):
        yield from _pod_records(core, pod, extras.pods.get(pod.uid, 0))
    yield from _removed_pods(core, extras)


def _removed_pods(core: BinderCore, extras: SnapshotExtras) -> Iterator[JournalRecord]:
    present, ended = core.pods.present, core.pods.ended
    removed = {pod.uid: pod for pod in extras.removed if pod.uid not in present}
    # The core may have deleted pods that the extras do not list.
    unlisted = [
        RemovedPod(uid, pod.key, node_name="", preemptor="")
        for uid, pod in ended.items()
        if uid not in removed
    ]
    for pod in (*removed.values(), *unlisted):
        kind = RecordKind.EVICT if pod.preemptor else RecordKind.DELETE
        names = (pod.uid, pod.key, pod.node_name)
        revision = extras.pods.get(pod.uid, 0)
        yield JournalRecord(0, kind, *names, owner=pod.preemptor, epoch=revision)


def _pod_records(core: BinderCore, pod: BinderRecord, revision: int) -> Iterator[JournalRecord]:
    names = (pod.uid, pod.key, pod.node_name)
    if pod.state not in COUNTED:
        yield JournalRecord(pod.lsn, RecordKind.ADD, *names, epoch=revision, facts=pod.facts)
        return
    requested = core._tokens.facts_of(pod.token) or pod.facts
    bind = (pod.token, pod.owner, pod.epoch)
    yield JournalRecord(pod.lsn, RecordKind.LOAD, *names, *bind, facts=requested)
    if revision or requested != pod.facts:
        yield JournalRecord(0, RecordKind.ADD, *names, epoch=revision, facts=pod.facts)


class _Replay:
    """Apply records to a core, those of one kind together."""

    def __init__(self, core: BinderCore) -> None:
        self._core = core
        self._subjects: list[Subject] = []
        self._bound: dict[str, str] = {}
        self._count = 0
        self._last_lsn = 0
        # The newest binds: enough for the tokens that the core remembers.
        self._binds: deque[RecordColumns] = deque()
        self._bind_count = 0
        self._handlers: dict[RecordKind, Callable[[RecordColumns], None]] = {
            RecordKind.ADD: self._add,
            RecordKind.BIND: self._place,
            RecordKind.LOAD: self._place,
            RecordKind.EVICT: self._release,
            RecordKind.DELETE: self._release,
            RecordKind.NODE: self._add_nodes,
            RecordKind.NODE_GONE: self._remove_nodes,
            RecordKind.CLUSTER: self._apply_subjects,
            RecordKind.RUN: self._apply_subjects,
            RecordKind.STORAGE: self._apply_subjects,
        }

    def apply(self, kind: RecordKind, records: RecordColumns) -> None:
        # If a pod occurs twice, the records are applied one by one.
        occur_once = len(set(records.uids)) == len(records)
        steps = (records,) if occur_once else (records[n : n + 1] for n in range(len(records)))
        try:
            for step in steps:
                self._handlers[kind](step)
        except IllegalTransitionError as contradiction:
            raise JournalError(
                f"journal: records {records.lsns[0]} to {records.lsns[-1]} do not follow from "
                f"those before them: {contradiction}"
            ) from None
        self._count += len(records)
        self._last_lsn = max(self._last_lsn, records.lsns[-1])

    def finish(self, last_lsn: int) -> Recovered:
        """Set the record numbers, and remember the answers to the newest binds by their tokens."""
        core = self._core
        core.last_lsn = core.flushed_lsn = max(self._last_lsn, last_lsn)
        for records in self._binds:
            columns = records.tokens, records.uids, records.keys, records.nodes
            for fields in zip(
                *columns, _required(records.facts), records.owners, records.epochs, strict=True
            ):
                request = BindRequest(*fields)
                pod = core.pods.find(request.uid)
                answer = pod.bound if pod is not None and pod.token == request.token else None
                if answer is not None:
                    core._tokens.put(request, answer)
        core._tokens.forget_oldest()
        return Recovered(self._count, tuple(self._subjects), self._bound)

    def _add(self, records: RecordColumns) -> None:
        pods, new_pods = self._pods(records)
        if len(new_pods) < len(pods):
            # An ADD with the node that a present pod is on ("" if pending) updates its facts.
            updated = [
                (index, pod)
                for index, (pod, node_name) in enumerate(zip(pods, records.nodes, strict=True))
                if pod.state in PRESENT and pod.node_name == node_name
            ]
            self._update(updated, records)
            indices = {index for index, _ in updated}
            pods = [pod for index, pod in enumerate(pods) if index not in indices]
        self._core.pods.apply_all(pods, BinderEvent.ADD)

    def _update(self, updated: Sequence[tuple[int, BinderRecord]], records: RecordColumns) -> None:
        core, facts = self._core, _required(records.facts)
        core.pods.apply_all([pod for _, pod in updated], BinderEvent.UPDATE)
        for index, pod in updated:
            pod.facts = facts[index]
            if pod.state in COUNTED:
                core.placements.replace(pod.uid, pod.node_name, pod.facts)
                # The lsn is the new version of the node's row, by which binds that were decided on
                # older state are refused. Records of a snapshot have lsn 0: there, the LOAD before
                # this ADD has set the version.
                if records.lsns[index]:
                    core.row_versions.changed(pod.node_name, records.lsns[index])

    def _place(self, records: RecordColumns) -> None:
        """Apply binds or loads."""
        core = self._core
        pods, new_pods = self._pods(records)
        events = [BinderEvent.LOAD]
        if records.kinds[0] is RecordKind.BIND:
            # Some journals have no ADD of a pod before its bind (`journals_all`).
            core.pods.apply_all(new_pods, BinderEvent.ADD)
            events = [BinderEvent.COMMIT, BinderEvent.FLUSH]
        core.pods.apply_all(pods, *events)
        uids, facts = [pod.uid for pod in pods], _required(records.facts)
        before = core.placements.version
        # `bulk_place` returns the names that the binder holds: each is stored only once.
        node_names = core.placements.bulk_place(uids, records.nodes, facts)
        # A bind's answer contains the version of the placements after it.
        versions = self._versions(before, records.nodes)
        columns = (node_names, facts, records.lsns, records.tokens, records.owners, records.epochs)
        for pod, node_name, bound_facts, lsn, token, owner, epoch, version in zip(
            pods, *columns, versions, strict=True
        ):
            pod.facts, pod.lsn, pod.node_name = bound_facts, lsn, node_name
            if token:
                pod.token, pod.owner, pod.epoch, pod.version = token, owner, epoch, version
        by_token = zip(uids, node_names, records.tokens, strict=True)
        self._bound |= {uid: node_name for uid, node_name, token in by_token if token}
        self._record_tokens(records)

    def _versions(self, before: int, nodes: Sequence[str]) -> Sequence[int]:
        """Return the version of the placements after each pod: 1 more for a pod on a known node."""
        placements = self._core.placements
        if placements.version == before + len(nodes):
            return range(before + 1, placements.version + 1)
        unknown = placements.store.missing(nodes)
        return list(accumulate((name not in unknown for name in nodes), initial=before))[1:]

    def _pods(self, records: RecordColumns) -> tuple[list[BinderRecord], list[BinderRecord]]:
        """Return the binder's records of the pods in journal records, and the new ones of these."""
        known = list(map(self._core.pods.present.get, records.uids))
        columns = zip(known, records.uids, records.keys, _required(records.facts), strict=True)
        pods = new_pods = [pod or BinderRecord(uid, key, facts) for pod, uid, key, facts in columns]
        if any(known):
            new_pods = [pod for pod, before in zip(pods, known, strict=True) if before is None]
        # A UID that was removed and is added again continues from state DELETED.
        self._core.pods.inherit_histories(new_pods)
        return pods, new_pods

    def _record_tokens(self, records: RecordColumns) -> None:
        """Record the tokens of binds, the epochs of their owners, and the versions of their rows.

        Only the newest binds are kept for `finish`: the core remembers no more tokens.
        """
        if not all(records.tokens):
            records = RecordColumns.of([record for record in records if record.token])
        self._binds.append(records)
        self._bind_count += len(records)
        while self._bind_count - len(self._binds[0]) >= self._core.settings.max_tokens:
            self._bind_count -= len(self._binds.popleft())
        for owner, epoch in sorted(set(zip(records.owners, records.epochs, strict=True))):
            self._core.advance_epoch(owner, epoch)
        if self._core.settings.checks_versions:
            for each in records:
                self._core.row_versions.changed(each.node_name, each.lsn, each.owner)

    def _release(self, records: RecordColumns) -> None:
        core = self._core
        for record in records:
            event = BinderEvent.EVICT if record.kind is RecordKind.EVICT else BinderEvent.DELETE
            pod = core.pods.find(record.uid)
            if pod is None:
                # A snapshot has the names of removed pods, not their facts.
                namespace, _, _ = record.key.partition("/")
                pod = BinderRecord(record.uid, record.key, record.facts or PodFacts(namespace))
                core.pods.apply(pod, BinderEvent.ADD)
                event = BinderEvent.DELETE
            if pod.state in COUNTED:
                core.placements.remove_pod(pod.uid)
                self._bound.pop(pod.uid, None)
                core.row_versions.changed(pod.node_name, record.lsn)
            core.pods.apply(pod, event)

    def _add_nodes(self, records: RecordColumns) -> None:
        for record in records:
            assert isinstance(record.subject, NodeFacts), f"record {record.lsn} has no node"
            if record.subject.name in self._core.placements.nodes:
                self._core.row_versions.changed(record.subject.name, record.lsn)
            self._core.row_versions.added((record.subject.name,))
            self._core.placements.add_node(record.subject)

    def _remove_nodes(self, records: RecordColumns) -> None:
        for record in records:
            # A snapshot also has records of nodes that were removed before it.
            if record.lsn or record.node_name in self._core.placements.nodes:
                self._core.placements.remove_node(record.node_name)
                self._core.row_versions.removed(record.node_name, record.lsn)

    def _apply_subjects(self, records: RecordColumns) -> None:
        for record in records:
            subject = record.subject
            assert subject is not None, f"record {record.lsn} has no subject"
            if isinstance(subject, RunMark) and subject.what == EPOCH:
                self._core.advance_epoch(record.owner, record.epoch)
            elif isinstance(subject, RunMark) and subject.what == VOID:
                self._core._note_void(record.token)
            else:
                self._subjects.append(subject)


def _required(facts: Sequence[PodFacts | None]) -> Sequence[PodFacts]:
    assert all(facts), "a record of a pod has no facts"
    return cast("Sequence[PodFacts]", facts)

"""The binder's state from its journal, and as the records of a snapshot.

    journal ─► recover(core, runs) ─► the core that had seen these records flushed, and no more
    core ─► standing(core) ─► records from which `recover` makes the same core

A pod that was accepted and not bound is pending again; one that was bound is bound, and its token
gets the answer that it got. What was refused is forgotten: the same token may be decided anew.
Runs of accepted pods and of binds are taken together, so that a million of them take seconds.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from roadstead.binder.core import BinderCore
from roadstead.binder.pods import (
    COUNTED,
    TABLE,
    BindRequest,
    PodEvent,
    PodRecord,
    PodState,
)
from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.rules import Rules
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import JournalError, JournalRecord, RecordKind, Records, Subject
from roadstead.protocol.errors import IllegalTransitionError

_KIND_OF = {
    ClusterFacts: RecordKind.CLUSTER,
    Rules: RecordKind.CLUSTER,
    RunMark: RecordKind.RUN,
    BoundClaims: RecordKind.STORAGE,
}


@dataclass(frozen=True, slots=True)
class Recovered:
    """What stood in a journal. told: subjects that are not of the core, in order."""

    records: int
    told: tuple[Subject, ...]


Run = tuple[RecordKind, Records]
"""Records of one kind that follow one another."""


def runs_of(groups: Iterable[Records]) -> Iterator[Run]:
    """Groups of records as runs; a group that holds one kind is one run."""
    for group in groups:
        kinds = {record.kind for record in group}
        if len(kinds) == 1:
            yield kinds.pop(), group
        else:
            yield from ((kind, [*run]) for kind, run in groupby(group, key=attrgetter("kind")))


def recover(core: BinderCore, runs: Iterable[Run], last_lsn: int = 0) -> Recovered:
    """Brings a fresh core to where the records leave it; its lsn goes on after the last.

    last_lsn: the last of the journal, where that is more than the records show (a snapshot).
    JournalError for records that contradict each other.
    """
    assert core.last_lsn == 0, "only a fresh binder is recovered"
    replay = _Replay(core)
    with _no_collection():
        for kind, run in runs:
            replay.take(kind, run)
    return replay.finish(last_lsn)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing of what is read is garbage: looking for some takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def standing(core: BinderCore, told: Sequence[Subject] = ()) -> Iterator[JournalRecord]:
    """What stands now, as records for a snapshot: all that `recover` and the checker need.

    A bound pod is a LOAD that keeps token, owner and epoch of its bind. told: subjects beside the
    core's, oldest first.
    """
    for subject in told:
        yield JournalRecord(0, _KIND_OF[type(subject)], "", "", "", subject=subject)
    for name, facts in core.placements.nodes.items():
        yield JournalRecord(0, RecordKind.NODE, name, name, name, subject=facts)
    for owner, epoch in core._epochs.items():
        yield JournalRecord(
            0, RecordKind.RUN, "", "", "", owner=owner, epoch=epoch, subject=RunMark(EPOCH)
        )
    for token in core._voided:
        yield JournalRecord(0, RecordKind.RUN, "", "", "", token, subject=RunMark(VOID))
    for pod in sorted(core._records.values(), key=attrgetter("lsn")):
        kind = RecordKind.LOAD if pod.state in COUNTED else RecordKind.ADD
        who = (pod.uid, pod.key, pod.node_name)
        bind = (pod.token, pod.owner, pod.epoch)
        yield JournalRecord(pod.lsn, kind, *who, *bind, facts=pod.facts)
    for pod in core._gone.values():
        yield JournalRecord(0, RecordKind.DELETE, pod.uid, pod.key, "")


class _Replay:
    """Takes runs of records of one kind into a core."""

    def __init__(self, core: BinderCore) -> None:
        self._core = core
        self._told: list[Subject] = []
        self._count = 0
        self._last_lsn = 0
        self._binds: deque[JournalRecord] = deque(maxlen=core.settings.max_tokens)
        self._take: dict[RecordKind, Callable[[Records], None]] = {
            RecordKind.ADD: self._add,
            RecordKind.BIND: self._place,
            RecordKind.LOAD: self._place,
            RecordKind.EVICT: self._release,
            RecordKind.DELETE: self._release,
            RecordKind.NODE: self._nodes,
            RecordKind.NODE_GONE: self._nodes_gone,
            RecordKind.CLUSTER: self._tell,
            RecordKind.RUN: self._tell,
            RecordKind.STORAGE: self._tell,
        }

    def take(self, kind: RecordKind, run: Records) -> None:
        try:
            self._take[kind](run)
        except IllegalTransitionError as contradiction:
            raise JournalError(
                f"journal: records {run[0].lsn} to {run[-1].lsn} do not follow from those before "
                f"them: {contradiction}"
            ) from None
        self._count += len(run)
        self._last_lsn = max(self._last_lsn, run[-1].lsn)

    def finish(self, last_lsn: int) -> Recovered:
        core = self._core
        core.last_lsn = core.flushed_lsn = max(self._last_lsn, last_lsn)
        for record in self._binds:
            pod = core._records.get(record.uid) or core._gone.get(record.uid)
            if pod is not None and pod.bound is not None and pod.token == record.token:
                core._tokens.put(_request(record), pod.bound)
        return Recovered(self._count, tuple(self._told))

    def _add(self, run: Records) -> None:
        core, walk = self._core, TABLE.walk(PodEvent.ADD)
        records, fresh, follow = core._records, core._fresh, walk.follow
        for _, _, uid, key, _, _, _, _, facts, _ in run:
            pod = records.get(uid) or fresh(uid, key, _told(facts))
            pod.state, pod.history = follow(uid, pod.state, pod.history)
            if core._gone:
                core._file(pod)
            else:
                records[uid] = pod

    def _place(self, run: Records) -> None:
        """Binds or loads: records one by one, placements all at once."""
        core, known = self._core, self._core._records
        nodes, version = core.placements.nodes, core.placements.version
        nodes_here = {name for name in {record[4] for record in run} if name in nodes}
        is_bind = run[0].kind is RecordKind.BIND
        events = (PodEvent.ACCEPT, PodEvent.FLUSH) if is_bind else (PodEvent.LOAD,)
        add, follow = TABLE.walk(PodEvent.ADD), TABLE.walk(*events).follow
        placed: list[tuple[str, str, PodFacts]] = []
        for lsn, _, uid, key, node_name, token, owner, epoch, facts, _ in run:
            pod = known.get(uid)
            is_new = pod is None
            if pod is None:
                pod = core._fresh(uid, key, _told(facts))
            if is_bind and pod.state is not PodState.PENDING:
                # A journal that does not tell of accepted pods.
                pod.state, pod.history = add.follow(uid, pod.state, pod.history)
            uid = pod.uid
            pod.state, pod.history = follow(uid, pod.state, pod.history)
            if is_new:
                core._file(pod)
            version += node_name in nodes_here
            if facts is not pod.facts:
                pod.facts = _told(facts)
            pod.node_name, pod.lsn = node_name, lsn
            placed.append((uid, node_name, pod.facts))
            if token:
                pod.token, pod.owner, pod.epoch = token, owner, epoch
                pod.version = version
        core.placements.settle_all(*(list(each) for each in zip(*placed, strict=True)))
        self._owned([record for record in run if record.token])

    def _owned(self, binds: Records) -> None:
        self._binds.extend(binds)
        newest = {(each.owner, each.epoch) for each in binds}
        for owner, epoch in sorted(newest):
            self._core.advance_epoch(owner, epoch)
        if self._core.settings.checks_versions:
            for each in binds:
                self._core.rows.changed(each.node_name, each.lsn, each.owner)

    def _release(self, run: Records) -> None:
        core = self._core
        for record in run:
            event = PodEvent.EVICT if record.kind is RecordKind.EVICT else PodEvent.DELETE
            pod = core._find(record.uid)
            if pod is None:
                # A snapshot tells who is gone, not what it was.
                pod = PodRecord(record.uid, record.key, record.facts or PodFacts())
                self._go(pod, PodEvent.ADD)
            if pod.state in COUNTED:
                core.placements.lift(pod.uid)
                core.rows.changed(pod.node_name, record.lsn)
            self._go(pod, event)

    def _nodes(self, run: Records) -> None:
        for record in run:
            assert isinstance(record.subject, NodeFacts), f"record {record.lsn} has no node"
            if record.subject.name in self._core.placements.nodes:
                self._core.rows.changed(record.subject.name, record.lsn)
            self._core.placements.add_node(record.subject)

    def _nodes_gone(self, run: Records) -> None:
        for record in run:
            self._core.placements.remove_node(record.node_name)

    def _tell(self, run: Records) -> None:
        for record in run:
            subject = record.subject
            assert subject is not None, f"record {record.lsn} tells nothing"
            if isinstance(subject, RunMark) and subject.what == EPOCH:
                self._core.advance_epoch(record.owner, record.epoch)
            elif isinstance(subject, RunMark) and subject.what == VOID:
                self._core._note_void(record.token)
            else:
                self._told.append(subject)

    def _go(self, pod: PodRecord, event: PodEvent) -> None:
        walk = TABLE.walk(event)
        pod.state, pod.history = walk.follow(pod.uid, pod.state, pod.history)
        self._core._file(pod)


def _told(facts: PodFacts | None) -> PodFacts:
    assert facts is not None, "a record of a pod has no facts"
    return facts


def _request(record: JournalRecord) -> BindRequest:
    return BindRequest(
        record.token,
        record.uid,
        record.key,
        record.node_name,
        _told(record.facts),
        record.owner,
        record.epoch,
    )

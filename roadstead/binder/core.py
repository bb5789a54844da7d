"""BinderCore, the only writer of binds: a pod is bound if and only if this core committed it.

States, arrows and rules: the diagram in `roadstead.binder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.binder.binder_store import to_journal
from roadstead.binder.commits import Commits
from roadstead.binder.pods import (
    COUNTED,
    TABLE,
    Acknowledge,
    BinderCommand,
    BinderEvent,
    BinderRecord,
    BinderState,
    Bound,
    Halted,
    KeyedPod,
    Released,
)
from roadstead.binder.validation import check_invariants
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import JournalRecord, RecordKind
from roadstead.protocol.errors import IllegalTransitionError

NO_PREEMPTORS: Mapping[str, str] = {}


class BinderCore(Commits):
    """Commit binds in order over its own, authoritative node store, which starts empty.

    Parameters: see `Commits`. Methods that change something return commands for the caller.
    """

    def flushed(self, lsn: int) -> list[BinderCommand]:
        """Acknowledge, in order, the commits that the journal has made durable up to `lsn`.

        Does nothing when repeated or after a halt. Raises IllegalTransitionError for records that
        were never appended.
        """
        if lsn > self.last_lsn:
            raise IllegalTransitionError(
                f"binder: flushed({lsn}) is not allowed: the last record is {self.last_lsn}"
            )
        commands: list[BinderCommand] = []
        if self.halted is not None:
            return commands
        durable = []
        while self._unflushed and self._unflushed[0][0] <= lsn:
            durable.append(self._unflushed.popleft())
        # A pod that was removed before its flush is DELETED already. Its bind is durable, too, and
        # acknowledged; `Released` follows.
        tentative = [each for _, each, _ in durable if each.state is BinderState.TENTATIVE]
        self.pods.apply_all(tentative, BinderEvent.FLUSH)
        for _, record, following in durable:
            # After a bind: its token. After a removal: the command. After a load: None.
            if isinstance(following, str):
                bound = Bound(record.uid, record.node_name, record.lsn, record.version)
                self._tokens.answer(following, bound)
                commands.append(Acknowledge(following, record.owner, bound))
            elif following is not None:
                commands.append(following)
        self.flushed_lsn = max(self.flushed_lsn, lsn)
        return commands

    def flush_failed(self, reason: str) -> list[BinderCommand]:
        """Halt after a journal failure: nothing is acknowledged or committed any more."""
        if self.halted is None:
            unanswered = self._tokens.unanswered()
            self.halted = Halted(reason, self.flushed_lsn, self.last_lsn, unanswered)
        return [self.halted]

    def add_pods(self, pods: Iterable[KeyedPod], revision: int = 0) -> list[BinderCommand]:
        """Add pods that may be bound; a repeated message changes nothing.

        A pending pod with other facts is updated, durably, because a new queue is restored from
        the binder. revision: for the journal, which stores it as epoch.
        """
        self._check_running()
        fresh: dict[str, BinderRecord] = {}
        updated: dict[str, tuple[BinderRecord, PodFacts]] = {}
        for uid, key, facts in pods:
            known = self.pods.present.get(uid)
            if known is None:
                if uid not in fresh:
                    fresh[uid] = BinderRecord(uid, key, facts)
            elif known.state is BinderState.PENDING and known.facts != facts:
                updated[uid] = known, facts
        records = list(fresh.values())
        self.pods.inherit_histories(records)
        self.pods.apply_all(records, BinderEvent.ADD)
        numbered = self._number_all(records, RecordKind.ADD, revision) if self._journals_all else []
        return to_journal([*numbered, *self._update(list(updated.values()), revision)])

    def load(self, pods: Sequence[tuple[str, str, PodFacts, str]]) -> list[BinderCommand]:
        """Add pods (uid, key, facts, node) that run already; a repeated call changes nothing.

        They are counted without a check, because they run. Raises IllegalTransitionError, with
        nothing changed, for a pod that is bound to another node (I3 in docs/invariants.md).
        """
        self._check_running()
        nodes: dict[str, str] = {}
        for uid, _, _, node_name in pods:
            bound_on = self.placements.node_of(uid) or nodes.setdefault(uid, node_name)
            if bound_on != node_name:
                why = f"it is on {bound_on}, not on {node_name}"
                raise self.pods.illegal(uid, BinderEvent.MOVE, why)
        journal = [self._load_one(*pod) for pod in pods if self.placements.node_of(pod[0]) is None]
        return to_journal(journal)

    def update_pods(
        self, pods: Iterable[tuple[str, PodFacts]], revision: int = 0
    ) -> list[BinderCommand]:
        """Update the facts of pods (uid, facts), each listed once, durably; skip equal facts.

        Bound pods are recounted without a check, because they run. revision: for the journal, which
        stores it as epoch. Raises IllegalTransitionError, with nothing changed, for unknown or
        deleted pods.
        """
        self._check_running()
        known = [(self._record_for(uid, BinderEvent.UPDATE), facts) for uid, facts in pods]
        changed = [(record, facts) for record, facts in known if record.facts != facts]
        return to_journal(self._update(changed, revision))

    def _update(
        self, changed: Sequence[tuple[BinderRecord, PodFacts]], revision: int
    ) -> list[JournalRecord]:
        """Update pods and return the journal records.

        A bound pod always gets one, because every journal has the record of its bind or load.
        """
        self.pods.apply_all([record for record, _ in changed], BinderEvent.UPDATE)
        journal: list[JournalRecord] = []
        for record, facts in changed:
            record.facts = facts
            is_counted = record.state in COUNTED
            if is_counted:
                self.placements.replace(record.uid, record.node_name, facts)
            if is_counted or self._journals_all:
                journal += self._number_all([record], RecordKind.ADD, revision)
            if is_counted:
                self.row_versions.changed(record.node_name, self.last_lsn)
        return journal

    def delete(self, uids: Iterable[str], revision: int = 0) -> list[BinderCommand]:
        """Delete pods; `Released` follows their flush. A repeated call changes nothing.

        revision: for the journal, which stores it as epoch. Raises IllegalTransitionError, with
        nothing changed, for a pod that was never added.
        """
        return self._release(uids, BinderEvent.DELETE, RecordKind.DELETE, revision=revision)

    def evict(
        self, uids: Iterable[str], preemptors: Mapping[str, str] = NO_PREEMPTORS
    ) -> list[BinderCommand]:
        """Evict pods, bound or not (preemption); as `delete`.

        preemptors: by the victim's UID.
        """
        return self._release(uids, BinderEvent.EVICT, RecordKind.EVICT, preemptors)

    def unbind(self, uid: str) -> None:
        """Always raises IllegalTransitionError: a bound pod is never unbound, only deleted (I3)."""
        raise self.pods.illegal(uid, BinderEvent.UNBIND, "a pod is bound at most once")

    def void(self, tokens: Iterable[str]) -> list[BinderCommand]:
        """Refuse every later commit under these tokens; final once flushed (I6)."""
        self._check_running()
        journal: list[JournalRecord] = []
        for token in tokens:
            if token not in self._voided:
                self._note_void(token)
                self.last_lsn += 1
                no_pod = (self.last_lsn, RecordKind.RUN, "", "", "")
                journal.append(JournalRecord(*no_pod, token, subject=RunMark(VOID)))
        return to_journal(journal)

    def fence(self, owner: str, epoch: int) -> list[BinderCommand]:
        """Refuse requests of an owner's epochs before `epoch`; final once flushed.

        The epoch is journaled by itself, because no other record has it until the owner's first
        bind.
        """
        self._check_running()
        known = self.current_epoch(owner)
        if known is not None and known >= epoch:
            return []
        self.advance_epoch(owner, epoch)
        self.last_lsn += 1
        no_pod = (self.last_lsn, RecordKind.RUN, "", "", "")
        mark = RunMark(EPOCH)
        return to_journal([JournalRecord(*no_pod, owner=owner, epoch=epoch, subject=mark)])

    def _note_void(self, token: str) -> None:
        self._voided[token] = None
        if len(self._voided) > self.settings.max_tokens:
            self._voided.popitem(last=False)

    def validate(self) -> None:
        """Check every invariant; raises AssertionError (O(pods): for tests and after recovery)."""
        check_invariants(self)

    def _record_for(self, uid: str, event: BinderEvent) -> BinderRecord:
        """Return the pod's record; raise IllegalTransitionError if `event` is not allowed."""
        record = self.pods.require(uid, event, "never added")
        TABLE.follow(uid, record.state, event, record.history)
        return record

    def _load_one(self, uid: str, key: str, facts: PodFacts, node_name: str) -> JournalRecord:
        record = self.pods.present.get(uid)
        if record is None:
            record = BinderRecord(uid, key, facts)
            self.pods.inherit_histories((record,))
        self.pods.apply(record, BinderEvent.LOAD)
        record.node_name, record.facts = node_name, facts
        self.placements.place(uid, node_name, facts)
        entry = self._number(record, RecordKind.LOAD)
        record.lsn = entry.lsn
        self._unflushed.append((entry.lsn, record, None))
        return entry

    def _release(
        self,
        uids: Iterable[str],
        event: BinderEvent,
        kind: RecordKind,
        preemptors: Mapping[str, str] = NO_PREEMPTORS,
        revision: int = 0,
    ) -> list[BinderCommand]:
        self._check_running()
        records = [self._record_for(uid, event) for uid in dict.fromkeys(uids)]
        journal: list[JournalRecord] = []
        for record in records:
            if record.state is BinderState.DELETED:
                continue
            was_counted = record.state in COUNTED
            if was_counted:
                self.placements.remove_pod(record.uid)
            self.pods.apply(record, event)
            preemptor = preemptors.get(record.uid, "")
            entry = self._number(record, kind)._replace(owner=preemptor, epoch=revision)
            if was_counted:
                self.row_versions.changed(record.node_name, entry.lsn)
            is_evicted = kind is RecordKind.EVICT
            command = Released(record.uid, record.key, record.node_name, is_evicted, preemptor)
            self._unflushed.append((entry.lsn, record, command))
            journal.append(entry)
        return to_journal(journal)

    def _number_all(
        self, records: Iterable[BinderRecord], kind: RecordKind, revision: int
    ) -> list[JournalRecord]:
        numbered = [self._number(record, kind) for record in records]
        return [each._replace(epoch=revision) for each in numbered] if revision else numbered

    def _number(self, record: BinderRecord, kind: RecordKind) -> JournalRecord:
        """Return a journal record of a pod under the next number."""
        self.last_lsn += 1
        of_pod = (self.last_lsn, kind, record.uid, record.key, record.node_name)
        has_facts = kind in (RecordKind.LOAD, RecordKind.ADD)
        return JournalRecord(*of_pod, facts=record.facts if has_facts else None)

"""Pods, tokens and owners over a whole journal: one place per pod, nothing after its end.

A pod is accepted when the binder has recorded its submission (ADD).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal.records import JournalRecord, RecordKind

Finding = tuple[str, str]
"""(invariant, text)."""

PENDING, GONE = "", None
"""Values of `PodHistory.node_of` for a pod that is accepted and not bound, and that ended."""


@dataclass(slots=True)
class PodHistory:
    """The node of every pod: a node's name, PENDING, or GONE (deleted or evicted).

    _knows_accepted: the journal has records of accepted pods, so that an unknown pod is a mistake.
    """

    node_of: dict[str, str | None] = field(default_factory=dict)
    _ever_bound: set[str] = field(default_factory=set)
    _knows_accepted: bool = False

    def was_bound(self, uid: str) -> bool:
        """Whether a pod was ever bound."""
        return uid in self._ever_bound

    def waiting(self) -> set[str]:
        """Return the pods that are accepted and not bound."""
        return {uid for uid, node_name in self.node_of.items() if node_name == PENDING}

    def add(self, record: JournalRecord) -> Iterator[Finding]:
        """Apply the acceptance of a pod, or an update while it is pending or on its node."""
        self._knows_accepted |= not record.node_name
        node_name = self.node_of.get(record.uid)
        if node_name and node_name != record.node_name:
            yield "I4", f"it is accepted again and is on {node_name}"
        elif record.node_name and node_name != record.node_name:
            yield "I3", f"it is updated there and is on {node_name or 'no node'}"
        elif not node_name:
            self.node_of[record.uid] = PENDING

    def load(self, record: JournalRecord) -> Iterator[Finding]:
        """Apply a pod that ran already, or was bound before a snapshot."""
        node_name = self.node_of.get(record.uid)
        if node_name and node_name != record.node_name:
            yield "I3", f"it is on {node_name} already"
            return
        self._put(record)

    def bind(self, record: JournalRecord) -> Iterator[Finding]:
        """Apply a bind: at most one per pod, and only of an accepted pod that is pending."""
        uid = record.uid
        if uid in self._ever_bound:
            yield "I3", "it was bound before"
        elif self._knows_accepted and uid not in self.node_of:
            yield "I4", "it was never accepted"
        elif uid in self.node_of and self.node_of[uid] is GONE:
            yield "I4", "it was deleted before"
        self._put(record)

    def release(self, record: JournalRecord) -> Iterator[Finding]:
        """Apply a deletion or eviction: only on the node where the pod is."""
        node_name = self.node_of.get(record.uid)
        is_there = node_name is not None
        was_bound = record.kind is RecordKind.EVICT and record.node_name
        if record.lsn and was_bound and not node_name:
            yield "I3", "it is evicted and was not bound"
        elif record.lsn and self._knows_accepted and not is_there:
            yield "I4", "it is deleted and was not there"
        elif record.lsn and is_there and node_name != record.node_name:
            yield "I5", f"its room is given back, but it is on {node_name or 'no node'}"
        self.node_of[record.uid] = GONE

    def _put(self, record: JournalRecord) -> None:
        self._ever_bound.add(record.uid)
        self.node_of[record.uid] = record.node_name


@dataclass(slots=True)
class TokenHistory:
    """Tokens and epochs: one pod per token; void tokens and old epochs commit nothing.

    _tokens: token → UID of its pod. _epochs: the newest epoch of each scheduler.
    """

    _tokens: dict[str, str] = field(default_factory=dict)
    _voided: set[str] = field(default_factory=set)
    _epochs: dict[str, int] = field(default_factory=dict)

    def mark(self, record: JournalRecord) -> None:
        """Apply the epoch of an owner, or a void token."""
        assert isinstance(record.subject, RunMark), f"record {record.lsn} has no mark"
        if record.subject.what == EPOCH:
            self._advance_epoch(record.owner, record.epoch)
        elif record.subject.what == VOID:
            self._voided.add(record.token)

    def commit(self, record: JournalRecord) -> Iterator[Finding]:
        """I8 and I6: check a BIND, or the LOAD that replaces it in a snapshot."""
        token, owner = record.token, record.owner
        if not token:
            return
        if self._tokens.setdefault(token, record.uid) != record.uid:
            yield "I8", f"its token is that of {self._tokens[token]}"
        if token in self._voided:
            yield "I6", f"its token {token} was void before"
        newest = self._epochs.get(owner, record.epoch)
        if record.kind is RecordKind.BIND and record.epoch < newest:
            yield "I8", f"{owner}: epoch {record.epoch} after {newest}"
        self._advance_epoch(owner, record.epoch)

    def _advance_epoch(self, owner: str, epoch: int) -> None:
        self._epochs[owner] = max(epoch, self._epochs.get(owner, epoch))

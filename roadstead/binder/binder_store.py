"""The binder's pods and nodes, and the numbers of its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.binder.pods import (
    COUNTED,
    PRESENT,
    TABLE,
    AppendJournal,
    BinderCommand,
    BinderEvent,
    BinderHaltedError,
    BinderRecord,
    BinderSettings,
    BinderState,
    Halted,
)
from roadstead.binder.rows import RowVersions
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.journal import JournalRecord, RecordKind, Subject
from roadstead.placements import NodeStore, Placements
from roadstead.pod_store import PodStore
from roadstead.protocol.errors import IllegalTransitionError


class BinderStore:
    """Nodes with the pods that are counted on them, and the journal records about the cluster.

    pods: pending and bound pods, and the last deleted ones. rows: the versions of nodes.
    """

    def __init__(
        self, store: NodeStore, settings: BinderSettings, next_lsn: int, *, journals_all: bool
    ) -> None:
        self.settings = settings
        self.pods: PodStore[BinderRecord, BinderState, BinderEvent] = PodStore(
            TABLE, BinderState.UNKNOWN, PRESENT, {BinderState.DELETED}, settings.max_gone_remembered
        )
        self.placements = Placements(store)
        self.rows = RowVersions()
        self.halted: Halted | None = None
        self.flushed_lsn = self.last_lsn = next_lsn - 1
        self._journals_all = journals_all

    @property
    def version(self) -> int:
        """The version of the authoritative state; it only grows (I7)."""
        return self.placements.version

    def pod(self, uid: str) -> tuple[str, PodFacts]:
        """Return key and facts of a pod, also of one deleted recently. KeyError for any other."""
        record = self.pods.find(uid)
        if record is None:
            raise KeyError(uid)
        return record.key, record.facts

    def pod_status(self, uid: str) -> tuple[BinderState, str | None]:
        """Return a pod's state and node, for callers that need the outcome of a bind.

        TENTATIVE is not final: ask again after the flush.
        """
        record = self.pods.find(uid)
        if record is None:
            return BinderState.UNKNOWN, None
        return record.state, record.node_name if record.state in COUNTED else None

    def is_bound_by(self, uid: str, token: str) -> bool:
        """Whether a pod is bound, and by the request of this token."""
        record = self.pods.present.get(uid)
        return record is not None and record.state is BinderState.BOUND and record.token == token

    def records(self, uids: Iterable[str]) -> list[BinderRecord]:
        """Return the records of those pods that are present (HERE); not to be changed."""
        present = self.pods.present
        return [present[uid] for uid in uids if uid in present]

    def add_node(self, facts: NodeFacts, revision: int = 0) -> list[BinderCommand]:
        """Add a node, and count the pods bound to it before; update a known one.

        revision: for the journal, which stores it as epoch.
        """
        return self.update_node(facts, revision)

    def add_nodes(self, nodes: NodeList, revision: int = 0) -> list[BinderCommand]:
        """Add nodes, as by `add_node` one after another; their records are one group."""
        self._check_running()
        effects: list[BinderCommand] = []
        if self.placements.are_unknown(nodes):
            self.placements.add_nodes(nodes)
            if self._journals_all:
                for facts in nodes:
                    effects += self._journal_record(RecordKind.NODE, facts.name, facts, revision)
        else:
            for facts in nodes:
                effects += self.add_node(facts, revision)
        return in_one_append(effects)

    def update_node(self, facts: NodeFacts, revision: int = 0) -> list[BinderCommand]:
        """Update a node's own facts; add an unknown node."""
        self._check_running()
        known = self.placements.nodes.get(facts.name, facts)
        self.placements.update_node(facts)
        is_other = facts != known
        # Versions need a number, and numbers a record, whether or not a journal is kept.
        effects = self._journal_record(
            RecordKind.NODE, facts.name, facts, revision, is_due=is_other
        )
        if is_other:
            self.rows.changed(facts.name, self.last_lsn)
        return effects

    def remove_node(self, name: str, revision: int = 0) -> list[BinderCommand]:
        """Remove a node; its pods stay bound to it. IllegalTransitionError for an unknown node."""
        if name not in self.placements.nodes:
            raise IllegalTransitionError(f"binder: node {name}: remove is not allowed: not there")
        self._check_running()
        self.placements.remove_node(name)
        return self._journal_record(RecordKind.NODE_GONE, name, None, revision)

    def describe(
        self, subject: Subject, kind: RecordKind = RecordKind.CLUSTER
    ) -> list[BinderCommand]:
        """Journal other cluster objects, the rules of profiles, or a mark of the run."""
        return self._journal_record(kind, "", subject)

    def _journal_record(
        self,
        kind: RecordKind,
        node_name: str,
        subject: Subject | None,
        revision: int = 0,
        *,
        is_due: bool = False,
    ) -> list[BinderCommand]:
        """Number a record about the cluster, and return the effect that writes it.

        is_due: write it even if this journal does not record the cluster.
        """
        self._check_running()
        if not (self._journals_all or is_due):
            return []
        self.last_lsn += 1
        record = JournalRecord(
            self.last_lsn, kind, node_name, node_name, node_name, epoch=revision, subject=subject
        )
        return to_journal([record])

    def _check_running(self) -> None:
        if self.halted is not None:
            raise BinderHaltedError(f"binder: halted: {self.halted.reason}")


def in_one_append(effects: Sequence[BinderCommand]) -> list[BinderCommand]:
    """Return the effects with all their journal records in one append."""
    groups = [each.records for each in effects if isinstance(each, AppendJournal)]
    others = [each for each in effects if not isinstance(each, AppendJournal)]
    return [*others, *to_journal([record for group in groups for record in group])]


def to_journal(journal: Sequence[JournalRecord]) -> list[BinderCommand]:
    """Return the effect that makes records durable; none for no records."""
    return [AppendJournal(tuple(journal))] if journal else []

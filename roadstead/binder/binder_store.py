"""The state of the binder: its pods and nodes, and the numbers of its journal records."""

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
    """The binder's pods and nodes; changes of nodes, and their journal records.

    `Commits` and `BinderCore` add the changes of pods. Methods that change something return
    commands for the actor.

    pods: pending, tentative and bound pods, and the last deleted ones. placements: the nodes, each
    with the pods that are counted on it. nodes_removed: number of nodes that were removed, ever.
    row_versions: for each node, the number of the record that changed it last. halted: set once the
    journal failed. last_lsn, flushed_lsn: the numbers (LSN) of the last record, and of the last
    record that is on disk.
    """

    def __init__(
        self, store: NodeStore, settings: BinderSettings, next_lsn: int, *, journals_all: bool
    ) -> None:
        self.settings = settings
        self.pods: PodStore[BinderRecord, BinderState, BinderEvent] = PodStore(
            TABLE, BinderState.UNKNOWN, PRESENT, {BinderState.DELETED}, settings.max_gone_remembered
        )
        self.placements = Placements(store)
        self.nodes_removed = 0
        self.row_versions = RowVersions()
        self.halted: Halted | None = None
        self.flushed_lsn = self.last_lsn = next_lsn - 1
        # Nodes and pending pods are written only to a journal on disk, for a recovery and for
        # `roadstead check`. A run may have none (`NullJournal`): its records are dropped.
        self._journals_all = journals_all

    @property
    def version(self) -> int:
        """The version of the authoritative state; it only grows (I7 in docs/invariants.md)."""
        return self.placements.version

    def pod(self, uid: str) -> tuple[str, PodFacts]:
        """Return key and facts of a pod, also of one deleted recently. KeyError for any other."""
        record = self.pods.find(uid)
        if record is None:
            raise KeyError(uid)
        return record.key, record.facts

    def pod_status(self, uid: str) -> tuple[BinderState, str | None]:
        """Return a pod's state and node, for callers that need the outcome of a bind.

        The node is None unless the pod is counted on it: TENTATIVE or BOUND (COUNTED).
        TENTATIVE means accepted, but not on disk yet: it is not final, ask again after the flush.
        (The glossary's "tentative" is another state: that of a pod on a scheduler's table.)
        """
        record = self.pods.find(uid)
        if record is None:
            return BinderState.UNKNOWN, None
        return record.state, record.node_name if record.state in COUNTED else None

    def is_bound_by(self, uid: str, token: str) -> bool:
        """Return whether a pod is bound, and by the request with this token."""
        record = self.pods.present.get(uid)
        return record is not None and record.state is BinderState.BOUND and record.token == token

    def records(self, uids: Iterable[str]) -> list[BinderRecord]:
        """Return the binder's own records of the pods that are present; do not change them.

        Present are pending, tentative and bound pods (PRESENT), not deleted ones.
        """
        present = self.pods.present
        return [present[uid] for uid in uids if uid in present]

    def add_node(self, facts: NodeFacts, revision: int = 0) -> list[BinderCommand]:
        """Add a node, and count the pods that were bound to it before; update a known one.

        revision: number of the change at the client (roadstead.revisions), for the journal record.
        """
        return self.update_node(facts, revision)

    def add_nodes(self, nodes: NodeList, revision: int = 0) -> list[BinderCommand]:
        """Add nodes as `add_node` does, with all their records in one append."""
        self._check_running()
        commands: list[BinderCommand] = []
        if self.placements.are_unknown(nodes):
            self.placements.add_nodes(nodes)
            self.row_versions.added(nodes.names)
            if self._journals_all:
                for facts in nodes:
                    commands += self._journal_record(RecordKind.NODE, facts.name, facts, revision)
        else:
            for facts in nodes:
                commands += self.add_node(facts, revision)
        return in_one_append(commands)

    def update_node(self, facts: NodeFacts, revision: int = 0) -> list[BinderCommand]:
        """Update a node's own facts; add an unknown node."""
        self._check_running()
        known = self.placements.nodes.get(facts.name, facts)
        self.placements.update_node(facts)
        self.row_versions.added((facts.name,))
        is_changed = facts != known
        # The version of a changed node is the number of a record, so a record is necessary even
        # without a journal on disk. The version of a new node is the number of the record that
        # removed an earlier node of this name.
        commands = self._journal_record(
            RecordKind.NODE, facts.name, facts, revision, force=is_changed
        )
        if is_changed:
            self.row_versions.changed(facts.name, self.last_lsn)
        return commands

    def remove_node(self, name: str, revision: int = 0) -> list[BinderCommand]:
        """Remove a node; its pods stay bound to it. Raises IllegalTransitionError if unknown."""
        # Checked first, since it is the caller's error also after the binder halted.
        if name not in self.placements.nodes:
            raise IllegalTransitionError(f"binder: node {name}: remove is not allowed: not there")
        self._check_running()
        self.placements.remove_node(name)
        self.nodes_removed += 1
        # As for a changed node: a decision that read the node must not be committed to another
        # node of this name.
        commands = self._journal_record(
            RecordKind.NODE_GONE, name, None, revision, force=self.settings.checks_versions
        )
        self.row_versions.removed(name, self.last_lsn)
        return commands

    def describe(
        self, subject: Subject, kind: RecordKind = RecordKind.CLUSTER
    ) -> list[BinderCommand]:
        """Write a record about neither pods nor nodes.

        subject: the cluster's other objects, the filters of the profiles, bound claims (kind
        STORAGE), or a mark in the life of the run (kind RUN).
        """
        return self._journal_record(kind, "", subject)

    def _journal_record(
        self,
        kind: RecordKind,
        node_name: str,
        subject: Subject | None,
        revision: int = 0,
        *,
        force: bool = False,
    ) -> list[BinderCommand]:
        """Give a record of the cluster the next number, and return the command that writes it.

        Without a journal on disk there is no record, unless `force`.
        """
        self._check_running()
        if not (self._journals_all or force):
            return []
        self.last_lsn += 1
        # A node's name is in the fields for UID and key too. The field `epoch` has a lease epoch
        # in records of binds only; here it has the revision.
        record = JournalRecord(
            self.last_lsn, kind, node_name, node_name, node_name, epoch=revision, subject=subject
        )
        return to_journal([record])

    def _check_running(self) -> None:
        if self.halted is not None:
            raise BinderHaltedError(f"binder: halted: {self.halted.reason}")


def in_one_append(commands: Sequence[BinderCommand]) -> list[BinderCommand]:
    """Return the commands with all their journal records in one append, which is the last command.

    An append is written completely or not at all, so that a crash leaves all of its records or
    none. The other commands, such as refusals, do not wait for them: a command that does is
    returned by `flushed`, after the records are on disk.
    """
    groups = [each.records for each in commands if isinstance(each, AppendJournal)]
    others = [each for each in commands if not isinstance(each, AppendJournal)]
    return [*others, *to_journal([record for group in groups for record in group])]


def to_journal(journal: Sequence[JournalRecord]) -> list[BinderCommand]:
    """Return the command that writes records to disk; no command for no records."""
    return [AppendJournal(tuple(journal))] if journal else []

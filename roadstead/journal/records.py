"""The interface of the journal: records in commit order, and the guarantee of `flush`.

The binder numbers its records (`lsn`, from 1, without gaps); a journal keeps them in that order.
When `flush` returns, they are durable, and only then they are acknowledged (I9 in
docs/invariants.md). `NullJournal` only counts records; `FileJournal` (`files.py`) writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import RunMark
from roadstead.protocol.errors import RoadsteadError


class JournalError(RoadsteadError):
    """The journal cannot be locked, read, written or flushed; unflushed records may be lost."""


class RecordKind(StrEnum):
    """Kinds of records.

    LOAD: a pod that is bound when the journal or snapshot begins. ADD: a pod was accepted, or its
    facts were updated. NODE, NODE_GONE, CLUSTER and STORAGE (claims that commits bound) describe
    the cluster, so that the journal alone suffices to check a bind. RUN: marks of the run and its
    schedulers, see `RunMark`.
    """

    LOAD = "load"
    BIND = "bind"
    EVICT = "evict"
    DELETE = "delete"
    ADD = "add"
    NODE = "node"
    NODE_GONE = "node_gone"
    CLUSTER = "cluster"
    RUN = "run"
    STORAGE = "storage"


Subject = NodeFacts | ClusterFacts | Rules | RunMark | BoundClaims


class JournalRecord(NamedTuple):
    """One committed change.

    lsn: number of the commit. In a snapshot, only the first record of a present pod has that
    number; all other records have 0.
    uid, key: of the pod; the key is namespace/name. node_name: of the pod, or the node itself.
    token, owner, epoch: of the attempt and its scheduler, for BIND, and for LOAD in a snapshot. For
    RUN, a scheduler and its new epoch, or the token that becomes void. For EVICT, the owner is the
    key of the preemptor. For ADD, DELETE, NODE and NODE_GONE, the epoch is the sender's revision
    (`roadstead.revisions`).
    facts: of the pod, for LOAD, BIND and ADD, so that a reader of the journal alone can check every
    constraint again. subject: the node of NODE; for CLUSTER, the cluster or the filters of the
    configuration (`Rules`); the mark of RUN; the change of STORAGE.
    """

    lsn: int
    kind: RecordKind
    uid: str
    key: str
    node_name: str
    token: str = ""
    owner: str = ""
    epoch: int = 0
    facts: PodFacts | None = None
    subject: Subject | None = None


Records = Sequence[JournalRecord]


class Journal(Protocol):
    """The destination of the binder's records. Both methods raise JournalError when they fail."""

    def append(self, records: Sequence[JournalRecord]) -> int:
        """Append records in order; return the lsn of the last record of the journal."""
        ...

    def flush(self) -> None:
        """Return when all appended records are durable."""
        ...


class NullJournal:
    """A journal that stores nothing, for runs whose only result is a report."""

    def __init__(self) -> None:
        self.last_lsn = 0

    def append(self, records: Sequence[JournalRecord]) -> int:
        for record in records:
            if record.lsn != self.last_lsn + 1:
                raise JournalError(
                    f"journal: record {record.lsn} does not follow record {self.last_lsn}"
                )
            self.last_lsn = record.lsn
        return self.last_lsn

    def flush(self) -> None:
        """Do nothing, since nothing is stored."""

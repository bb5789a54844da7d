"""The seam of the journal: records in commit order, and the promise of `flush`.

The binder numbers its records (`lsn`, from 1, without gaps); a journal keeps them in that order.
What `flush` returned for is durable, and only then acknowledged (I9). `NullJournal` only counts
records; a journal of files fits the same seam.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.rules import Rules
from roadstead.facts.run_mark import RunMark
from roadstead.protocol.errors import RoadsteadError


class JournalError(RoadsteadError):
    """The journal cannot take or keep records; what was not flushed may be lost."""


class RecordKind(StrEnum):
    """LOAD: a pod runs already. ADD: a pod was accepted and may be bound. NODE, NODE_GONE, CLUSTER
    and STORAGE (claims that commits bound) tell of what pods are bound to, so that the journal
    alone shows whether a bind was right. RUN: who writes, and how far it is.
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
    """One committed change. token, owner and epoch are those of a BIND; the owner of an
    EVICT is the pod that gets the room; the epoch of ADD, DELETE, NODE and NODE_GONE counts the
    changes of whoever told of them.

    facts: with what the pod was counted, for LOAD, BIND and ADD, so that a reader of the journal
    alone can check every constraint again. subject: the node of NODE; cluster or rules of CLUSTER;
    the mark of RUN; the change of STORAGE. A snapshot's LOADs keep what the BIND said, and what in
    it has no number of its own has the lsn 0.
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
    """Where the binder's records go. Both methods raise JournalError when they fail."""

    def append(self, records: Sequence[JournalRecord]) -> int:
        """Take records in order; the lsn of the last one ever taken."""
        ...

    def flush(self) -> None:
        """Return when all that was appended is durable."""
        ...


class NullJournal:
    """Keeps nothing: for runs whose result is a report."""

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
        """Nothing to do: nothing is kept."""

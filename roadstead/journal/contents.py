"""The run in a journal: digest of its inputs, bound pods, whether and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.facts.run_mark import FINISHED as ENDED
from roadstead.journal.bound_pods import BoundPods
from roadstead.journal.columns import RecordColumns
from roadstead.journal.disk import Disk
from roadstead.journal.records import RecordKind
from roadstead.journal.segment_end import UnreadBytes
from roadstead.journal.segments import Reader


@dataclass(frozen=True, slots=True)
class JournalContents:
    """Contents of a journal.

    began_with: digest of the inputs, "" if the journal ends before it. last_epoch: at least the
    highest epoch of any scheduler (the revisions of other records are counted, too: the next run
    only needs higher epochs). ended_with: digest of the outcome, "" for a run that did not end.
    bound: see `BoundPods`. tail: the torn end of the last segment, which is not read.
    """

    began_with: str
    last_epoch: int
    ended_with: str
    bound: Mapping[str, tuple[str, str]]
    tail: UnreadBytes | None


def read_journal(disk: Disk) -> JournalContents:
    """Read a journal. JournalError if it is damaged."""
    reader, bound = Reader(disk), BoundPods()
    began_with, ended_with, last_epoch = "", "", 0
    for group in reader.groups():
        columns = RecordColumns.of(group)
        bound.apply(columns)
        last_epoch = max(last_epoch, *columns.epochs)
        for kind, records in columns.split_by_kind():
            if kind is not RecordKind.RUN:
                # A record after the end mark: the run continued.
                ended_with = ""
                continue
            marks = [each for each in records.subjects if isinstance(each, RunMark)]
            began_with = began_with or next((e.digest for e in marks if e.what == BEGUN), "")
            ended_with = next((e.digest for e in marks if e.what == ENDED), ended_with)
    return JournalContents(began_with, last_epoch, ended_with, bound.pods, reader.tail)

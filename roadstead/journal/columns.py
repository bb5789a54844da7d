"""A group of records as columns, as it is written and read; records are created on access.

A million records are read and applied column by column; iteration yields single records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import overload

from roadstead.facts.pod import PodFacts
from roadstead.journal.records import JournalRecord, RecordKind, Subject


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns(Sequence[JournalRecord]):
    """One column for each field of `JournalRecord`, all of equal length."""

    lsns: Sequence[int]
    kinds: Sequence[RecordKind]
    uids: Sequence[str]
    keys: Sequence[str]
    nodes: Sequence[str]
    tokens: Sequence[str]
    owners: Sequence[str]
    epochs: Sequence[int]
    facts: Sequence[PodFacts | None]
    subjects: Sequence[Subject | None]

    @classmethod
    def of(cls, records: Sequence[JournalRecord]) -> RecordColumns:
        """Return the columns of some records."""
        if isinstance(records, RecordColumns):
            return records
        if not records:
            return cls((), (), (), (), (), (), (), (), (), ())
        return cls(*zip(*records, strict=True))

    def __len__(self) -> int:
        return len(self.lsns)

    def __iter__(self) -> Iterator[JournalRecord]:
        names = zip(self.uids, self.keys, self.nodes, self.tokens, self.owners, strict=True)
        others = zip(self.epochs, self.facts, self.subjects, strict=True)
        numbers = zip(self.lsns, self.kinds, strict=True)
        for number, name, other in zip(numbers, names, others, strict=True):
            yield JournalRecord._make((*number, *name, *other))

    @overload
    def __getitem__(self, index: int) -> JournalRecord: ...

    @overload
    def __getitem__(self, index: slice) -> RecordColumns: ...

    def __getitem__(self, index: int | slice) -> JournalRecord | RecordColumns:
        if isinstance(index, slice):
            return RecordColumns(
                *(self.lsns[index], self.kinds[index], self.uids[index], self.keys[index]),
                *(self.nodes[index], self.tokens[index], self.owners[index], self.epochs[index]),
                *(self.facts[index], self.subjects[index]),
            )
        for record in self[index : index + 1 or None]:
            return record
        raise IndexError(f"record {index} of {len(self)}")

    def split_by_kind(self) -> Iterator[tuple[RecordKind, RecordColumns]]:
        """Yield consecutive records of one kind, with their kind."""
        start = 0
        for kind, same_kind in groupby(self.kinds):
            stop = start + len(list(same_kind))
            yield kind, self if stop - start == len(self) else self[start:stop]
            start = stop

"""The journal: what the binder committed, in order, as a promise that survives the process.

records.py   the seam: records, their kinds, and what `append` and `flush` promise
columns.py   a group of records, field by field
frames.py    bytes of a group of records, and how they are found again in a file
disk.py      what the journal needs of a file system, so that a simulated one fits
segments.py  segment and snapshot files: their names, headers, and reading them back
files.py     FileJournal: appends, flushes, rotates, takes snapshots
"""

from roadstead.journal.columns import RecordColumns
from roadstead.journal.records import (
    Journal,
    JournalError,
    JournalRecord,
    MemoryJournal,
    NullJournal,
    RecordKind,
    Records,
    Subject,
)

__all__ = [
    "Journal",
    "JournalError",
    "JournalRecord",
    "MemoryJournal",
    "NullJournal",
    "RecordColumns",
    "RecordKind",
    "Records",
    "Subject",
]

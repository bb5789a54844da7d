"""The journal: what the binder committed, in order, as a promise that survives the process.

records.py   the seam: records, their kinds, and what `append` and `flush` promise
columns.py   a group of records, field by field
fields.py    the names of fields that a file was written with, and facts of today's from them
frames.py    groups of records and marks as bytes, in a chain, and how they are found in a file
headers.py   segment and snapshot files: their names and headers
segments.py  reading segments and snapshots back, and what is wrong with them
writing.py   a file as it is written, frame by frame
files.py     FileJournal: appends, flushes, rotates, takes snapshots
disk.py      what the journal needs of a file system, so that a simulated one fits
format_1.py  frames of the format before
"""

from roadstead.journal.columns import RecordColumns
from roadstead.journal.records import (
    Journal,
    JournalError,
    JournalRecord,
    NullJournal,
    RecordKind,
    Records,
    Subject,
)

__all__ = [
    "Journal",
    "JournalError",
    "JournalRecord",
    "NullJournal",
    "RecordColumns",
    "RecordKind",
    "Records",
    "Subject",
]

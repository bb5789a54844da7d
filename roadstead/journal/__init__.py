"""The journal: the binder's commits in order, durable beyond its process.

A journal is a folder of files: *segments* with the numbered records (`lsn`) of commits, and a
*snapshot*, the state after some record, which replaces all older segments. A file is a header and
*frames*, the units that are written and read as a whole. Its end is *torn* if the machine
stopped while a frame was written: such bytes were never acknowledged and are cut off. Any other
broken frame is *damage*, which is refused.

records.py   the interface: records, their kinds, and the guarantees of `append` and `flush`
columns.py   a group of records, field by field
fields.py    the fields that a file was written with, and conversion to this release's facts
frames.py    groups of records and marks as bytes, in a chain, and how they are found in a file
headers.py   segment and snapshot files: their names and headers
segments.py  reading of segments and snapshots, and detection of damage
segment_end.py  where the reading of a segment ended, and what it left out
writing.py   writing of a file, frame by frame
files.py     FileJournal: appends, flushes, rotates, takes snapshots
contents.py  the run in a journal
bound_pods.py  the pods that are bound at the end of a journal
outcome.py   the outcome of a run, in a file next to the journal
disk.py      the file system calls of the journal, which a simulated disk can replace
format_1.py  frames of the previous format
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

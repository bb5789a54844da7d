"""A second copy of the journal, on the disk of another node, durable before binds are acknowledged.

The binder's journal does its file operations through `RecordedDisk`, which carries them out and
records them as steps. `CopySender` sends the steps to the node of the copy, where `CopyReceiver`
carries them out, too: so both folders have the same files with the same bytes. A reply leaves the
binder only when both disks have what it reports.

A binder first *pairs* with the copy, which reports its files; the sender then *catches up*: it
sends the bytes that these lack. If the binder's node is lost, the copy is *promoted*: its folder is
the journal of the next binder.

    FileJournal ─► RecordedDisk ─► disk of the binder's node
                        │ steps
                        ▼
                   CopySender ── CopyBegin, CopyWrite ──► CopyReceiver ─► disk of the copy's node
                        ▲                                      │
                        └────────────── CopyState ◄────────────┘

messages.py   steps, messages, and how much one message may contain
recorded.py   RecordedDisk
sender.py     CopySender: what is sent, confirmed and caught up
receiver.py   CopyReceiver: what is carried out, promoted and refused
folder.py     the folder of a copy: the mark of one that is not complete; setting it aside
"""

from roadstead.journal_copy.messages import (
    CopyBegin,
    CopyFencedError,
    CopyFile,
    CopyState,
    CopyWrite,
    Promote,
    Promoted,
    Step,
    StepKind,
)
from roadstead.journal_copy.receiver import CopyReceiver
from roadstead.journal_copy.recorded import RecordedDisk
from roadstead.journal_copy.sender import CopySender

__all__ = [
    "CopyBegin",
    "CopyFencedError",
    "CopyFile",
    "CopyReceiver",
    "CopySender",
    "CopyState",
    "CopyWrite",
    "Promote",
    "Promoted",
    "RecordedDisk",
    "Step",
    "StepKind",
]

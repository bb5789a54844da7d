"""Messages between the binder, the copy of its journal, and the supervisor."""

from __future__ import annotations

from roadstead.actors.interface import Nothing, method
from roadstead.journal_copy import CopyBegin, CopyState, CopyWrite, Promote, Promoted

BEGIN_COPY = method("begin_copy", CopyBegin, CopyState)
"""Binder → copy: begin to copy this binder's journal (to pair); refuse earlier binders."""
WRITE_COPY = method("write_copy", CopyWrite, CopyState)
"""Binder → copy: carry out these operations on files, durably."""
PROMOTE = method("promote", Promote, Promoted)
"""Supervisor → copy: become the journal, because the node of the journal is lost."""
PAIR_AGAIN = method("pair_again", Nothing, Nothing)
"""Supervisor → binder: the copy has a new process; send it the journal. May be repeated."""

__all__ = [
    "BEGIN_COPY",
    "PAIR_AGAIN",
    "PROMOTE",
    "WRITE_COPY",
    "CopyBegin",
    "CopyState",
    "CopyWrite",
    "Promote",
    "Promoted",
]
